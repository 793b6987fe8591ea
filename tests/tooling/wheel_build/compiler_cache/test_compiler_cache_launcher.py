"""The compiler cache's settings: what goes across checkouts, what never does, and what is reported."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.process import Command, capture
from mps_build.wheel_build.compiler_cache.launcher import (
    OPENMP,
    CacheCounts,
    cache_gain,
    cache_lines,
    cache_settings,
    cache_troubles,
    check_flags_pass,
    checkout_of,
    find_launcher,
    lost_flags,
    ninja_log_text,
    slowest_steps,
)

CCACHE, SCCACHE = Path("/opt/bin/ccache"), Path("/opt/bin/sccache")
# As cmake/Codegen.cmake of PyTorch does for each kernel and CPU capability.
LISTS = """\
cmake_minimum_required(VERSION 3.24)
project(kernels NONE)
set(IMPL "${CMAKE_SOURCE_DIR}/aten/src/ATen/native/cpu/Sum.cpp")
configure_file(stub.in "${CMAKE_BINARY_DIR}/aten/src/ATen/native/cpu/Sum.cpp.DEFAULT.cpp")
file(WRITE "${CMAKE_BINARY_DIR}/aten/src/ATen/Generated.cpp" "#include \\"/usr/include/stdio.h\\"\\n")
"""


def test_ccache_shares_across_checkouts_and_with_nobody_else() -> None:
    found = cache_settings(CCACHE, base=Path("/build/v2.6.0"))

    assert found["CCACHE_BASEDIR"] == "/build/v2.6.0"
    assert found["CCACHE_REMOTE_STORAGE"] == found["CCACHE_SECONDARY_STORAGE"] == ""
    assert found["CCACHE_SLOPPINESS"] == "", "what lets it keep a precompiled header"


def test_a_build_with_a_precompiled_header_and_sccache_get_no_base_folder() -> None:
    assert cache_settings(CCACHE, base=None) == {}
    assert cache_settings(SCCACHE, base=Path("/work")) == {}
    assert cache_settings(None, base=Path("/work")) == {}
    assert (
        cache_lines(CCACHE, across=False) == cache_lines(SCCACHE, across=True) == cache_lines(None, across=True) == ""
    )


def test_a_callers_own_tree_is_the_whole_checkout() -> None:
    """Its build folder may lie elsewhere: then its generated files hit nothing, and nothing wrong comes out."""
    assert checkout_of(Path("/build/v2.6.0/source"), Path("/build/v2.6.0")) == Path("/build/v2.6.0")
    assert checkout_of(Path("/home/me/pytorch"), Path("/build/v2.6.0")) == Path("/home/me/pytorch")


def test_entries_that_were_lost_and_objects_not_taken_are_reported() -> None:
    before = CacheCounts(hits=1, misses=1)

    gain = cache_gain(before, CacheCounts(hits=1, misses=4, errors=2, write_errors=3))

    assert gain == {"hits": 0, "misses": 3, "hit_rate": 0.0, "errors": 2, "write_errors": 3}
    assert [each.split(":")[0] for each in cache_troubles(gain)] == [
        "2 entries of the compiler cache could not be read",
        "the compiler cache did not store 3 objects (full, read-only or gone); the build continued",
    ]
    assert cache_troubles(cache_gain(before, before)) == cache_troubles(None) == ()


def configure(checkout: Path) -> Path:
    """Configure a small tree with our lines; return the generated file of its kernel."""
    kernel = checkout / "source" / "aten" / "src" / "ATen" / "native" / "cpu" / "Sum.cpp"
    kernel.parent.mkdir(parents=True, exist_ok=True)
    kernel.write_text("int sum;\n", encoding="utf-8")
    (checkout / "source" / "stub.in").write_text('#include "@IMPL@"\n', encoding="utf-8")
    (checkout / "source" / "CMakeLists.txt").write_text(LISTS, encoding="utf-8")
    overrides = checkout / "overrides.cmake"
    overrides.write_text(cache_lines(CCACHE, across=True), encoding="utf-8")
    where = ("-S", str(checkout / "source"), "-B", str(checkout / "build"))
    made = capture(
        Command(argv=(shutil.which("cmake") or "", *where, f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={overrides}")),
        timeout_seconds=60,
    )
    assert made.ok, made.stderr
    return checkout / "build" / "aten" / "src" / "ATen" / "native" / "cpu" / "Sum.cpp.DEFAULT.cpp"


needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="CMake is needed")


@needs_cmake
def test_a_generated_kernel_reads_the_same_in_every_checkout_and_finds_its_source(tmp_path: Path) -> None:
    first, second = configure(tmp_path / "one"), configure(tmp_path / "elsewhere" / "two")

    text = first.read_text(encoding="utf-8")
    assert text == second.read_text(encoding="utf-8")
    source = (first.parent / text.split('"')[1]).resolve()
    assert source == tmp_path / "one" / "source" / "aten" / "src" / "ATen" / "native" / "cpu" / "Sum.cpp"
    other = first.parents[2] / "Generated.cpp"
    assert other.read_text(encoding="utf-8") == '#include "/usr/include/stdio.h"\n', "no file of this checkout"


@needs_cmake
def test_configuring_again_leaves_it_as_old_as_it_is(tmp_path: Path) -> None:
    """Else ninja would compile all such kernels again."""
    before = configure(tmp_path).stat().st_mtime_ns
    time.sleep(0.02)

    after = configure(tmp_path)

    assert after.stat().st_mtime_ns == before
    assert "/source/" in after.read_text(encoding="utf-8")
    assert str(tmp_path) not in after.read_text(encoding="utf-8")


def test_the_launcher_is_named_by_the_link_that_an_upgrade_keeps(tmp_path: Path) -> None:
    cellar, link = tmp_path / "Cellar" / "ccache" / "4.11" / "bin" / "ccache", tmp_path / "bin" / "ccache"
    for folder in (cellar.parent, link.parent):
        folder.mkdir(parents=True)
    cellar.write_text("#!/bin/sh\n", encoding="utf-8")
    cellar.chmod(0o755)
    link.symlink_to(cellar)

    assert find_launcher("ccache", path=str(link.parent)) == link


def test_the_longest_steps_are_those_of_this_python_and_not_of_the_one_before(tmp_path: Path) -> None:
    log, head = tmp_path / ".ninja_log", "# ninja log v6\n"
    first = "0\t9000\t17\tcore.o\ta1\n9000\t99000\t18\t_C.cpython-313-darwin.so\tb2\n"
    log.write_text(head + first, encoding="utf-8")
    before = ninja_log_text(tmp_path)
    assert slowest_steps(tmp_path)[0] == ("_C.cpython-313-darwin.so", 90.0)

    log.write_text(head + first + "0\t4000\t27\t_C.cpython-311-darwin.so\tc3\n", encoding="utf-8")

    assert slowest_steps(tmp_path, before=before) == [("_C.cpython-311-darwin.so", 4.0)]
    log.write_text(head + first, encoding="utf-8")
    assert slowest_steps(tmp_path, before=before) == []
    assert slowest_steps(tmp_path / "nothing") == []


def _cache(path: Path, *, hands_on: str) -> Path:
    """Write a program that stands where ccache does: it preprocesses, then compiles with what `hands_on` says."""
    path.write_text(
        f'#!/bin/sh\ncase "$1" in --version) echo "ccache version 4.x"; exit ;; esac\ncompiler=$1; shift\n'
        f'"$compiler" -E a.c -o a.i\nexec "$compiler" {hands_on}\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


def test_a_ccache_that_drops_openmps_flags_is_refused_before_the_build(tmp_path: Path) -> None:
    dropping = _cache(tmp_path / "ccache", hands_on="-c a.c -o a.o")

    with pytest.raises(UsageError, match=r"ccache version 4\.x drops -Xpreprocessor -fopenmp"):
        check_flags_pass(dropping, openmp=True)
    check_flags_pass(dropping, openmp=False)


def test_a_cache_that_hands_every_flag_on_is_taken(tmp_path: Path) -> None:
    check_flags_pass(_cache(tmp_path / "ccache-4.12", hands_on='"$@"'), openmp=True)
    check_flags_pass(None, openmp=True)


@pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache on this host")
def test_what_the_real_ccache_hands_on_is_what_its_compiler_sees() -> None:
    real = Path(str(shutil.which("ccache")))
    version = capture(Command(argv=(str(real), "--version"))).stdout.split()[2]
    known = {"4.7.5": (), "4.11.2": OPENMP}

    assert lost_flags(real, ("-DA",)) == ()
    if version not in known:
        pytest.skip(f"nobody tried ccache {version} yet")
    assert lost_flags(real, OPENMP) == known[version]
