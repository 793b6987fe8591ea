"""--large: launches whose growth their binder states, for trying does not find it; and loops that never end."""

from __future__ import annotations

import struct
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution import large_host, moves
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.execution.large_launch import call_of, tensors_of
from mps_build.kernels.families.shared.contracts import Case, Kernel
from mps_build.kernels.families.shared.large import Ask
from mps_build.kernels.machine.shift import Moved, Shift
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.program.launch import (
    Addresses,
    Growth,
    Known,
    Program,
    Step,
    Value,
    View,
    inout_buffer,
    input_buffer,
    output_buffer,
)
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.host_code import HostCode
from small_kernels import GRID, UNGUARDED, air, buffer, builtin, changed, compiled, contract, device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")

ROW = 4
FLOATS = struct.pack(f"<{ROW}f", *range(1, ROW + 1))
NARROW = "  %p = shl i32 %s, 2\n  %a = add i32 %p, %i\n  %j = sext i32 %a to i64"
WIDE = "  %u = zext i32 %s to i64\n  %p = shl i64 %u, 2\n  %m = zext i32 %i to i64\n  %j = add i64 %p, %m"


def verdict_of(
    monkeypatch: pytest.MonkeyPatch, text: str, step: Step, growth: Growth | None, when: str = ""
) -> Verdict:
    """Return what --large says of a kernel with one case."""
    program = Program(label="a case", steps=[step], checks=[], growth=growth)
    monkeypatch.setattr(moves, "find_binder", lambda _: lambda *_: iter([program]))
    monkeypatch.setattr(large_host, "rule_of", lambda *_: changed(asks=(), call="torch.good()", when=when))
    code = compiled(text)
    assert isinstance(code, Code)
    kernel = Kernel(name=step.kernel, metadata=code.metadata, contract=contract())
    case = Case(values=Values(0, step.kernel), kernels={}, references={})
    return module.examine_large(kernel, case, device({step.kernel: code}), ["mul i32 %a, %b"], UNGUARDED)


def launch(name: str, arguments: dict[str | int, Value], threads: int = ROW, group: int = ROW) -> Step:
    return Step(kernel=name, arguments=arguments, grid=(threads, 1, 1), threadgroup=(group, 1, 1), free=False)


def rows_by_counter(product: str) -> tuple[str, Step]:
    """Return a kernel: the row whose number is in `counter` is doubled, and its number is a result."""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read"), buffer(2, "counter", "int")]
    body = f"""
  %s = load i32, ptr addrspace(1) %counter, align 4
{product}
  %f = getelementptr float, ptr addrspace(1) %in, i64 %j
  %y = load float, ptr addrspace(1) %f, align 4
  %z = fadd float %y, %y
  %o = getelementptr float, ptr addrspace(1) %out, i64 %j
  store float %z, ptr addrspace(1) %o, align 4
  store i32 %s, ptr addrspace(1) %place, align 4
  ret void"""
    parameters = (
        "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(1) %counter, ptr addrspace(1) %place, i32 %i"
    )
    text = air("rows", parameters, body, [*arguments, buffer(3, "place", "int"), builtin(4, GRID)])
    step = launch(
        "rows",
        {
            "output": output_buffer(len(FLOATS)),
            "input": input_buffer(FLOATS),
            "counter": inout_buffer(bytes(4)),
            "place": output_buffer(4),
        },
    )
    return text, step


NUMBER = ((0, 4, 1),)
ROWS = Growth(
    bytes={"output": 4 * ROW, "input": 4 * ROW},
    values={"counter": NUMBER},
    results={"counter": NUMBER, "place": NUMBER},
)


@pytest.mark.parametrize(("product", "outcome"), [(WIDE, "passed"), (NARROW, "out_of_bounds")])
def test_numbers_that_count_up_in_a_buffer_and_in_a_result_are_stated(
    monkeypatch: pytest.MonkeyPatch, product: str, outcome: str
) -> None:
    found = verdict_of(monkeypatch, *rows_by_counter(product), ROWS)

    assert found.outcome == outcome
    assert ("across 2**31 elements" in found.reason) == (outcome != "passed")


