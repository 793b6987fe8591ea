"""Parity of a rehearsal's wheel: what is read of a binary, how differences get their reason, what the page says."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.inspection.audit.symbols import Import, read_linked_names
from mps_build.inspection.limits import Malformed
from mps_build.wheel_build.rehearsal.whole.comparing import parity_page
from mps_build.wheel_build.rehearsal.whole.parity import (
    REASONS,
    UNEXPLAINED,
    Reason,
    WholeParity,
    compared,
    untagged,
    whole_parity,
)

_METAL = "/System/Library/Frameworks/Metal.framework/Versions/A/Metal"
_SYSTEM = "/usr/lib/libSystem.B.dylib"


def _dylib(symbols: list[tuple[str, int, int, int]], *, selectors: str = "", extra: bytes = b"") -> bytes:
    """Return a small dylib: loads Metal weakly and libSystem; symbols are (name, type, description, value)."""
    names, entries = b"\0", b""
    for name, kind, description, value in symbols:
        entries += struct.pack("<IBBHQ", len(names), kind, 1, description, value)
        names += name.encode() + b"\0"
    text = selectors.encode() + extra
    commands = [_load(0x80000018, _METAL), _load(0x0C, _SYSTEM)]
    size = sum(map(len, commands)) + 72 + 80 + 24
    at = 32 + size
    section = struct.pack(
        "<16s16sQQIIIIIIII", b"__objc_methname", b"__TEXT", at, len(selectors), at, 0, 0, 0, 0, 0, 0, 0
    )
    commands.append(
        struct.pack("<II16sQQQQIIII", 0x19, 152, b"__TEXT", 0, at + len(text), 0, at + len(text), 5, 5, 1, 0) + section
    )
    table = at + len(text)
    commands.append(struct.pack("<6I", 0x02, 24, table, len(symbols), table + len(entries), len(names)))
    header = struct.pack("<8I", 0xFEEDFACF, 0x0100000C, 0, 6, len(commands), size, 0, 0)
    return header + b"".join(commands) + text + entries + names


def _load(number: int, path: str) -> bytes:
    packed = path.encode() + b"\0"
    packed += b"\0" * (-len(packed) % 8)
    return struct.pack("<6I", number, 24 + len(packed), 24, 0, 0, 0) + packed


def _undefined(name: str, ordinal: int, *, weak: bool = False) -> tuple[str, int, int, int]:
    return (name, 0x01, ordinal << 8 | (0x40 if weak else 0), 0)


def test_imports_have_their_library_and_weak_mark_and_exports_tell_inline_ones() -> None:
    found = read_linked_names(
        _dylib(
            [
                _undefined("_MTLCopyAllDevices", 1, weak=True),
                _undefined("_malloc", 2),
                _undefined("__Py_None", 0xFE),
                ("__ZN2at3mps2mmEv", 0x0F, 0, 0x1000),
                ("__ZN3c106inlineEv", 0x0F, 0x80, 0x1000),
                ("__ZL5local", 0x0E, 0, 0x1000),
                ("__ZN6hiddenE", 0x1F, 0, 0x1000),
            ],
            selectors="newBuffer\0commit\0",
        )
    )

    assert found.imports == (
        Import("_MTLCopyAllDevices", _METAL, True),
        Import("_malloc", _SYSTEM, False),
        Import("__Py_None", "any library", False),
    )
    assert found.exports == {"__ZN2at3mps2mmEv": False, "__ZN3c106inlineEv": True}
    assert found.selectors == {"newBuffer", "commit"}
    assert found.commands == {"LC_LOAD_WEAK_DYLIB", "LC_LOAD_DYLIB", "LC_SEGMENT_64", "LC_SYMTAB"}


def test_a_symbol_table_that_is_cut_off_is_said() -> None:
    with pytest.raises(Malformed, match="outside the file"):
        read_linked_names(_dylib([_undefined("_malloc", 2)])[:-4])


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("__ZNSt3__16vectorB9nie220108Ev", "__ZNSt3__16vectorEv"),
        ("__ZNSt3__16vectorB7v160006Ev", "__ZNSt3__16vectorEv"),
        ("__ZN4B7abcEv", "__ZN4B7abcEv"),
        ("__ZN1B4nameEv", "__ZN1B4nameEv"),
    ],
)
def test_abi_tags_go_and_other_letters_stay(name: str, plain: str) -> None:
    assert untagged(name) == plain


def test_each_difference_has_the_first_reason_that_fits_its_part_and_side() -> None:
    reasons = [
        Reason(part="^files$", side="official", names=r"^torch/bin/protoc", text="protobuf is the system's"),
        Reason(part="exported", side="official", names="protoc", text="wrong part"),
        Reason(part="^files$", side="ours", names=".", text="ours only"),
    ]
    done = compared("files", ["a", "extra"], ["a", "torch/bin/protoc", "gone"], reasons)

    assert dict(done.differing) == {
        ("ours", "ours only"): ("extra",),
        ("official", "protobuf is the system's"): ("torch/bin/protoc",),
        ("official", UNEXPLAINED): ("gone",),
    }
    assert (done.both, done.is_equal, done.is_explained) == (1, False, False)
    assert done.share == pytest.approx(1 / 3)
    assert compared("files", ["a"], ["a"], reasons).is_equal


def test_no_reason_of_ours_explains_a_missing_registration_selector_or_class() -> None:
    for part in ("MPS registrations", "MPS dispatch headers", "Objective-C classes"):
        done = compared(part, [], ["abs.out", "newBuffer", "MPSGraph"], REASONS)
        assert not done.is_explained, part


_OPS = "torch/include/ATen/ops/"
_OPERATOR = """\
struct TORCH_API {name} {{
  static constexpr const char* name = "aten::{name}";
  static constexpr const char* overload_name = "";
  static at::Tensor call(const at::Tensor & self);
}};
"""
_DECLARED = "TORCH_API at::Tensor {name}(const at::Tensor & self);\n"


def _wheel(path: Path, cpu: bytes, *, on_mps: tuple[str, ...] = ("abs", "cos")) -> Path:
    """Write a wheel whose headers know `abs` and `cos`, those `on_mps` with a kernel there."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch/lib/libtorch_cpu.dylib", cpu)
        for name in ("abs", "cos"):
            archive.writestr(f"{_OPS}{name}_ops.h", _OPERATOR.format(name=name))
        for name in on_mps:
            archive.writestr(f"{_OPS}{name}_mps_dispatch.h", _DECLARED.format(name=name))
    return path


