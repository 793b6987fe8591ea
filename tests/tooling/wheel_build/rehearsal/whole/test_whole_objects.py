"""A whole rehearsal's decisions: what is compiled by what, which names are stood in for, what marks the wheel."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import CompileError, DiskFull
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.artifacts import Wheel
from mps_build.wheel_build.rehearsal.darwin_sdk import DarwinSdk
from mps_build.wheel_build.rehearsal.whole.objects import fake_source, library_of, wanted_names
from mps_build.wheel_build.rehearsal.whole.prepare import (
    check_room,
    darwin_number,
    files_state,
    list_files,
    rehearsal_version,
    relocatable_lines,
    whole_recipe,
)
from mps_build.wheel_build.rehearsal.whole.rehearsal import counted, read_seconds
from mps_build.wheel_build.rehearsal.whole.wheel import Rehearsed, marked_bill
from mps_build.wheel_build.steps.finish_wheel import bill_of_materials
from packaging.version import Version


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


def test_fakes_trap_when_called_and_tables_are_data() -> None:
    names = ["__ZN4onnx1fEv", "__ZTVN4onnx1CE", "_Sleef_f"]
    text = fake_source(names, ["onnx::f()", "vtable for onnx::C", "Sleef_f"])

    code, data = text.split(".section __DATA,__data")
    assert "__ZN4onnx1fEv:\n  brk" in code and "_Sleef_f:\n  brk" in code and "__ZTV" not in code
    assert "__ZTVN4onnx1CE:\n  .space" in data
    assert fake_source([], []) == ""
    # The first operator asks it: a trap there is a wheel that computes nothing.
    no = fake_source(["_cpuinfo_initialize", "_cpuinfo_get_cores_count"], ["cpuinfo_initialize"] * 2)
    assert "_cpuinfo_initialize:\n  mov w0, #0\n  ret" in no and "_cpuinfo_get_cores_count:\n  brk" in no


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
    assert [(each["name"], each["version"]) for each in marked["components"]] == [("onnx", "fake")]
    assert marked["dependencies"] == [{"ref": "torch", "dependsOn": ["fake:onnx"]}]
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
