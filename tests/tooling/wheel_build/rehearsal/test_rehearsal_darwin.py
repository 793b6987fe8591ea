"""The stub SDK that a Darwin rehearsal is configured with, and what becomes of the recipe."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.compiler_environ import build_environ
from mps_build.wheel_build.rehearsal.darwin import darwin_recipe, zig_toolchain
from mps_build.wheel_build.rehearsal.darwin_sdk import FRAMEWORKS, DarwinSdk, stub_sources, write_sdk
from processes import LONGEST_SECONDS


def test_the_darwin_rehearsal_keeps_the_recipes_gate_and_never_sets_the_architecture(tmp_path: Path) -> None:
    recipe = find_recipe("v2.6.0")
    sdk = DarwinSdk(folder=tmp_path)
    tried = darwin_recipe(recipe, sdk)
    environ, _ = build_environ(
        tried,
        inherited={},
        venv=tmp_path,
        toolchain=zig_toolchain(sdk),
        jobs=2,
        epoch=0,
        settings={},
        extra={},
    )

    assert tried.gate.use_mps and tried.gate.can_compile_metal == recipe.gate.can_compile_metal
    assert environ["CMAKE_SYSTEM_NAME"] == "Darwin"
    assert environ["CMAKE_OSX_DEPLOYMENT_TARGET"] == recipe.deployment_target
    assert "CMAKE_OSX_ARCHITECTURES" not in environ, "with it the tree wants its own protoc"
    assert environ["PATH"].endswith(str(sdk.tools)), "xcrun is found"


@pytest.fixture
def sdk(tmp_path: Path) -> DarwinSdk:
    root = tmp_path / "root"
    (root / "usr/include/fmt").mkdir(parents=True)
    (root / "usr/lib/llvm-19/bin").mkdir(parents=True)
    for name in ("llvm-ar", "llvm-install-name-tool"):
        (root / "usr/lib/llvm-19/bin" / name).touch()
    zig = tmp_path / "zig"
    zig.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    zig.chmod(0o755)
    return write_sdk(tmp_path / "sdk folder", root=root, zig=zig, cache=tmp_path / "cache", target="13.0")


def _answer(*argv: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv], capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS
    )


def test_the_stub_xcrun_answers_what_cmake_asks_and_refuses_the_rest_as_apples_does(
    sdk: DarwinSdk, tmp_path: Path
) -> None:
    xcrun = sdk.tools / "xcrun"

    assert _answer(xcrun, "--sdk", "macosx", "--show-sdk-version").stdout == "15.2\n"
    assert _answer(xcrun, "--sdk", "macosx", "--show-sdk-path").stdout == f"{sdk.sdk}\n"
    assert _answer(xcrun, "-sdk", "macosx", "metal", "-std=metal3.1", "-o", tmp_path / "out.air").returncode == 0
    assert (tmp_path / "out.air").is_file()
    refused = _answer(xcrun, "swift", "--version")
    assert refused.returncode == 72
    assert 'unable to find utility "swift"' in refused.stderr


def test_every_framework_is_in_the_sdk_and_in_the_system(sdk: DarwinSdk) -> None:
    for name in FRAMEWORKS:
        assert (sdk.sdk / f"System/Library/Frameworks/{name}.framework/{name}.tbd").is_file()
        assert (sdk.system / f"Library/Frameworks/{name}.framework").is_dir()


def test_the_compiler_drops_the_hosts_header_folders_and_keeps_all_others(sdk: DarwinSdk) -> None:
    argv = _answer(
        sdk.tools / "c++",
        "-I/usr/include",
        "-isystem",
        "/usr/include/x86_64-linux-gnu",
        "-isystem",
        "/src/a b",
        "-I/usr/include/python3.13",
        "-DX=a b",
    ).stdout.splitlines()

    assert argv[:3] == ["c++", "-target", "aarch64-macos.13.0"]
    assert argv[-5:-1] == ["-isystem", "/src/a b", "-I/usr/include/python3.13", "-DX=a b"]
    assert "/usr/include/x86_64-linux-gnu" not in argv and "-I/usr/include" not in argv


def test_llvm_stands_in_for_apples_tools_that_the_root_has(sdk: DarwinSdk) -> None:
    assert (sdk.tools / "ar").readlink() == Path("/usr/lib/llvm-19/bin/llvm-ar")
    assert (sdk.tools / "install_name_tool").readlink() == Path("/usr/lib/llvm-19/bin/llvm-install-name-tool")
    assert not (sdk.tools / "lipo").is_symlink()
    assert (sdk.headers / "fmt").readlink() == Path("/usr/include/fmt")


def test_a_second_sdk_over_the_first_is_the_same(sdk: DarwinSdk, tmp_path: Path) -> None:
    before = {path: path.read_text() for path in sdk.folder.rglob("*") if path.is_file()}
    write_sdk(sdk.folder, root=tmp_path / "root", zig=tmp_path / "zig", cache=tmp_path / "cache", target="13.0")

    assert {path: path.read_text() for path in sdk.folder.rglob("*") if path.is_file()} == before
    assert stub_sources(sdk).keys() == {sdk.stubs / "lib" / f"lib{name}.dylib" for name in _stub_names(sdk)}


def _stub_names(sdk: DarwinSdk) -> set[str]:
    return {path.stem for path in sdk.stubs.glob("*.c")}
