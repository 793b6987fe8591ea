"""Wrong objects from a compiler cache, provoked: each comes out with the dangerous settings, none with ours."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.process import Captured, Command, capture
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.compiler_cache.launcher import cache_settings, check_settings
from mps_build.wheel_build.compiler_cache.store import choose_store
from mps_build.wheel_build.options import Profile
from mps_build.wheel_build.profiles import profile_settings

_CCACHE, _CLANG = shutil.which("ccache"), shutil.which("clang++")
_SCCACHE, _CC = shutil.which("sccache"), shutil.which("cc")
_LONG_AGO = 1_700_000_000


def run(folder: Path, environ: Mapping[str, str], *argv: str) -> Captured:
    base = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "LC_ALL": "C"}
    return capture(Command(argv=argv, cwd=folder, environ={**base, **environ}), timeout_seconds=120)


def write(path: Path, text: str) -> None:
    """Write a file that is old, and as old in every checkout: as `git clone` and `cp -a` may leave it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (_LONG_AGO, _LONG_AGO))


# A precompiled header that another checkout wrote.


def checkout(root: Path, name: str, *, answer: int = 1) -> Path:
    """Return a small project in a folder of its own, with a header wide enough to be worth precompiling."""
    folder = root / name
    write(folder / "src" / "inner.h", "inline const char* where() { return __FILE__; }\n")
    write(folder / "src" / "wide.h", '#include "inner.h"\n')
    write(folder / "src" / "a.cpp", f"int a() {{ return where()[0] + {answer}; }}\n")
    (folder / "build").mkdir()
    return folder


def build_with_header(folder: Path, environ: Mapping[str, str]) -> tuple[Captured, bytes]:
    """Compile the header, then a file with it, as CMake does with clang; return how the file went, and the header."""
    compiler = (_CCACHE or "", _CLANG or "", f"-I{folder / 'src'}")
    header = folder / "build" / "wide.h.pch"
    precompile = ("-Xclang", "-emit-pch", "-Xclang", "-fno-pch-timestamp", "-x", "c++-header", "-MD", "-c")
    made = run(folder / "build", environ, *compiler, *precompile, str(folder / "src" / "wide.h"), "-o", str(header))
    assert made.ok, made.stderr
    use = ("-Xclang", "-include-pch", "-Xclang", str(header), "-MD", "-c")
    return run(folder / "build", environ, *compiler, *use, "../src/a.cpp", "-o", "a.o"), header.read_bytes()


def two_checkouts(root: Path, environs: tuple[Mapping[str, str], Mapping[str, str]]) -> tuple[Captured, bytes]:
    """Build in one checkout, move it away, build in another that differs in one file; return the second's result."""
    first, second = checkout(root, "first"), checkout(root, "second", answer=2)
    shared = {"CCACHE_DIR": str(root / "cache")}
    went, _ = build_with_header(first, shared | dict(environs[0]))
    assert went.ok, went.stderr
    first.rename(root / "gone")
    return build_with_header(second, shared | dict(environs[1]))


def configured(root: Path) -> dict[str, str]:
    """Return the variables of a caller whose own configuration asks for everything that is dangerous."""
    file = root / "ccache.conf"
    file.write_text(
        f"base_dir = {root}\nhash_dir = false\nsloppiness = pch_defines,time_macros\n"
        f"remote_storage = file:{root / 'shared'}\n",
        encoding="utf-8",
    )
    return {"CCACHE_CONFIGPATH": str(file)}


needs_clang = pytest.mark.skipif(not (_CCACHE and _CLANG), reason="ccache and clang are needed")


@pytest.mark.slow
@needs_clang
def test_base_folders_and_a_precompiled_header_read_another_checkouts_headers(tmp_path: Path) -> None:
    """The control: the day this fails, ccache or clang has changed and the rule below may go."""
    danger = {"CCACHE_SLOPPINESS": "pch_defines,time_macros", "CCACHE_NOHASHDIR": "1"}
    bases = [{**danger, "CCACHE_BASEDIR": str(tmp_path / name)} for name in ("first", "second")]

    went, header = two_checkouts(tmp_path, (bases[0], bases[1]))

    assert str(tmp_path / "first").encode() in header
    assert not went.ok
    assert "could not find file" in went.stderr


@pytest.mark.slow
@needs_clang
@pytest.mark.parametrize("profile", ["release", "develop"])
def test_with_our_settings_every_checkout_reads_its_own_headers(tmp_path: Path, profile: Profile) -> None:
    callers = configured(tmp_path)

    def ours(name: str) -> dict[str, str]:
        base = tmp_path / name if profile == "release" else None
        return (
            callers | cache_settings(Path(_CCACHE or ""), base=base) | profile_settings(profile, find_recipe("v2.6.0"))
        )

    went, header = two_checkouts(tmp_path, (ours("first"), ours("second")))

    assert went.ok, went.stderr
    assert str(tmp_path / "first").encode() not in header
    assert str(tmp_path / "second").encode() in header


