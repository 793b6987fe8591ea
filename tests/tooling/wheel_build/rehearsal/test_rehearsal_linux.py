"""What a rehearsal decides: the recipe it derives, the files it draws, what it says of them."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.errors import BuildEnvironmentError, CompileError, GateError, SourceError
from mps_build.common.process import Command
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.locks import Lock
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.ninja import compile_objects
from mps_build.wheel_build.rehearsal import source as rehearse_source
from mps_build.wheel_build.rehearsal.darwin import package_lines
from mps_build.wheel_build.rehearsal.debian_source import debian_source, original_tarball, place_libtorch
from mps_build.wheel_build.rehearsal.linux import clang_toolchain, linux_recipe, overlaid, split_variables
from mps_build.wheel_build.rehearsal.lock_trial import mac_command, split_lock, try_lock_for_mac
from mps_build.wheel_build.rehearsal.session import draw, header_argv, macho_kind, neighbour, read_units, units_of
from mps_build.wheel_build.wide_headers import TORCH_CPU, TORCH_PYTHON, wide_header_lines


def _entry(source: str, output: str) -> dict[str, str]:
    header = "-Xclang -include-pch -Xclang /b/cmake_pch.hxx.pch -Xclang -include -Xclang /b/cmake_pch.hxx"
    return {"file": source, "output": output, "command": f"clang++ -DA='a b' {header} -I/i -o {output} -c {source}"}


@pytest.fixture
def build(tmp_path: Path) -> Path:
    entries = [
        _entry(f"/src/aten/{number}.cpp", f"caffe2/CMakeFiles/torch_cpu.dir/__/aten/{number}.cpp.o")
        for number in range(40)
    ]
    entries += [_entry("/src/aten/mps/A.mm", "caffe2/CMakeFiles/torch_cpu.dir/__/aten/mps/A.mm.o")]
    entries += [_entry("/src/c10/b.cpp", "c10/CMakeFiles/c10.dir/b.cpp.o")]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries), encoding="utf-8")
    return tmp_path


def test_a_draw_is_the_same_for_the_same_seed_and_holds_only_cpp_of_its_target(build: Path) -> None:
    units = read_units(build)

    first, again, other = (draw(units, targets=["torch_cpu"], count=10, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert {unit.target for unit in first} == {"torch_cpu"}
    assert {unit.source.suffix for unit in draw(units, targets=["torch_cpu"], count=99, seed=1)} == {".cpp"}
    assert len(draw(units, targets=["torch_cpu"], count=99, seed=1)) == 40


def test_files_that_no_unit_compiles_are_named(build: Path) -> None:
    found, missing = units_of(read_units(build), [Path("/src/c10/b.cpp"), Path("/src/c10/b.h")])

    assert [unit.object for unit in found] == ["c10/CMakeFiles/c10.dir/b.cpp.o"]
    assert missing == (Path("/src/c10/b.h"),)


def test_a_header_is_read_with_its_nearest_neighbours_flags_and_without_a_precompiled_header(build: Path) -> None:
    units = read_units(build)

    unit = neighbour(units, Path("/src/c10/util/x.h"))
    assert unit is not None and unit.target == "c10"
    far = neighbour(units, Path("/src/torch/y.h"))
    assert far is not None and far.target == "torch_cpu"
    argv = header_argv(unit, Path("/src/c10/util/x.h"))
    assert argv[:3] == ("clang++", "-DA=a b", "-I/i")
    assert argv[-5:] == ("-include", "/src/c10/util/x.h", "-x", "c++", "/dev/null")
    assert argv[argv.index("-o") + 1] == ".mps-build-header.o", "the unit's own object is left alone"
    assert argv.count("-c") == 1 and not any("pch.hxx" in word for word in argv)
    assert neighbour((), Path("/x.h")) is None


def test_an_older_cmake_says_the_object_in_the_command_only(tmp_path: Path) -> None:
    entry = {"file": "/s/a b.cpp", "command": "cc -DX='a b' -o 'x/CMakeFiles/c10.dir/a b.cpp.o' -c '/s/a b.cpp'"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")

    assert [unit.object for unit in read_units(tmp_path)] == ["x/CMakeFiles/c10.dir/a b.cpp.o"]


@pytest.mark.parametrize("text", [None, "", "[{", "[{}]", "[1]", '[{"file": "/a.cpp", "command": "cc a.cpp"}]'])
def test_a_build_folder_without_compile_commands_is_a_gate_error(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "compile_commands.json").write_text(text, encoding="utf-8")

    with pytest.raises(GateError, match=r"compile_commands\.json cannot be read"):
        read_units(tmp_path)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (struct.pack("<4I", 0xFEEDFACF, 0x0100000C, 0, 1), "object"),
        (struct.pack("<4I", 0xFEEDFACF, 0x0100000C, 0, 6), "dylib"),
        (struct.pack("<4I", 0xFEEDFACF, 0x01000007, 0, 1), None),  # x86-64
        (b"\x7fELF" + bytes(12), None),
        (b"short", None),
        (b"", None),
    ],
)
def test_only_an_arm64_macho_is_one(tmp_path: Path, head: bytes, kind: str | None) -> None:
    (tmp_path / "file").write_bytes(head)

    assert macho_kind(tmp_path / "file") == kind


def test_a_linux_rehearsal_wants_mps_off_and_says_no_word_of_a_mac() -> None:
    recipe = find_recipe("v2.6.0")
    tried = linux_recipe(recipe, debian=True)

    names = {variable.name: variable.value for variable in tried.environment}
    assert recipe.gate.use_mps and not tried.gate.use_mps and not tried.gate.can_compile_metal
    assert tried.gate.cxx_standard == recipe.gate.cxx_standard
    assert not {"MACOSX_DEPLOYMENT_TARGET", "ARCHFLAGS", "_PYTHON_HOST_PLATFORM"} & set(names)
    assert names["USE_MPS"] == "1", "the recipe still asks; Linux refuses"
    assert names["USE_DISTRIBUTED"] == "0", "Debian's tree wins over the recipe"
    assert len(names) == len(tried.environment)


def test_a_tree_with_its_third_party_keeps_the_recipes_own_switches() -> None:
    recipe = find_recipe("v2.6.0")
    names = {variable.name: variable.value for variable in linux_recipe(recipe, debian=False).environment}

    assert names["USE_DISTRIBUTED"] == "1"
    assert "USE_SYSTEM_LIBS" not in names


def test_the_later_of_two_variables_of_one_name_stays(tmp_path: Path) -> None:
    recipe = find_recipe("v2.6.0")
    once = overlaid(recipe.environment, split_variables(tmp_path))
    again = overlaid(once, split_variables(tmp_path / "other"))

    assert [variable.value for variable in again if variable.name == "LIBTORCH_LIB_PATH"] == [str(tmp_path / "other")]


def test_clang_names_templates_as_gcc_only_where_it_meets_gccs_libtorch() -> None:
    assert "CXXFLAGS" not in clang_toolchain(against_gcc=False).variables
    assert clang_toolchain(against_gcc=True).variables["CXXFLAGS"] == "-fclang-abi-compat=17"


def test_libtorch_is_packed_once_each_by_the_name_it_is_loaded_by(tmp_path: Path) -> None:
    libtorch, tree = tmp_path / "libtorch", tmp_path / "tree"
    libtorch.mkdir()
    (tree / "torch").mkdir(parents=True)
    for name in ("c10", "torch_cpu", "torch_global_deps"):
        (libtorch / f"lib{name}.so.2.6").write_text(name, encoding="utf-8")
        (libtorch / f"lib{name}.so").symlink_to(f"lib{name}.so.2.6")

    place_libtorch(libtorch, tree)
    place_libtorch(libtorch, tree)

    assert sorted(path.name for path in (tree / "torch/lib").iterdir()) == [
        "libc10.so.2.6",
        "libtorch_cpu.so.2.6",
        "libtorch_global_deps.so",
    ]


def test_a_release_that_debian_never_had_is_a_source_error_that_names_those_it_has() -> None:
    with pytest.raises(SourceError, match=r"1\.13\.1, 2\.6\.0"):
        debian_source("2.5.1")


LOCK = (
    "# StepResult by nox\n# inputs: 00\n"
    "a==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n"
    "# no wheel for Linux aarch64: built from the source distribution there\n"
    "b==2 \\\n    --hash=sha256:11\n"
    "# no wheel for macOS arm64, Linux aarch64: built from the source distribution there\n"
    "c==3 \\\n    --hash=sha256:22\n"
    "d==4 \\\n    --hash=sha256:33\n"
)


def test_only_what_a_mac_builds_from_source_is_left_out_of_its_trial() -> None:
    wheels, built = split_lock(LOCK)

    assert built == ("c==3",)
    assert [line.split("==")[0] for line in wheels.splitlines() if "==" in line] == ["a", "b", "d"]
    assert wheels.count("--hash") == 4


def test_pip_resolves_with_the_macs_tags_by_hash_and_installs_nothing(tmp_path: Path) -> None:
    argv = mac_command(Path("py"), requirements=tmp_path / "r", version="3.13t", macos="14.4", scratch=tmp_path)

    assert argv[argv.index("--platform") + 1] == "macosx_14_0_arm64"
    assert argv[argv.index("--python-version") + 1] == "3.13"
    assert "cp313t" in argv
    assert {"--dry-run", "--require-hashes", "--no-deps"} <= set(argv)


def test_a_lock_that_does_not_resolve_says_so_with_pips_own_words(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho 'ERROR: No matching distribution found for a==1' >&2\nexit 1\n", encoding="utf-8")
    fake.chmod(0o755)
    lock = Lock(name="v9-py3.12", text=LOCK)

    with pytest.raises(BuildEnvironmentError, match="No matching distribution found for a==1"):
        try_lock_for_mac(lock, python=fake, version="3.12", macos="14.0", scratch=tmp_path / "s", environ={})


def test_a_lock_without_zig_is_an_environment_error() -> None:
    assert package_lines("ziglang==1 \\\n    --hash=sha256:00\nx==2\n", "ziglang") == "ziglang==1  --hash=sha256:00\n"
    with pytest.raises(BuildEnvironmentError, match="names no ziglang"):
        package_lines("zig==1\n", "ziglang")


def test_objects_that_fail_are_named_and_the_others_are_still_made(tmp_path: Path) -> None:
    script = "echo '[1/3] a.o'; echo 'FAILED: x/b.cpp.o '; echo 'b.cpp:1: error: no'; echo '[3/3] c.o'; exit 1"
    command = Command(argv=("sh", "-c", script), environ=dict(os.environ))

    with pytest.raises(CompileError, match=r"1 of the drawn files do not compile: b\.cpp\.o") as caught:
        compile_objects(command, what="drawn files", log=tmp_path / "log", reporter=SilentReporter())
    assert caught.value.document == {"failed": ["x/b.cpp.o"]}


def test_wide_headers_are_copied_beside_the_build_and_left_alone_when_equal(tmp_path: Path) -> None:
    text = wide_header_lines((TORCH_CPU, TORCH_PYTHON), tmp_path)
    stamp = (tmp_path / "torch_cpu.h").stat().st_mtime_ns
    again = wide_header_lines((TORCH_CPU, TORCH_PYTHON), tmp_path)

    assert again == text
    assert (tmp_path / "torch_cpu.h").stat().st_mtime_ns == stamp
    assert f"torch_python [==[{tmp_path / 'torch_python.h'}]==]" in text


@pytest.mark.parametrize(
    ("argv", "status", "words"),
    [
        (["sample"], 2, "needs no rehearsal"),
        (["v9.9.9"], 2, "no recipe"),
        (["v2.6.0", "--wheel", "--companions"], 2, "cannot be combined with --wheel"),
        (["v2.6.0", "--darwin", "--cache", "ccache"], 2, "is for the whole build"),
        (["v2.6.0", "--draw", "0"], 2, "not a number from 1 on"),
        (["v2.5.1"], 4, "no tree of v2.5.1 is available"),
        (["v2.5.1", "--wheel"], 4, "no Debian source package of 2.5.1"),
        (["v2.5.1", "--tree", "debian"], 4, "no Debian source package of 2.5.1"),
    ],
)
def test_what_cannot_be_rehearsed_is_said_and_nothing_is_made(
    argv: list[str],
    status: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setattr(rehearse_source, "git_reaches", lambda recipe: False)

    assert main("rehearse", argv) == status
    assert words in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


def test_the_smoke_script_fails_and_writes_nothing_where_torch_does_not_load(tmp_path: Path) -> None:
    smoke = Path(sys.modules["mps_build"].__path__[0]) / "wheel_build" / "rehearsal" / "smoke.py"
    (tmp_path / "torch.py").write_text("raise ImportError('libtorch_cpu.so.2.6: cannot open')\n", encoding="utf-8")
    environ: dict[str, Any] = {**os.environ, "PYTHONPATH": str(tmp_path)}
    result = tmp_path / "result.json"

    done = subprocess.run(
        [sys.executable, str(smoke), str(result)], env=environ, capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "cannot open" in done.stderr
    assert not result.exists()


DESCRIPTION = """\
Format: 3.0 (quilt)
Checksums-Sha1:
 11 5 p_1.orig.tar.xz
Checksums-Sha256:
 {digest} 5 p_1.orig.tar.xz
 22 9 p_1-4.debian.tar.xz
Files:
 33 5 p_1.orig.tar.xz
"""


def test_the_releases_tarball_serves_where_debians_part_is_gone_but_only_if_it_is_the_described_one(
    tmp_path: Path,
) -> None:
    tarball = tmp_path / "p_1.orig.tar.xz"
    tarball.write_bytes(b"12345")
    (tmp_path / "p_1-4.dsc").write_text(DESCRIPTION.format(digest=hashlib.sha256(b"12345").hexdigest()))
    assert original_tarball(tmp_path) == tarball

    tarball.write_bytes(b"1234")  # cut off
    assert original_tarball(tmp_path) is None
