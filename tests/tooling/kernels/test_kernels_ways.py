"""--large: the ways in which a contract's small case becomes a large launch, each with a kernel that needs it."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution import large_host, moves
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.families.shared.contracts import Case, Kernel
from mps_build.kernels.families.shared.large import Rule
from mps_build.kernels.program.launch import Program, Step, Value, inout_buffer, input_buffer, output_buffer
from mps_build.kernels.program.values import Values
from mps_build.kernels.read.host_code import HostCode
from small_kernels import CUT, GRID, LANE, RULE, UNGUARDED, air, buffer, builtin, changed, compiled, contract, device

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


def scattered_cases(kernel: Kernel, _: Case) -> Iterator[Program]:
    count = PARTS * GIVEN
    arguments: dict[str | int, Value] = {
        "output": inout_buffer(bytes(4 * PARTS * PART)),
        "input": input_buffer(struct.pack(f"<{count}f", *range(1, count + 1))),
        "index": input_buffer(struct.pack(f"<{count}i", *PLACES)),
        "error_buffer": inout_buffer(bytes(ERRORS)),
    }
    step = Step(kernel=kernel.name, arguments=arguments, grid=(count, 1, 1), threadgroup=(GIVEN, 1, 1))
    yield Program(label="4 into 8, four times", steps=[step], checks=[])


def verdict_of(
    monkeypatch: pytest.MonkeyPatch, text: str, cases: Callable[[Kernel, Case], Iterator[Program]], *ways: str
) -> Verdict:
    """Return what --large says of a kernel of the test's own contract, tested in these ways alone."""
    monkeypatch.setattr(moves, "find_binder", lambda _: cases)
    monkeypatch.setattr(moves, "WAYS", ways)
    monkeypatch.setattr(large_host, "rule_of", lambda *_: RULE)
    code = compiled(text)
    assert isinstance(code, Code)
    name = code.metadata.function
    kernel = Kernel(name=name, metadata=code.metadata, contract=contract())
    case = Case(values=Values(0, name), kernels={}, references={})
    return module.examine_large(kernel, case, device({name: code}), ["shl i32 %r, 3"], UNGUARDED)


def test_threads_that_write_anywhere_in_their_part_of_the_output_are_moved_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As max_unpool does; its buffer of messages had taken the room that the tensors need."""
    narrow = verdict_of(monkeypatch, scattered(wide=False), scattered_cases, "x")

    assert narrow.outcome == "out_of_bounds"
    assert "not across 2**31 elements of output" in narrow.reason
    sizes = narrow.where["sizes"]
    assert isinstance(sizes, dict)
    assert sizes["error_buffer"] == ERRORS
    assert verdict_of(monkeypatch, scattered(wide=True), scattered_cases, "x").outcome == "passed"


def counted() -> str:
    """Return a kernel: out[i] = base + i, as what draws random numbers counts them."""
    arguments = [buffer(0, "output", "int"), buffer(1, "base", "long", access="read", space=2), builtin(2, GRID)]
    body = """
  %b = load i64, ptr addrspace(2) %base, align 8
  %w = zext i32 %i to i64
  %s = add i64 %b, %w
  %v = trunc i64 %s to i32
  %n = shl i32 %i, 2
  %j = zext i32 %n to i64
  %o = getelementptr i8, ptr addrspace(1) %out, i64 %j
  store i32 %v, ptr addrspace(1) %o, align 4
  ret void"""
    return air("counted", "ptr addrspace(1) %out, ptr addrspace(2) %base, i32 %i", body, arguments)


@pytest.mark.parametrize(("base", "outcome"), [(1 << 40, "wrong"), (7, "overflow_candidate")])
def test_a_counter_starts_earlier_by_as_many_threads_as_the_launch_is_moved(
    monkeypatch: pytest.MonkeyPatch, base: int, outcome: str
) -> None:
    """It cannot, where it starts near zero."""

    def cases(kernel: Kernel, _: Case) -> Iterator[Program]:
        arguments: dict[str | int, Value] = {"output": output_buffer(64), "base": struct.pack("<q", base)}
        step = Step(kernel=kernel.name, arguments=arguments, grid=(16, 1, 1), threadgroup=(4, 1, 1), free=False)
        yield Program(label="16 numbers", steps=[step], checks=[])

    found = verdict_of(monkeypatch, counted(), cases, "x")

    assert found.outcome == outcome
    assert ("not across 2**32 bytes of output" in found.reason) == (outcome == "wrong")


def rows_of_pools() -> str:
    """Return a kernel: out[start[i] * 4 + k] = in[start[i] * 4 + k] for k below 4; the product is of 32 bits."""
    arguments = [
        buffer(0, "output"),
        buffer(1, "input", access="read"),
        buffer(2, "start", "int", access="read"),
        builtin(3, GRID),
    ]
    copies = "\n".join(
        f"""
  %a{k} = add i32 %p, {k}
  %j{k} = zext i32 %a{k} to i64
  %f{k} = getelementptr float, ptr addrspace(1) %in, i64 %j{k}
  %y{k} = load float, ptr addrspace(1) %f{k}, align 4
  %o{k} = getelementptr float, ptr addrspace(1) %out, i64 %j{k}
  store float %y{k}, ptr addrspace(1) %o{k}, align 4"""
        for k in range(4)
    )
    body = f"""
  %w = zext i32 %i to i64
  %x = getelementptr i32, ptr addrspace(1) %start, i64 %w
  %v = load i32, ptr addrspace(1) %x, align 4
  %p = shl i32 %v, 2
{copies}
  ret void"""
    return air("pools", "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(1) %start, i32 %i", body, arguments)


def test_an_index_is_raised_with_every_tensor_that_it_points_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the pools of a sparse softmax: their first rows are those of what is read and of what is written."""

    def cases(kernel: Kernel, _: Case) -> Iterator[Program]:
        arguments: dict[str | int, Value] = {
            "output": output_buffer(80),
            "input": input_buffer(struct.pack("<20f", *range(1, 21))),
            "start": input_buffer(struct.pack("<3i", 3, 0, 4)),
        }
        step = Step(kernel=kernel.name, arguments=arguments, grid=(3, 1, 1), threadgroup=(1, 1, 1))
        yield Program(label="3 of 5 rows", steps=[step], checks=[])

    found = verdict_of(monkeypatch, rows_of_pools(), cases, "raised")

    assert found.outcome == "wrong"
    assert "not across 2**32 elements of" in found.reason