def test_two_wheels_are_compared_part_by_part_and_shaders_are_looked_for(tmp_path: Path) -> None:
    shader = "kernel void fill() {}"
    ours = _wheel(
        tmp_path / "torch-2.6.0+rehearsal.linux-cp313-cp313-macosx_13_0_arm64.whl",
        _dylib([_undefined("_malloc", 2)], selectors="commit\0", extra=shader.encode()),
    )
    official = _wheel(
        tmp_path / "torch-2.6.0-cp313-none-macosx_11_0_arm64.whl",
        _dylib([_undefined("_malloc", 2), _undefined("_OBJC_CLASS_$_MPSGraph", 1, weak=True)], selectors="commit\0"),
    )
    parity = whole_parity(ours, official, {"Fill.metal": shader, "Other.metal": "kernel void other() {}"})

    assert parity.part("selectors").is_equal and parity.part("MPS dispatch headers").is_equal
    assert parity.part("Objective-C classes").differing == {("official", UNEXPLAINED): ("MPSGraph",)}
    assert dict(parity.shaders) == {"Fill.metal": True, "Other.metal": False}
    assert parity.document()["shader_sources"] == {"in_the_tree": 2, "inside": 1}
    assert parity.unexplained >= 1


def test_an_operator_without_its_kernel_is_a_difference_by_op_coverage(tmp_path: Path) -> None:
    cpu = _dylib([_undefined("_malloc", 2)])
    ours = _wheel(tmp_path / "torch-2.6.0+rehearsal.linux-cp313-cp313-macosx_13_0_arm64.whl", cpu, on_mps=("abs",))
    official = _wheel(tmp_path / "torch-2.6.0-cp313-none-macosx_11_0_arm64.whl", cpu)

    part = whole_parity(ours, official, {}).part("operators and what they do on MPS (op_coverage)")

    assert (part.ours, part.official, part.both) == (2, 2, 1)
    assert all(name.startswith("cos: ") for names in part.differing.values() for name in names)
    assert not part.is_explained


def test_what_is_not_a_wheel_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_text("no")

    with pytest.raises(UsageError, match="cannot be compared"):
        whole_parity(tmp_path / "a.whl", tmp_path / "a.whl", {})


def test_the_page_says_what_differs_why_and_what_is_not_shown() -> None:
    part = compared("files", ["a"], ["a", "torch/bin/protoc"], [])
    parity = WholeParity(official="torch-2.6.0-cp313-none-macosx_11_0_arm64.whl", parts=(part,), shaders={"a": True})
    page = parity_page(
        parity,
        wheel="torch-2.6.0+rehearsal.linux.whl",
        command="nox -s rehearse -- v2.6.0 --darwin --wheel",
        findings=[{"level": "warning", "rule": "M12", "member": "", "evidence": "no metal_basic"}],
        fakes={"onnx": 3},
        missing=["distributed"],
    )

    assert "it was never loaded on a Mac" in page
    assert "| files | 1 | 2 | 1 | 1, 1 not explained |" in page
    assert "only official, 1: not explained. `torch/bin/protoc`" in page
    assert "warning M12" in page and "| onnx | 3 |" in page and "- distributed" in page
