"""A whole rehearsal's decisions: what is compiled by what, which names are stood in for, what marks the wheel."""

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
from mps_build.build.artifacts import Wheel
from mps_build.build.objc import write_stubs
from mps_build.build.rehearsal.chroot import Chroot
from mps_build.build.rehearsal.darwin_sdk import DarwinSdk, write_sdk
from mps_build.build.rehearsal.whole.cpu_time import counted, read_seconds
from mps_build.build.rehearsal.whole.darwin_python import write_darwin_python
from mps_build.build.rehearsal.whole.library_names import exported_names, parse_defined
from mps_build.build.rehearsal.whole.mac_tools import write_mac_tools
from mps_build.build.rehearsal.whole.marking import marked_bill
from mps_build.build.rehearsal.whole.prepare import check_room, llvm_folder
from mps_build.build.rehearsal.whole.recipe import darwin_number, rehearsal_version, relocatable_lines, whole_recipe
from mps_build.build.rehearsal.whole.source_files import files_state, list_files
from mps_build.build.rehearsal.whole.system_stubs import RUNTIME
from mps_build.build.rehearsal.whole.third_party import library_of, stand_in_source, wanted_names
from mps_build.build.rehearsal.whole.toolchain import WholeToolchain, compiler_digest, write_toolchain
from mps_build.build.rehearsal.whole.wheel import Rehearsed
from mps_build.build.steps.finish_wheel import bill_of_materials
from mps_build.common.errors import BuildEnvironmentError, CompileError, DiskFull
from mps_build.common.recipe.catalogue import find_recipe
from packaging.version import Version

_SAYS = '#!/bin/sh\necho "${0##*/} $*"\n'


def _answer(*argv: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
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


def test_the_gate_asks_for_mps_and_openmp_and_lets_shaders_be_source(tmp_path: Path) -> None:
    recipe = find_recipe("v2.6.0")
    tried = whole_recipe(recipe, DarwinSdk(folder=tmp_path), libomp=tmp_path / "libomp")
    environ = {variable.name: variable.value for variable in tried.environment}

    assert tried.gate.use_mps and tried.gate.openmp and not tried.gate.can_compile_metal
    assert environ["USE_OPENMP"] == "1"
    assert environ["CMAKE_SYSTEM_VERSION"] == "22.0.0"
    flags = {environ[f"CMAKE_{language}_FLAGS_MINSIZEREL"] for language in ("C", "CXX", "OBJC", "OBJCXX")}
    assert flags == {"-O0 -g0 -DNDEBUG"}, "an .mm must not get CMake's -Os"
    assert environ["CMAKE_PREFIX_PATH"].split(";")[0] == str(tmp_path / "libomp")


def test_darwins_number_is_macoss_less_nine() -> None:
    assert [darwin_number(macos) for macos in ("11.0", "13.0", "14.0")] == ["20.0.0", "22.0.0", "23.0.0"]


def test_the_cmake_lines_name_the_declared_libomp_and_close_every_brace(tmp_path: Path) -> None:
    lines = relocatable_lines(tmp_path)

    assert f'"{tmp_path}/lib/libomp.dylib"' in lines and f"-I{tmp_path}/include" in lines
    assert lines.count("{") == lines.count("}") and "{{" not in lines
    assert "MPSFallback.mm" in lines
    assert f'INSTALL_RPATH "{tmp_path}/lib"' in lines, "setup.py finds libomp along torch_cpu's rpaths"


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


def test_the_version_says_rehearsal_and_is_a_version() -> None:
    version = Version(rehearsal_version("2.6.0"))

    assert version.base_version == "2.6.0"
    assert str(version.local).startswith("rehearsal")


def test_missing_names_go_to_their_library_and_unknown_ones_are_said() -> None:
    wanted = wanted_names(
        [
            "_malloc",
            "__ZN4onnx10ModelProtoC1Ev",
            "__ZN6google8protobuf11MessageLite5ClearEv",
            "_cpuinfo_initialize",
            "_PyList_New",
            "__Py_Dealloc",
            "_NSLog",
        ],
        had=["_malloc", "_cpuinfo_initialize"],
    )

    assert wanted.libraries == {
        "onnx": ("__ZN4onnx10ModelProtoC1Ev",),
        "protobuf": ("__ZN6google8protobuf11MessageLite5ClearEv",),
    }
    assert wanted.unknown == ("_NSLog",)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("__ZN4onnx7checker11check_modelERKN6google8protobuf7MessageE", "onnx"),
        ("__ZTIN6google8protobuf7MessageE", "protobuf"),
        ("__ZN7httplib6ClientD1Ev", "cpp-httplib"),
        ("_Sleef_finz_expf4_u10advsimd", "sleef"),
        ("__ZN2at3mps9MPSStreamC1Ev", None),
    ],
)
def test_a_name_is_of_the_first_namespace_in_it(name: str, library: str | None) -> None:
    assert library_of(name) == library


