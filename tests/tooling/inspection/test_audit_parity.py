"""Two wheels side by side: equal where they must be, and each difference under its own name."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from mps_build import cli
from mps_build.common.reporting import SilentReporter
from mps_build.inspection.audit.parity import Parity, compare_wheels
from small_wheels import macho, metallib, torch_cpu, torch_files, write_wheel

CPU = "torch/lib/libtorch_cpu.dylib"


def compared(
    folder: Path, changed: dict[str, bytes], name: str = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
) -> Parity:
    for side in ("left", "right"):
        (folder / side).mkdir(exist_ok=True)
    left = write_wheel(folder / "left", torch_files())
    right = write_wheel(folder / "right", {**torch_files(), **changed}, name=name)
    return compare_wheels(left, right, SilentReporter())


def differing(parity: Parity) -> set[str]:
    return {part.name for part in parity.parts if not part.is_equal}


def test_a_wheel_equals_itself(tmp_path: Path) -> None:
    parity = compared(tmp_path, {})

    assert parity.is_same_source
    assert differing(parity) == set()
    assert all(part.left for part in parity.parts if part.name != "operator schemas")


def test_each_difference_has_its_part(tmp_path: Path) -> None:
    sections = dict(torch_cpu().sections)
    sections["__cstring"] = sections["__cstring"].replace(b"-O2", b"-O3") + b"aten::new_op(Tensor self) -> Tensor\0"
    sections["metal_40"] = metallib(os=(26, 2), functions=121)
    exports = (*torch_cpu().exports, b"__ZN2at3mps8new_kindERKNS_6TensorE")
    new = macho(replace(torch_cpu(), sections=sections, exports=exports))

    parity = compared(tmp_path, {CPU: new, "torch/__init__.py": b"", "torch/include/ATen/ops/z_mps_dispatch.h": b""})

    parts = {part.name: part for part in parity.parts}
    assert differing(parity) == {
        "files", "Python sources", "MPS dispatch headers", "at::mps operators", "operator schemas", "compiler flags",
        "kernels of metal_40", "at::, c10::, torch:: exports", "bytes of compiled files",
    }  # fmt: skip
    assert parts["at::mps operators"].only_right == ("new_kind",)
    assert parts["operator schemas"].only_right == ("aten::new_op(Tensor self) -> Tensor",)
    assert parts["kernels of metal_40"].only_right == ("kernel_120",)
    assert (parts["compiler flags"].only_left, parts["compiler flags"].only_right) == (("-O2",), ("-O3",))
    assert parts["Python sources"].changed == ("torch/__init__.py",)
    assert parts["bytes of compiled files"].changed == (CPU,)


def test_missing_metal_4_kernels_are_a_feature_loss_and_no_strong_difference(tmp_path: Path) -> None:
    sections = {name: data for name, data in torch_cpu().sections.items() if name != "metal_40"}

    parity = compared(tmp_path, {CPU: macho(replace(torch_cpu(), sections=sections))})

    (part,) = (part for part in parity.parts if part.name == "kernels of metal_40")
    assert (part.is_strong, part.left, part.right) == (False, 120, 0)  # as many as the audit counts
    assert "feature loss" in part.note
    assert parity.differing == ()


def test_two_pythons_of_one_build_are_equal_but_for_their_bytes(tmp_path: Path) -> None:
    files = torch_files(python="313")
    (tmp_path / "left").mkdir()
    left = write_wheel(tmp_path / "left", torch_files())
    right = write_wheel(tmp_path, files, name="torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl")

    assert compare_wheels(left, right, SilentReporter()).differing == ()


def test_the_command_prints_and_writes_the_parts(tmp_path: Path) -> None:
    left = write_wheel(tmp_path, torch_files())
    document = tmp_path / "out.json"

    assert cli.main("compare", [str(left), str(left), "--json", str(document)]) == 0
    assert cli.main("compare", [str(left), str(tmp_path / "gone.whl")]) == 2

    written = json.loads(document.read_text())
    assert (written["compared"], written["strong_parts_equal"], written["exit_code"]) == ("wheels", True, 0)


def test_a_wheel_that_cannot_be_read_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = write_wheel(tmp_path, torch_files())
    (tmp_path / "cut").mkdir()
    cut = tmp_path / "cut" / left.name
    cut.write_bytes(left.read_bytes()[:-9])

    assert cli.main("compare", [str(left), str(cut)]) == 2
    assert "cannot be read as a wheel" in capsys.readouterr().err


def test_kernels_are_counted_as_the_audit_counts_them(tmp_path: Path) -> None:
    audited = tmp_path / "audit.json"
    parity = compared(tmp_path, {})
    wheel = next((tmp_path / "left").glob("*.whl"))
    cli.main("audit_wheel", [str(wheel), "--json", str(audited)])

    binaries = json.loads(audited.read_text(encoding="utf-8"))["facts"]["macho"]
    rows = [each for each in binaries.values() if each.get("metallibs")]

    counted = {part.name: part.left for part in parity.parts}
    sections = {name: found["functions"] for each in rows for name, found in each["metallibs"].items()}
    assert sections
    assert {name: counted[f"kernels of {name}"] for name in sections} == sections


def test_another_minimum_macos_of_the_kernels_is_a_difference_of_its_own(tmp_path: Path) -> None:
    sections = dict(torch_cpu().sections)
    sections["metal_40"] = metallib(os=(26, 4), functions=120)

    assert "macOS of metal_40" in differing(compared(tmp_path, {CPU: macho(replace(torch_cpu(), sections=sections))}))