@pytest.mark.parametrize(
    "growth",
    [
        None,
        replace(ROWS, results={"counter": NUMBER}),
        replace(ROWS, values={}),
        replace(ROWS, bytes={"output": 4 * ROW}),
        replace(ROWS, bytes={**ROWS.bytes, "nothing": 4}),
    ],
)
def test_what_is_not_stated_or_stated_wrongly_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, growth: Growth | None
) -> None:
    found = verdict_of(monkeypatch, *rows_by_counter(NARROW), growth)

    assert found.where["rank"] == "none of its cases becomes large"


@pytest.mark.parametrize(("wide", "outcome"), [(True, "passed"), (False, "wrong")])
def test_a_matrix_with_more_columns_has_rows_further_on_and_further_apart(
    monkeypatch: pytest.MonkeyPatch, wide: bool, outcome: str
) -> None:
    """Each of two rows is the weights doubled; offsets wrap at 2**32 bytes, where the result has 2**31 elements."""
    offset = (
        "  %b = zext i32 %i to i64"
        if wide
        else "  %c = shl i32 %i, 2\n  %d = zext i32 %c to i64\n  %b = lshr i64 %d, 2"
    )
    body = f"""
  %n = load i32, ptr addrspace(2) %columns, align 4
{offset}
  %f = getelementptr float, ptr addrspace(1) %in, i64 %b
  %y = load float, ptr addrspace(1) %f, align 4
  %z = fadd float %y, %y
  %m = zext i32 %i to i64
  %o = getelementptr float, ptr addrspace(1) %out, i64 %m
  store float %z, ptr addrspace(1) %o, align 4
  %w = zext i32 %n to i64
  %q = getelementptr float, ptr addrspace(1) %o, i64 %w
  store float %z, ptr addrspace(1) %q, align 4
  ret void"""
    arguments = [
        buffer(0, "output"),
        buffer(1, "input", access="read"),
        buffer(2, "columns", "uint", access="read", space=2),
        builtin(3, GRID),
    ]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(2) %columns, i32 %i"
    text = air("columns", parameters, body, arguments)
    values: dict[str | int, Value] = {
        "output": output_buffer(2 * len(FLOATS)), "input": input_buffer(FLOATS), "columns": struct.pack("<I", ROW)
    }  # fmt: skip
    more = 4 * ROW
    growth = Growth(
        groups=1,
        bytes={"output": more, "input": more},
        stretched={"output": (more, more)},
        words={"columns": ((0, 4, ROW),)},
    )

    found = verdict_of(monkeypatch, text, launch("columns", values), growth, when="columns > 0")
    unstretched = verdict_of(monkeypatch, text, launch("columns", values), replace(growth, stretched={}))

    assert found.outcome == outcome
    assert "across 2**31 elements of output" in found.reason or outcome == "passed"
    assert unstretched.where["rank"] == "none of its cases becomes large"


@pytest.mark.parametrize(("wide", "outcome"), [(True, "passed"), (False, "out_of_bounds")])
def test_tensors_behind_a_table_of_addresses_grow(monkeypatch: pytest.MonkeyPatch, wide: bool, outcome: str) -> None:
    """A chunk of four numbers, whose number is a constant, of a tensor whose address is in a table."""
    arguments = [
        buffer(0, "table", "long", access="read"),
        buffer(1, "chunk", "uint", access="read", space=2),
        builtin(2, GRID),
    ]
    place = (
        "  %b = shl i64 %j, 2"
        if wide
        else "  %t = trunc i64 %j to i32\n  %d = shl i32 %t, 2\n  %b = sext i32 %d to i64"
    )
    body = f"""
  %t0 = load ptr addrspace(1), ptr addrspace(1) %table, align 8
  %s = load i32, ptr addrspace(2) %chunk, align 4
{WIDE}
{place}
  %f = getelementptr i8, ptr addrspace(1) %t0, i64 %b
  %y = load float, ptr addrspace(1) %f, align 4
  %z = fadd float %y, %y
  store float %z, ptr addrspace(1) %f, align 4
  ret void"""
    text = air("chunks", "ptr addrspace(1) %table, ptr addrspace(2) %chunk, i32 %i", body, arguments)
    table = Addresses(data=bytes(8), places={0: inout_buffer(FLOATS)})
    growth = Growth(bytes={"table+0": 4 * ROW}, words={"chunk": NUMBER})

    found = verdict_of(monkeypatch, text, launch("chunks", {"table": table, "chunk": bytes(4)}), growth)

    assert found.outcome == outcome
    assert "2**31 bytes of table" in found.reason or outcome == "passed"