def test_stand_ins_trap_when_called_and_tables_are_data() -> None:
    names = ["__ZN4onnx1fEv", "__ZTVN4onnx1CE", "_Sleef_f"]
    text = stand_in_source(names, ["onnx::f()", "vtable for onnx::C", "Sleef_f"])

    code, data = text.split(".section __DATA,__data")
    assert "__ZN4onnx1fEv:\n  brk" in code and "_Sleef_f:\n  brk" in code and "__ZTV" not in code
    assert "__ZTVN4onnx1CE:\n  .space" in data
    assert stand_in_source([], []) == ""


def test_a_disk_that_is_too_small_is_said_before_anything_is_made(tmp_path: Path) -> None:
    check_room(tmp_path, free=4_000_000_000, has_begun=True)
    with pytest.raises(DiskFull, match=r"has 4\.0 GB free, the whole build takes 12 GB") as caught:
        check_room(tmp_path, free=4_000_000_000, has_begun=False)
    assert "MPS_BUILD_WORK" in str(caught.value.hint)


def test_cpu_seconds_are_kept_over_runs_also_of_a_step_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with counted(path, "Compile"):
        sum(range(3_000_000))
    first = read_seconds(path)["Compile"]
    with pytest.raises(CompileError), counted(path, "Compile"):
        sum(range(3_000_000))
        raise CompileError("stopped")

    assert read_seconds(path)["Compile"] >= first >= 0
    assert read_seconds(tmp_path / "none.json") == {}


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


def test_the_bill_says_that_it_is_a_rehearsal_and_what_is_not_real() -> None:
    bill = bill_of_materials(
        name="torch",
        version="2.6.0+rehearsal.linux",
        commit=None,
        origin="Debian",
        submodules={},
        patches={},
        tools={},
        bundled={},
    )
    marked = marked_bill(bill, {"onnx": ("_a", "_b")})

    properties = {each["name"]: each["value"] for each in marked["metadata"]["component"]["properties"]}
    assert "never loaded, run or verified on a Mac" in properties["mps-build:rehearsal"]
    assert [(each["name"], each["version"]) for each in marked["components"]] == [("onnx", "stand-in")]
    assert marked["dependencies"] == [{"ref": "torch", "dependsOn": ["stand-in:onnx"]}]
    assert "properties" in bill["metadata"]["component"] and len(bill["metadata"]["component"]["properties"]) == 1


def test_an_edit_changes_the_state_and_a_generated_file_does_not(tmp_path: Path) -> None:
    tree, listed = tmp_path / "tree", tmp_path / "listed.txt"
    (tree / "build").mkdir(parents=True)
    (tree / "a.mm").write_text("one", encoding="utf-8")
    (tree / "build" / "x.o").touch()
    list_files(tree, listed)
    before = files_state(tree, listed)

    (tree / "version.py").touch()
    assert listed.read_text() == "a.mm\n" and files_state(tree, listed) == before
    (tree / "a.mm").write_text("two!", encoding="utf-8")
    edited = files_state(tree, listed)
    (tree / "a.mm").unlink()
    assert len({before, edited, files_state(tree, listed)}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="it stands over a Linux Python's own build data")
def test_an_interpreter_answers_as_a_macs_only_where_it_is_told_to(tmp_path: Path) -> None:
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

    told = _answer(sys.executable, "-c", ask, **path, **variables)
    assert told.stdout.split() == ["darwin", "arm64", "macosx-13.0-arm64", ".so", "/tools/cc"], told.stderr
    assert _answer(sys.executable, "-c", "import sys; print(sys.platform)", **path).stdout == "linux\n"
    assert "14.5" in (tmp_path / "System/Library/CoreServices/SystemVersion.plist").read_text()


def test_what_the_configuration_explains_is_said_and_nothing_else_is(tmp_path: Path) -> None:
    def made(*rules: str) -> Rehearsed:
        levels = {rule: "warning" if rule.startswith("M") else "error" for rule in rules}
        findings = [{"rule": rule, "level": levels[rule], "member": "", "evidence": "x"} for rule in rules]
        wheel, verdict = Wheel(path=tmp_path / "a.whl", size=1, sha256="0"), "rejected" if "G2" in rules else "accepted"
        return Rehearsed(wheel=wheel, receipt=tmp_path, audit={"verdict": verdict, "findings": findings})

    assert list(made("G2", "M10").explained) == ["G2"]
    assert "git" in made("G2").explained["G2"]
    assert made("M10", "G2").judged == "strict audit: rejected by G2, which the configuration explains; warnings: M10"
    assert made("M10").judged == "strict audit: accepted; warnings: M10" and made().judged == "strict audit: accepted"
    document = made("M10", "G2").document()
    assert document["verdict"] == "rejected", "what audit_wheel says of this file to anybody"
    assert document["rejected_by"] == ["G2"] == list(document["explained"])
    assert made("M10").document()["rejected_by"] == []