def carried() -> str:
    """Return a kernel: out[i] = carry[i / 4] + 1, the carries being what an earlier launch has left."""
    arguments = [buffer(0, "output"), buffer(1, "carry"), builtin(2, GRID)]
    body = """
  %r = lshr i32 %i, 2
  %w = zext i32 %r to i64
  %f = getelementptr float, ptr addrspace(1) %carry, i64 %w
  %x = load float, ptr addrspace(1) %f, align 4
  %y = fadd float %x, 1.0
  %n = shl i32 %i, 2
  %j = zext i32 %n to i64
  %o = getelementptr i8, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %o, align 4
  ret void"""
    return air("carried", "ptr addrspace(1) %out, ptr addrspace(1) %carry, i32 %i", body, arguments)


def test_what_an_earlier_launch_left_is_moved_though_this_one_only_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def cases(kernel: Kernel, _: Case) -> Iterator[Program]:
        arguments: dict[str | int, Value] = {
            "output": output_buffer(64),
            "carry": inout_buffer(struct.pack("<4f", 1, 2, 3, 4)),
        }
        step = Step(kernel=kernel.name, arguments=arguments, grid=(16, 1, 1), threadgroup=(4, 1, 1), free=False)
        yield Program(label="4 blocks of 4", steps=[step], checks=[])

    assert verdict_of(monkeypatch, carried(), cases, "x").outcome == "wrong"


def shared() -> str:
    """Return a kernel that doubles by way of threadgroup memory whose length the host gives."""
    arguments = [buffer(0, "output"), buffer(1, "local", space=3), builtin(2, GRID), builtin(3, LANE)]
    body = """
  %l = zext i32 %t to i64
  %m = getelementptr float, ptr addrspace(3) %local, i64 %l
  store float 3.0, ptr addrspace(3) %m, align 4
  %y = load float, ptr addrspace(3) %m, align 4
  %n = shl i32 %i, 2
  %j = zext i32 %n to i64
  %o = getelementptr i8, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %o, align 4
  ret void"""
    return air("shared", "ptr addrspace(1) %out, ptr addrspace(3) %local, i32 %i, i32 %t", body, arguments)


def test_a_kernel_with_threadgroup_memory_of_the_hosts_length_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    def cases(kernel: Kernel, _: Case) -> Iterator[Program]:
        step = Step(
            kernel=kernel.name,
            arguments={"output": output_buffer(64)},
            grid=(16, 1, 1),
            threadgroup=(4, 1, 1),
            threadgroup_bytes={"local": 16},
            free=False,
        )
        yield Program(label="16", steps=[step], checks=[])

    assert verdict_of(monkeypatch, shared(), cases, "x").outcome == "wrong"


SMALL = changed(asks=(), small="it has at most 1024 threadgroups")


def test_a_launch_whose_numbers_the_host_keeps_small_passes_unrun_if_the_wheel_asks_what_the_rule_says() -> None:
    guarded = changed(asks=RULE.asks, small="pieces of fewer than 2**31 elements")
    code = compiled(counted())
    assert isinstance(code, Code)
    kernel = Kernel(name="counted", metadata=code.metadata, contract=contract())
    case = Case(values=Values(0, "counted"), kernels={}, references={})

    def said(rule: Rule, host: HostCode) -> str:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(large_host, "rule_of", lambda *_: rule)
            patched.setattr(moves, "find_binder", lambda _: lambda *_: iter(()))
            return module.examine_large(kernel, case, device({"counted": code}), ["add i32 %a, %b"], host).outcome

    assert said(SMALL, UNGUARDED) == "passed"
    assert said(SMALL, HostCode(calls={})) == "overflow_candidate"  # the wheel has no such function
    assert said(guarded, CUT) == "passed"
    assert said(guarded, UNGUARDED) == "overflow_candidate"
