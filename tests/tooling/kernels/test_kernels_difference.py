"""Two wheels' kernels compared: names and metadata do not count, what is computed does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from mps_build.cli import main
from mps_build.kernels.code import compiler
from mps_build.kernels.code.body import Body, body_of, kernel_name
from mps_build.kernels.code.text import split_module
from small_kernels import GRID, air, bitcode, buffer, builtin, wheel

TEXT = air(
    "scaled",
    "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i",
    """
start:
  %j = zext i32 %i to i64
  %p = getelementptr inbounds %pair, ptr addrspace(1) %in, i64 %j, i32 1
  %x = load float, ptr addrspace(1) %p, align 4
  %is_small = fcmp olt float %x, 2.0
  br i1 %is_small, label %small, label %big
small:
  %y = call float @helper(float %x)
  br label %end
big:
  %z = fsub float %x, 3.0
  br label %end
end:
  %r = phi float [ %y, %small ], [ %z, %big ]
  %s = load float, ptr addrspace(3) @shared, align 4
  %t = fadd float %r, %s
  %q = getelementptr inbounds float, ptr addrspace(1) %out, i64 %j
  store float %t, ptr addrspace(1) %q, align 4
  ret void""",
    [buffer(0, "out"), buffer(1, "in"), builtin(2, GRID)],
    around=(
        "%pair = type { float, float }\n@shared = internal addrspace(3) global float undef, align 4\n"
        "define internal float @helper(float %v) {\n  %w = call float @other(float %v)\n  ret float %w\n}\n"
        "define internal float @other(float %v) {\n  %w = fmul float %v, %v\n  ret float %w\n}"
    ),
)

TBAA = '!91 = !{!92, !92, i64 0}\n!92 = !{!"float", !93}\n!93 = !{!"root"}\n'


def body(text: str) -> Body:
    printed = compiler.read_bitcode(bitcode(text))
    return body_of(split_module(printed), kernel_name(printed))


def _without_names(text: str) -> str:
    """Number all values and blocks, as a compiler that keeps no names does."""
    order = ("out", "in", "i", "start", "j", "p", "x", "is_small", "small", "y", "big", "z", "end", "r", "s", "t", "q")
    for number, name in enumerate(order):
        text = re.sub(rf"%{name}\b", f"%{number}", text)
        text = re.sub(rf"^{name}:", f"{number}:", text, flags=re.MULTILINE)
    return re.sub(r"%v\b", "%0", re.sub(r"%w\b", "%2", text)).replace("3:\n", "")


@pytest.mark.parametrize(
    "equal",
    [
        _without_names,
        lambda text: text.replace("%x", "%another"),
        lambda text: text.replace("small", "k1").replace("%big", "%k2").replace("big:", "k2:"),
        lambda text: text.replace("@helper", "@_Z6helperf").replace("@other", "@aaa"),
        lambda text: text.replace("%pair", '%"struct.metal::array.7"'),
        lambda text: text.replace("@shared", "@_ZZ6scaledE1s"),
        lambda text: text.replace("scaled", "scaled_again"),
        lambda text: text.replace("internal float @helper", "linkonce_odr hidden float @helper"),
        lambda text: text.replace("float @helper(float %v) {", "float @helper(float noundef %v) nounwind {"),
        lambda text: text + '!air.compile_options = !{!90}\n!90 = !{!"air.compile.denorms_disable"}\n',
        lambda text: text.replace("1) %p, align 4", "1) %p, align 4, !tbaa !91") + TBAA,
        lambda text: text.replace('!"in"', '!"input"'),
    ],
)  # fmt: skip
def test_names_and_metadata_do_not_count(equal: object) -> None:
    changed = equal(TEXT)  # type: ignore[operator]

    assert changed != TEXT
    assert body(changed) == body(TEXT)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fsub float %x, 3.0", "fsub float %x, 4.0"),
        ("fsub float %x, 3.0", "fsub float 3.0, %x"),
        ("fsub float %x, 3.0", "fsub nsz float %x, 3.0"),
        ("fsub float", "fadd float"),
        ("fcmp olt", "fcmp ult"),
        ("fcmp olt", "fcmp ole"),
        ("label %small, label %big", "label %big, label %small"),
        ("[ %y, %small ], [ %z, %big ]", "[ %x, %small ], [ %z, %big ]"),
        ("i64 %j, i32 1", "i64 %j, i32 0"),
        ("zext i32", "sext i32"),
        ("type { float, float }", "type { float, i64 }"),
        ("global float undef", "global float 0.0"),
        ("global float undef, align 4", "global float undef, align 16"),
        ("%w = fmul float %v, %v", "%w = fadd float %v, %v"),
        ("call float @helper(float %x)", "call float @other(float %x)"),
        ("store float %t", "store float %r"),
        ("store float %t", "store volatile float %t"),
        ("getelementptr inbounds float, ptr addrspace(1) %out", "getelementptr inbounds half, ptr addrspace(1) %out"),
    ],
)
def test_what_is_computed_counts(old: str, new: str) -> None:
    assert old in TEXT

    assert body(TEXT.replace(old, new)).digest != body(TEXT).digest


def test_an_instruction_more_is_counted_also_in_a_helper() -> None:
    longer = TEXT.replace("  %w = fmul float %v, %v\n", "  %u = fmul float %v, %v\n  %w = fmul float %u, %v\n")

    assert body(longer).instructions == body(TEXT).instructions + 1


def test_a_helper_that_nothing_calls_does_not_count() -> None:
    more = TEXT.replace(
        "define internal float @other", "define float @unused() {\n  ret float 0.0\n}\ndefine internal float @other"
    )

    assert body(more) == body(TEXT)


def _module(name: str, constant: float = 2.0, value: str = "x") -> bytes:
    text = air(
        name,
        "ptr addrspace(1) %out",
        f"  %{value} = load float, ptr addrspace(1) %out\n  %y = fmul float %{value}, {constant:e}\n"
        "  store float %y, ptr addrspace(1) %out\n  ret void",
        [buffer(0, "out")],
    )
    return bitcode(text)


def _compared(left: Path, right: Path, tmp_path: Path, *more: str) -> dict[str, dict[str, list[str]]]:
    file = tmp_path / "out.json"
    assert main("compare", [str(left), str(right), "--kernels", "--json", str(file), *more]) == 0
    found: dict[str, dict[str, list[str]]] = json.loads(file.read_text())
    return found


@pytest.mark.sandbox
def test_the_command_lists_same_changed_new_and_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left = {"kept": _module("kept"), "edited": _module("edited"), "removed": _module("removed")}
    right = {"kept": _module("kept", value="renamed"), "edited": _module("edited", 3.0), "added": _module("added")}

    found = _compared(wheel(tmp_path / "a", left), wheel(tmp_path / "b", right), tmp_path)

    assert found["kernels"] == {"same": ["kept"], "changed": ["edited"], "new": ["added"], "gone": ["removed"]}
    assert "kernels: 1 same, 1 changed, 1 new, 1 gone" in capsys.readouterr().out


@pytest.mark.sandbox
def test_a_kernel_that_changed_in_one_of_two_libraries_has_changed(tmp_path: Path) -> None:
    old = {"metal_basic": {"one": _module("one"), "two": _module("two")}, "metal_40": {"one": _module("one")}}
    new = {"metal_basic": {"one": _module("one"), "two": _module("two")}, "metal_40": {"one": _module("one", 5.0)}}

    found = _compared(wheel(tmp_path / "a", **old), wheel(tmp_path / "b", **new), tmp_path)

    assert (found["kernels"]["same"], found["kernels"]["changed"]) == (["two"], ["one"])


@pytest.mark.sandbox
def test_a_library_of_another_name_is_compared_with_what_there_is(tmp_path: Path) -> None:
    """2.6 to 2.8 carry metal_bfloat beside metal_basic, and 2.9 metal_basic alone."""
    old = wheel(tmp_path / "a", metal_basic={"one": _module("one")}, metal_bfloat={"two": _module("two")})
    new = wheel(tmp_path / "b", metal_basic={"one": _module("one"), "two": _module("two", 7.0)})

    found = _compared(old, new, tmp_path)["kernels"]

    assert (found["same"], found["changed"], found["new"], found["gone"]) == (["one"], ["two"], [], [])


@pytest.mark.sandbox
def test_bitcode_that_cannot_be_read_is_named_and_ends_nothing(tmp_path: Path) -> None:
    broken = b"\xde\xc0\x17\x0b" + bytes(80)
    left = wheel(tmp_path / "a", {"bad": broken, "good": _module("good")})
    right = wheel(tmp_path / "b", {"bad": broken + b"\1", "good": _module("good", 3.0)})

    found = _compared(left, right, tmp_path)["kernels"]

    assert found["changed"] == ["bad", "good"]
    assert found["unreadable"] == ["bad"]
