"""The whole rehearsal's compilers and a Mac's programs: who is called with what, and what the runtime computes."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError
from mps_build.wheel_build.objc import write_stubs
from mps_build.wheel_build.rehearsal.chroot import Chroot
from mps_build.wheel_build.rehearsal.darwin_sdk import DarwinSdk, write_sdk
from mps_build.wheel_build.rehearsal.whole.prepare import llvm_folder
from mps_build.wheel_build.rehearsal.whole.toolchain import (
    RUNTIME,
    WholeToolchain,
    compiler_digest,
    exported_names,
    parse_defined,
    write_darwin_python,
    write_mac_tools,
    write_toolchain,
)
from processes import LONGEST_SECONDS

_SAYS = '#!/bin/sh\necho "${0##*/} $*"\n'


def _answer(*argv: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_SECONDS,
        env={**os.environ, **environ},
    )


@pytest.fixture
def sdk(tmp_path: Path) -> DarwinSdk:
    """A toolchain whose zig and clang say what they were called with."""
    llvm = tmp_path / "llvm"
    for program in (tmp_path / "zig", llvm / "clang", llvm / "clang++", llvm / "llvm-otool"):
        program.parent.mkdir(exist_ok=True)
        program.write_text(_SAYS, encoding="utf-8")
        program.chmod(0o755)
    made = write_sdk(
        tmp_path / "a folder",
        root=tmp_path,
        zig=tmp_path / "zig",
        cache=tmp_path / "cache",
        target="13.0",
        version="14.5",
        has_metal=False,
    )
    whole = WholeToolchain(sdk=made, objc=("-include", "/declared/sdk.h"), runtime=tmp_path / "runtime.a", llvm=llvm)
    write_toolchain(
        whole,
        zig=tmp_path / "zig",
        cache=tmp_path / "cache",
        target="13.0",
        sdk_version="14.5",
        source=Path("/somewhere/source"),
        python_include=Path("/usr/include/python3.13"),
    )
    write_mac_tools(made.tools, llvm=llvm, macos="14.5")
    return made


def test_zig_compiles_and_llds_driver_links(sdk: DarwinSdk) -> None:
    compiled = _answer(sdk.tools / "c++", "-O0", "-c", "a.cpp", "-o", "a.o").stdout
    linked = _answer(sdk.tools / "c++", "-dynamiclib", "-fopenmp", "a.o", "-o", "liba.dylib").stdout
    plain = _answer(sdk.tools / "cc", "-bundle", "a.o", "-o", "a.so").stdout

    assert compiled.startswith("zig c++ ") and "-fclang-abi-compat=17" in compiled
    assert linked.startswith("clang++ -target arm64-apple-macosx13.0 ")
    assert "-fopenmp" not in linked, "it would ask for a library by itself"
    assert linked.index("-lSystem") < linked.index("runtime.a"), "what the runtime itself calls is libSystem's"
    assert plain.startswith("clang ") and "-lc++" not in plain


def test_only_objective_c_sees_the_declarations_and_keeps_its_warnings(sdk: DarwinSdk) -> None:
    objective = _answer(sdk.tools / "c++", "-x", "objective-c++", "-c", "a.mm", "-o", "a.o").stdout
    plain = _answer(sdk.tools / "c++", "-c", "a.cpp", "-o", "a.o").stdout

    assert "-include /declared/sdk.h" in objective and " -w" not in objective
    assert "/declared" not in plain and " -w " in plain


def test_the_hosts_headers_and_the_kernels_own_optimisation_are_dropped(sdk: DarwinSdk) -> None:
    said = _answer(
        sdk.tools / "c++",
        "-O0",
        "-O3",
        "-isystem",
        "/usr/include",
        "-isystem",
        "/mine",
        "-I/usr/include",
        "-c",
        "a.cpp",
    ).stdout.split()

    assert "-O3" not in said and "-O0" in said
    assert "/usr/include" not in said and "-I/usr/include" not in said and "/mine" in said


def test_no_metal_compiler_is_found_so_that_shaders_stay_source(sdk: DarwinSdk) -> None:
    refused = _answer(sdk.tools / "xcrun", "-sdk", "macosx", "metal", "-std=metal3.1")

    assert refused.returncode == 72 and 'unable to find utility "metal"' in refused.stderr
    assert _answer(sdk.tools / "xcrun", "--sdk", "macosx", "--show-sdk-version").stdout == "14.5\n"
    assert json.loads((sdk.sdk / "SDKSettings.json").read_text())["Version"] == "14.5"


def test_the_macs_programs_answer_what_delocate_and_cmake_ask(sdk: DarwinSdk, tmp_path: Path) -> None:
    assert (
        _answer(sdk.tools / "otool", "-arch", "all", "-m", "-L", "a b.dylib").stdout
        == "llvm-otool -arch all -L a b.dylib\n"
    )
    assert _answer(sdk.tools / "sw_vers", "-productVersion").stdout == "14.5\n"
    unsigned = _answer(sdk.tools / "codesign", "--force", "--sign", "-", "a.dylib")
    assert unsigned.returncode == 1 and "not signed at all" in unsigned.stderr


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for this machine")
def test_the_runtime_divides_complex_numbers_of_any_size(tmp_path: Path) -> None:
    numbers = [3.0, -0.5, 1e300, -1e-300, 0.0, 7e200]
    fours = [four for four in itertools.product(numbers, repeat=4) if four[2] or four[3]]
    rows = "".join(f"{{{', '.join(map(repr, four))}}},\n" for four in fours)
    (tmp_path / "main.c").write_text(
        "#include <stdio.h>\ndouble _Complex __divdc3(double, double, double, double);\n"
        "_Bool _availability_version_check(unsigned count, void* versions) { return 1; }\n"
        f"static const double rows[][4] = {{\n{rows}}};\n"
        "int main(void) { for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {\n"
        "  double _Complex q = __divdc3(rows[i][0], rows[i][1], rows[i][2], rows[i][3]);\n"
        '  printf("%a %a\\n", __real__ q, __imag__ q); } }\n'
    )
    built = _answer("cc", "-O1", "-fcx-limited-range", tmp_path / "main.c", RUNTIME, "-lm", "-o", tmp_path / "main")
    assert built.returncode == 0, built.stderr
    found = [tuple(map(float.fromhex, line.split())) for line in _answer(tmp_path / "main").stdout.splitlines()]

    for four, parts in zip(fours, found, strict=True):
        a, b, c, d = map(Fraction, four)
        exact = ((a * c + b * d) / (c * c + d * d), (b * c - a * d) / (c * c + d * d))
        largest = max(map(abs, exact))
        # Each part within a few units in the last place of the quotient's size, where doubles can hold it.
        if Fraction(1e-290) < largest < Fraction(1e300):
            assert all(
                abs(Fraction(part) - right) <= largest / 10**15 for part, right in zip(parts, exact, strict=True)
            ), four


def test_the_compilers_identity_follows_its_version() -> None:
    assert compiler_digest("0.17.0") != compiler_digest("0.17.1")


def test_a_second_run_leaves_the_frameworks_whole_stubs_as_they_are(tmp_path: Path) -> None:
    def write() -> DarwinSdk:
        return write_sdk(
            tmp_path / "sdk",
            root=tmp_path,
            zig=tmp_path / "zig",
            cache=tmp_path,
            target="13.0",
            has_metal=False,
            with_stubs=False,
        )

    made = write()
    metal = made.sdk / "System/Library/Frameworks/Metal.framework/Metal.tbd"
    write_stubs(made.sdk, release="2.6.0")
    whole = metal.read_text(encoding="utf-8")
    write()

    assert "MTLCompileOptions" in whole
    assert metal.read_text(encoding="utf-8") == whole, "the step that writes them is skipped in a second run"


def test_a_root_without_a_linker_for_macho_is_said(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match=r"no clang with ld64\.lld"):
        llvm_folder(Chroot(root=tmp_path))
    for program in ("clang", "ld64.lld"):
        place = tmp_path / "usr/lib/llvm-19/bin" / program
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
    assert llvm_folder(Chroot(root=tmp_path)) == Path("/usr/lib/llvm-19/bin")


def test_the_names_of_our_own_stubs_are_read_back(tmp_path: Path) -> None:
    stubs = write_stubs(tmp_path, release="2.6.0", extra={"libSystem.B": ["_one_more"]})
    system = exported_names((stubs.libraries / "libSystem.tbd").read_text(encoding="utf-8"))
    metal = exported_names((stubs.frameworks / "Metal.framework/Metal.tbd").read_text(encoding="utf-8"))

    assert {"_one_more", "_malloc"} <= system
    assert {"_MTLCopyAllDevices", "_OBJC_CLASS_$_MTLCompileOptions", "_OBJC_METACLASS_$_MTLCompileOptions"} <= metal


def test_a_stub_for_other_processors_alone_has_no_names_here() -> None:
    block = "  - targets: [ {} ]\n    symbols: [ {} ]\n"
    text = "exports:\n" + block.format("x86_64-macos", "_a") + block.format("arm64-macos", "_b")

    assert exported_names(text) == {"_b"}
    assert parse_defined("\na.o:\n_x\n") == {"_x"}


@pytest.mark.skipif(sys.platform != "linux", reason="it stands over a Linux Python's own build data")
def test_an_interpreter_answers_as_a_macs_only_where_it_is_meant_to(tmp_path: Path) -> None:
    variables = write_darwin_python(
        tmp_path / "python",
        tools=Path("/tools"),
        target="13.0",
        darwin="22.0.0",
        system=tmp_path / "System",
        macos="14.5",
    )
    ask = (
        "import sys, os, sysconfig, urllib.request; get = sysconfig.get_config_var;"
        "print(sys.platform, os.uname().machine, sysconfig.get_platform(), get('SHLIB_SUFFIX'), get('CC'))"
    )
    path = {"PYTHONPATH": str(tmp_path / "python")}

    answer = _answer(sys.executable, "-c", ask, **path, **variables)
    assert answer.stdout.split() == ["darwin", "arm64", "macosx-13.0-arm64", ".so", "/tools/cc"], answer.stderr
    assert _answer(sys.executable, "-c", "import sys; print(sys.platform)", **path).stdout == "linux\n"
    assert "14.5" in (tmp_path / "System/Library/CoreServices/SystemVersion.plist").read_text()
