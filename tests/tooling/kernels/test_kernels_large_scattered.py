"""--large: launches whose threads write where indices say, anywhere in their own part of the output (max_unpool)."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator

import pytest

pytest.importorskip("llvmlite")

from large_rules import RULE, UNGUARDED, contract
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution import large_host, moves
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.families.shared.contracts import Case, Kernel
from mps_build.kernels.program.launch import Program, Step, Value, inout_buffer, input_buffer
from mps_build.kernels.program.values import Values
from small_kernels import GRID, air, buffer, builtin, compiled, device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")

# Four values go into each part of eight; which of its places, no two parts have in common.
PARTS, GIVEN, PART = 4, 4, 8
PLACES = (5, 0, 3, 6, 1, 7, 2, 4, 6, 2, 0, 7, 3, 1, 5, 2)
ERRORS = 16384


def scattered(wide: bool) -> str:
    """Return a kernel: out[(i / 4) * 8 + index[i]] = in[i]; the product is of 32 bits unless `wide`."""
    arguments = [
        buffer(0, "output"),
        buffer(1, "input", access="read"),
        buffer(2, "index", "int", access="read"),
        buffer(3, "error_buffer", "int"),
    ]
    product = (
        "  %u = zext i32 %r to i64\n  %p = shl i64 %u, 3\n  %m = sext i32 %v to i64\n  %j = add i64 %p, %m"
        if wide
        else "  %p = shl i32 %r, 3\n  %a = add i32 %p, %v\n  %j = sext i32 %a to i64"
    )
    body = f"""
  %w = zext i32 %i to i64
  %r = lshr i32 %i, 2
  %x = getelementptr i32, ptr addrspace(1) %index, i64 %w
  %v = load i32, ptr addrspace(1) %x, align 4
{product}
  %f = getelementptr float, ptr addrspace(1) %in, i64 %w
  %y = load float, ptr addrspace(1) %f, align 4
  %o = getelementptr float, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %o, align 4
  %bad = icmp ugt i32 %v, 7
  br i1 %bad, label %said, label %done
said:
  store i32 1, ptr addrspace(1) %errors, align 4
  br label %done
done:
  ret void"""
    parameters = ", ".join(f"ptr addrspace(1) %{each}" for each in ("out", "in", "index", "errors"))
    return air("scattered", f"{parameters}, i32 %i", body, [*arguments, builtin(4, GRID)])


def cases(kernel: Kernel, _: Case) -> Iterator[Program]:
    count = PARTS * GIVEN
    arguments: dict[str | int, Value] = {
        "output": inout_buffer(bytes(4 * PARTS * PART)),
        "input": input_buffer(struct.pack(f"<{count}f", *range(1, count + 1))),
        "index": input_buffer(struct.pack(f"<{count}i", *PLACES)),
        "error_buffer": inout_buffer(bytes(ERRORS)),
    }
    step = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(GIVEN, 1, 1))
    yield Program(label="4 into 8, four times", steps=[step], checks=[])


def asked(monkeypatch: pytest.MonkeyPatch, *, wide: bool) -> Verdict:
    monkeypatch.setattr(moves, "find_binder", lambda _: cases)
    monkeypatch.setattr(moves, "WAYS", ("x",))
    monkeypatch.setattr(large_host, "rule_of", lambda *_: RULE)
    code = compiled(scattered(wide))
    assert isinstance(code, Code)
    kernel = Kernel(name="scattered", metadata=code.metadata, contract=contract())
    case = Case(values=Values(0, "scattered"), kernels={}, references={})
    return module.examine_large(kernel, case, device({"scattered": code}), ["shl i32 %r, 3"], UNGUARDED)


def test_threads_that_write_anywhere_in_their_part_of_the_output_are_moved_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    narrow = asked(monkeypatch, wide=False)

    assert narrow.outcome == "out_of_bounds"
    assert "not across 2**31 elements of output" in narrow.reason
    assert asked(monkeypatch, wide=True).outcome == "passed"


def test_a_buffer_of_messages_does_not_grow_with_the_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had taken the room that the tensors needed: none of them reached 2**32 bytes."""
    found = asked(monkeypatch, wide=False)

    sizes = found.where["sizes"]
    assert isinstance(sizes, dict)
    assert sizes["error_buffer"] == ERRORS
    assert sizes["output"] > 4 << 31