def goes_around(width: int) -> tuple[str, Step]:
    """Return a kernel whose four threads go around numbers, counted in so many bits, and add how many they saw."""
    arguments = [
        buffer(0, "output", "int"),
        buffer(1, "input", access="read"),
        buffer(2, "count", "uint", access="read", space=2),
        builtin(3, GRID),
    ]
    body = f"""
  %n = load i32, ptr addrspace(2) %count, align 4
  br label %again
again:
  %k = phi i32 [ %i, %0 ], [ %next, %on ]
  %c = phi i32 [ 0, %0 ], [ %more, %on ]
  %in_it = icmp ult i32 %k, %n
  br i1 %in_it, label %on, label %done
on:
  %w = zext i32 %k to i64
  %f = getelementptr float, ptr addrspace(1) %in, i64 %w
  %y = load volatile float, ptr addrspace(1) %f, align 4
  %more = add i32 %c, 1
  %sum = add i32 %k, 4
  %next = and i32 %sum, {(1 << width) - 1}
  br label %again
done:
  %v = zext i32 %i to i64
  %o = getelementptr i32, ptr addrspace(1) %out, i64 %v
  store i32 %c, ptr addrspace(1) %o, align 4
  ret void"""
    text = air(
        "around", "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(2) %count, i32 %i", body, arguments
    )
    given: dict[str | int, Value] = {"output": output_buffer(4 * ROW), "input": input_buffer(FLOATS)}
    return text, launch("around", {**given, "count": struct.pack("<I", ROW - 1)})


AROUND = Growth(
    bytes={"input": 4 * ROW},
    words={"count": ((0, 4, ROW),)},
    results={"output": tuple((4 * at, 4, 1) for at in range(ROW))},
)


@pytest.mark.parametrize(
    ("width", "last", "outcome"),
    [(16, 16383, "timeout"), (20, 16383, "passed"), (16, 17000, "passed")],
    ids=["wraps", "does not", "more than two times as many steps"],
)
def test_a_loop_that_ends_for_half_as_many_numbers_and_then_never_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, width: int, last: int, outcome: str
) -> None:
    """A counter of 16 bits goes past 65535 to 0; how long a launch may take is measured in the processor's time."""
    monkeypatch.setattr(module, "_targets", lambda *_: [(8200, "half"), (last, "all")])
    monkeypatch.setattr(module, "_PATIENT", 2)

    found = verdict_of(monkeypatch, *goes_around(width), AROUND)

    assert found.outcome == outcome
    assert found.reason.startswith("right up to half; not all" if outcome == "timeout" else "right up to ")


def test_what_keeps_arithmetic_small_counts_only_with_a_guard_that_is_as_small() -> None:
    ask = Ask(guard="canUse32BitIndexMath", then="other")
    rule = changed(asks=(ask,), small="each offset is that of an element")
    kernel = Kernel(name="k", metadata=None, contract=contract())  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_host, "rule_of", lambda *_: rule)
        hosts = {
            most: large_host.host_of(kernel, HostCode(calls={"launch": {"canUse32BitIndexMath": most}}))
            for most in (2**31 - 1, 2**32)
        }

    assert {most: bool(host.small) for most, host in hosts.items()} == {2**31 - 1: True, 2**32: False}


def test_the_call_of_a_tensor_whose_shape_is_not_known_has_no_strides() -> None:
    """The strides of its small view would not fit the only length that is known."""
    view = View(buffer=inout_buffer(bytes(80)), dtype=DTYPES["float"], shape=(2, 3), strides=(16, 2))
    code = compiled(air("k", "ptr addrspace(1) %x", "  ret void", [buffer(0, "x")]))
    assert isinstance(code, Code)
    kernel = Kernel(name="k", metadata=code.metadata, contract=contract())
    program = Program(label="", steps=[launch("k", {"x": view.buffer})], checks=[Known(got=view, want=b"")])
    shift = Shift(axis=0, units=5, bytes={"x": 4})
    move = moves.Move(program=program, step=program.steps[0], shift=shift, small=Moved())

    tensors: Sequence[large_host.Tensor] = tensors_of(kernel, move, shift)

    assert call_of(kernel, move, tensors, "f({x})", {}) == "f(torch.empty((25,), dtype=torch.float32, device='mps'))"