@pytest.mark.slow
@pytest.mark.skipif(not (_CCACHE and _CC), reason="ccache and a compiler are needed")
def test_a_release_takes_objects_from_another_checkout_unless_its_headers_differ(tmp_path: Path) -> None:
    """Two things at once: the hits that base folders are for, and no hit where a header alone is another."""
    launcher = Path(_CCACHE or "")
    made: dict[str, bytes] = {}
    for name, kind in (("first", "int"), ("same", "int"), ("other", "long")):
        folder = tmp_path / name
        write(folder / "src" / "s.h", f"struct S {{ char c; {kind} v; }};\n")
        write(
            folder / "src" / "x.c",
            '#include <stddef.h>\n#include "s.h"\nlong f(void) { return offsetof(struct S, v); }\n',
        )
        (folder / "build").mkdir()
        environ = {"CCACHE_DIR": str(tmp_path / "cache")} | configured(tmp_path) | cache_settings(launcher, base=folder)
        argv = (str(launcher), _CC or "", "-O1", f"-I{folder / 'src'}", "-c", str(folder / "src" / "x.c"), "-o", "x.o")
        went = run(folder / "build", environ, *argv)
        assert went.ok, went.stderr
        made[name] = (folder / "build" / "x.o").read_bytes()
    counts = run(tmp_path, {"CCACHE_DIR": str(tmp_path / "cache")}, str(launcher), "--print-stats").stdout

    assert made["same"] == made["first"] != made["other"]
    assert "direct_cache_hit\t1\n" in counts
    assert "cache_miss\t2\n" in counts
    assert not (tmp_path / "shared").exists(), "the store that a configuration file names does not belong to a release"


# sccache with base folders: two trees that differ in a header alone (mozilla/sccache#2863).


def offsets(root: Path, environ: Mapping[str, str]) -> list[bytes]:
    """Return the objects of two trees in which the same source reads another header."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    whole = {"SCCACHE_DIR": str(root / "cache"), **environ, "SCCACHE_SERVER_PORT": port}
    made = []
    try:
        for name, kind in (("a", "int"), ("b", "long")):
            write(root / name / "inc" / "s.h", f"struct S {{ char c; {kind} v; }};\n")
            write(
                root / name / "src" / "x.c",
                '#include <stddef.h>\n#include "s.h"\nlong f(void) { return offsetof(struct S, v); }\n',
            )
            went = run(root / name, whole, _SCCACHE or "", _CC or "", "-O1", "-Iinc", "-c", "src/x.c", "-o", "x.o")
            assert went.ok, went.stderr
            made.append((root / name / "x.o").read_bytes())
    finally:
        run(root, whole, _SCCACHE or "", "--stop-server")
    return made


needs_sccache = pytest.mark.skipif(not (_SCCACHE and _CC), reason="sccache and a compiler are needed")


@pytest.mark.slow
@needs_sccache
def test_sccache_with_base_folders_hands_out_another_trees_object(tmp_path: Path) -> None:
    """The control: the day this fails, sccache is fixed and the rule below may go."""
    first, second = offsets(tmp_path, {"SCCACHE_BASEDIRS": f"{tmp_path / 'a'}:{tmp_path / 'b'}"})

    assert first == second, "the fields lie at 4 and at 8"


@pytest.mark.slow
@needs_sccache
@pytest.mark.parametrize("way", ["variable", "file"])
def test_with_our_settings_each_tree_gets_its_own_object(tmp_path: Path, way: str) -> None:
    callers = {"SCCACHE_BASEDIRS": f"{tmp_path / 'a'}:{tmp_path / 'b'}"}
    if way == "file":
        file = tmp_path / "sccache.toml"
        file.write_text(f'basedirs = ["{tmp_path / "a"}", "{tmp_path / "b"}"]\n', encoding="utf-8")
        callers = {"SCCACHE_CONF": str(file)}
    choice = choose_store(callers, shared=False)
    kept = {name: value for name, value in callers.items() if name not in choice.dropped}

    first, second = offsets(tmp_path, {**kept, **choice.variables})

    assert first != second


@pytest.mark.parametrize(
    "name", ["CCACHE_BASEDIR", "CCACHE_SLOPPINESS", "CCACHE_REMOTE_STORAGE", "SCCACHE_BASEDIRS", "SCCACHE_DIRECT"]
)
def test_what_keeps_a_cache_right_is_not_for_set(name: str) -> None:
    with pytest.raises(UsageError, match=f"--set {name}"):
        check_settings([name])


def test_other_settings_of_the_callers_stay() -> None:
    check_settings(["USE_DISTRIBUTED", "CCACHE_MAXSIZE", "CMAKE_BUILD_TYPE"])
