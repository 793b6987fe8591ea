"""The emulator: guard pages, cooperative threads, races, limits; small kernels with one fault each."""

from __future__ import annotations

import struct

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.compiled import Code, Refused
from mps_build.kernels.machine.checks import (
    REVERSE,
    SHUFFLED,
    SIMDGROUPS_IN_TURN,
    BoundsBefore,
    Order,
    Poison,
    Races,
    TimeLimit,
)
from mps_build.kernels.program.launch import input_buffer, output_buffer
from small_kernels import GRID, air, buffer, builtin, compiled, device, doubled, floats, launch, pack_floats, summed


def test_a_kernel_runs_and_one_thread_too_many_is_caught_with_its_number() -> None:
    one = device({"doubled": compiled(doubled())})
    x, out = input_buffer(pack_floats(1, 2, 3, 4, 5)), output_buffer(20)

    assert floats(launch(one, "doubled", {"out": out, "in": x}, threads=5, group=2), out) == (2, 4, 6, 8, 10)

    (trouble,) = launch(one, "doubled", {"out": out, "in": x}, threads=6, group=2).troubles
    assert trouble.kind == "fault"
    assert trouble.thread == (5, 0, 0)
    assert "0 bytes behind the 20 bytes of in" in trouble.text


def test_an_access_before_a_buffer_is_caught_where_it_begins_at_a_page() -> None:
    one = device({"doubled": compiled(doubled(shift=-1))})
    x, out = input_buffer(pack_floats(1, 2)), output_buffer(8)

    at_end = launch(one, "doubled", {"out": out, "in": x}, threads=2, group=2)
    at_begin = launch(one, "doubled", {"out": out, "in": x}, threads=2, group=2, checks=(BoundsBefore(),))

    assert [each.text for each in at_end.troubles] == ["doubled writes 1 bytes before out"]
    assert at_begin.troubles[0].where["byte"] == -4


def test_a_write_to_an_input_is_reported() -> None:
    one = device({"doubled": compiled(doubled())})
    x = input_buffer(pack_floats(1, 2))
    target = input_buffer(pack_floats(0, 0))

    (trouble,) = launch(one, "doubled", {"out": target, "in": x}, threads=2, group=2).troubles

    assert trouble.kind == "write"
    assert "writes its input out" in trouble.text


@pytest.mark.parametrize("threads", [1, 31, 32, 33, 96, 1000, 1024])
@pytest.mark.parametrize("order", [0, REVERSE, SHUFFLED, SIMDGROUPS_IN_TURN])
def test_a_two_level_reduction_is_right_at_every_threadgroup_size(threads: int, order: int) -> None:
    one = device({"summed": compiled(summed())})
    values = [float(n % 17) for n in range(2 * threads)]
    x, out = input_buffer(pack_floats(*values)), output_buffer(8)

    ran = launch(
        one, "summed", {"out": out, "in": x}, threads=2 * threads, group=threads, checks=(Order(order), Races())
    )

    assert ran.troubles == []
    assert floats(ran, out) == (sum(values[:threads]), sum(values[threads:]))


@pytest.mark.parametrize(("level", "passes"), [(0, None), (2, "O1"), (0, "O1"), (1, "always-inline")])
def test_every_level_of_optimisation_gives_the_same_bits(level: int, passes: str | None) -> None:
    one = device({"summed": compiled(summed(), level=level, passes=passes)})
    values = [1 / (n + 1) for n in range(200)]
    x, out = input_buffer(pack_floats(*values)), output_buffer(4)

    def in_order(numbers: list[float]) -> float:
        total = numbers[0]
        for each in numbers[1:]:
            total = struct.unpack("<f", struct.pack("<f", total + each))[0]
        return total

    singles = list(struct.unpack("<200f", x.data))
    wanted = in_order([in_order(singles[at : at + 32]) for at in range(0, 200, 32)])
    assert floats(launch(one, "summed", {"out": out, "in": x}, threads=200, group=200), out) == (wanted,)


def test_a_dropped_barrier_is_a_race_and_changes_the_result() -> None:
    one = device({"summed": compiled(summed(barrier=False))})
    x, out = input_buffer(pack_floats(*range(96))), output_buffer(4)
    arguments: dict[str | int, object] = {"out": out, "in": x}

    watched = launch(one, "summed", arguments, threads=96, group=96, checks=(Races(),))
    in_turn = launch(one, "summed", arguments, threads=96, group=96, checks=(Order(SIMDGROUPS_IN_TURN),))

    assert [each.kind for each in watched.troubles] == ["race"]
    assert "threadgroup memory" in watched.troubles[0].text
    assert floats(in_turn, out) != (sum(range(96)),)


def test_threadgroup_memory_is_poison_before_every_threadgroup() -> None:
    body = """
  %v = load float, ptr addrspace(3) @left, align 4
  store float 1.0, ptr addrspace(3) @left, align 4
  %j = zext i32 %i to i64
  %q = getelementptr float, ptr addrspace(1) %out, i64 %j
  store float %v, ptr addrspace(1) %q, align 4
  ret void"""
    around = "@left = internal addrspace(3) global float undef, align 4"
    text = air("reads", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out"), builtin(1, GRID)], around=around)
    one = device({"reads": compiled(text)})
    out = output_buffer(8)

    poisons = [
        launch(one, "reads", {"out": out}, threads=2, group=1, checks=(Poison(each),)).contents[id(out)]
        for each in (0xA5, 0x5A)
    ]

    assert poisons == [b"\xa5" * 8, b"\x5a" * 8]


def test_lanes_that_take_no_part_are_counted() -> None:
    body = """
  %w = call i32 @air.simd_shuffle_down.u.i32(i32 %i, i16 16)
  %j = zext i32 %i to i64
  %q = getelementptr i32, ptr addrspace(1) %out, i64 %j
  store i32 %w, ptr addrspace(1) %q, align 4
  ret void"""
    around = "declare i32 @air.simd_shuffle_down.u.i32(i32, i16) convergent"
    arguments = [buffer(0, "out", "uint"), builtin(1, GRID)]
    text = air("down", "ptr addrspace(1) %out, i32 %i", body, arguments, around=around)
    one = device({"down": compiled(text)})
    out = output_buffer(80)

    ran = launch(one, "down", {"out": out}, threads=20, group=20)

    values = struct.unpack("<20I", ran.contents[id(out)])
    assert values[:4] == (16, 17, 18, 19)
    assert values[4:16] == (0,) * 12  # from lanes 20 to 31, which are not there
    assert values[16:] == (16, 17, 18, 19)  # from beyond the simdgroup: its own
    assert ran.inactive == 12


def test_matrices_are_multiplied_with_fused_steps() -> None:
    pointer = "ptr addrspace(1)"
    load = "<64 x float> @air.simdgroup_matrix_8x8_load.v64f32.p1f32"
    place = "i64 8, <2 x i64> zeroinitializer, i1 false"
    multiply = "air.simdgroup_matrix_8x8_multiply_accumulate.v64f32.v64f32.v64f32.v64f32"
    body = f"""
  %a = call {load}({pointer} %in, {place})
  %z = call <64 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float 1.0)
  %m = call <64 x float> @{multiply}(<64 x float> %a, <64 x float> %a, <64 x float> %z)
  call void @air.simdgroup_matrix_8x8_store.v64f32.p1f32(<64 x float> %m, {pointer} %out, {place})
  ret void"""
    around = f"""declare {load}({pointer}, i64, <2 x i64>, i1) convergent
declare <64 x float> @air.simdgroup_matrix_8x8_init_filled.v64f32.f32(float) convergent
declare <64 x float> @{multiply}(<64 x float>, <64 x float>, <64 x float>) convergent
declare void @air.simdgroup_matrix_8x8_store.v64f32.p1f32(<64 x float>, {pointer}, i64, <2 x i64>, i1) convergent"""
    arguments = [buffer(0, "out"), buffer(1, "in", access="read"), builtin(2, GRID)]
    text = air("product", f"{pointer} %out, {pointer} %in, i32 %i", body, arguments, around=around)
    one = device({"product": compiled(text)})
    matrix = [[float((3 * r + 5 * c) % 7) for c in range(8)] for r in range(8)]
    x, out = input_buffer(pack_floats(*sum(matrix, []))), output_buffer(256)  # noqa: RUF017

    ran = launch(one, "product", {"out": out, "in": x}, threads=32, group=32, free=False)

    wanted = [1 + sum(matrix[r][k] * matrix[k][c] for k in range(8)) for r in range(8) for c in range(8)]
    assert list(floats(ran, out)) == wanted


def test_a_division_by_zero_does_not_stop_the_machine() -> None:
    body = """
  %r = sdiv i32 %i, 0
  %z = sub i32 %i, %i
  %s = srem i32 %i, %z
  %t = sdiv i32 -2147483648, -1
  %sum = add i32 %s, 5
  %q = getelementptr i32, ptr addrspace(1) %out, i64 0
  store i32 %sum, ptr addrspace(1) %q, align 4
  ret void"""
    text = air("divides", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out", "int"), builtin(1, GRID)])
    one = device({"divides": compiled(text)})
    out = output_buffer(4)

    ran = launch(one, "divides", {"out": out}, threads=1, group=1)

    assert ran.troubles == []
    assert struct.unpack("<i", ran.contents[id(out)]) == (4,)


def test_an_endless_loop_ends_in_time() -> None:
    body = """
  br label %again
again:
  %v = load volatile float, ptr addrspace(1) %out, align 4
  br label %again"""
    text = air("spins", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out"), builtin(1, GRID)])
    one = device({"spins": compiled(text)})

    (trouble,) = launch(one, "spins", {"out": output_buffer(4)}, threads=1, group=1, checks=(TimeLimit(200),)).troubles

    assert trouble.kind == "timeout"


def test_a_kernel_that_writes_everywhere_is_stopped() -> None:
    body = """
  %j = zext i32 %i to i64
  %far = mul i64 %j, 123456789
  %q = getelementptr float, ptr addrspace(1) %out, i64 %far
  store float 1.0, ptr addrspace(1) %q, align 4
  ret void"""
    text = air("wild", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out"), builtin(1, GRID)])
    one = device({"wild": compiled(text)})

    (trouble,) = launch(one, "wild", {"out": output_buffer(4)}, threads=64, group=8).troubles

    assert trouble.kind == "fault"


_REFUSED = {
    "uses inttoptr": ("  %p = inttoptr i64 64 to ptr\n  store i32 1, ptr %p\n  ret void", ""),
    "inline assembly": ('  call void asm sideeffect "nop", ""()\n  ret void', ""),
    "system of type": ("  %r = call i32 @system(ptr null)\n  ret void", "declare i32 @system(ptr)"),
    "llvm.global_ctors": (
        "  ret void",
        "define internal void @first() {\n  ret void\n}\n"
        "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 1, ptr @first, ptr null }]",
    ),
    "through a pointer": ("  %f = load ptr, ptr addrspace(1) %out\n  call void %f()\n  ret void", ""),
    "air.read_everything.f32": (
        "  %r = call float @air.read_everything.f32(float 1.0)\n  ret void",
        "declare float @air.read_everything.f32(float)",
    ),
    "air.quad_sum.f32": (
        "  %r = call float @air.quad_sum.f32(float 1.0)\n  ret void",
        "declare float @air.quad_sum.f32(float)",
    ),
    "air.exp.f32 of type": (
        "  %r = call float @air.exp.f32(ptr null)\n  ret void",
        "declare float @air.exp.f32(ptr)",
    ),
    "it declares air.exp.f32 as external_weak": (
        "  %r = call float @air.exp.f32(float 1.0)\n  ret void",
        "declare extern_weak float @air.exp.f32(float)",
    ),
    "its global environ is external_weak": (
        "  %e = load ptr, ptr @environ\n  store ptr %e, ptr addrspace(1) %out\n  ret void",
        "@environ = extern_weak global ptr",
    ),
    "its global environ is external": (
        "  %e = load ptr, ptr @environ\n  store ptr %e, ptr addrspace(1) %out\n  ret void",
        "@environ = external global ptr",
    ),
    "it has aliases": ("  ret void", "define void @f() {\n  ret void\n}\n@g = alias void (), ptr @f"),
    "it has aliases ": (
        "  call void @g()\n  ret void",
        "define void @f() {\n  ret void\n}\n@g = alias void (), ptr @f",
    ),
    "it has aliases  ": (
        "  call void @g()\n  ret void",
        "define ptr @f() {\n  ret ptr null\n}\n@g = ifunc void (), ptr @f",
    ),
    "through a pointer ": (
        '  %"@air.exp.f32" = load ptr, ptr addrspace(1) %out\n  %r = call float %"@air.exp.f32"(float 1.0)\n  ret void',
        "declare float @air.exp.f32(float)",
    ),
    "a function's address": (
        "  store ptr @f, ptr addrspace(1) %out\n  ret void",
        "define void @f() {\n  ret void\n}",
    ),
    "holds a function's address": (
        "  %v = load ptr, ptr @table\n  store ptr %v, ptr addrspace(1) %out\n  ret void",
        "define void @f() {\n  ret void\n}\n@table = internal constant ptr @f",
    ),
    "not plain data: section": ("  ret void", '@x = internal global i32 1, section ".init_array"'),
    "not plain data: thread_local": ("  ret void", "@x = internal thread_local global i32 1"),
    "a block's address": (
        "  store ptr blockaddress(@bad, %there), ptr addrspace(1) %out\n  br label %there\nthere:\n  ret void",
        "",
    ),
    "has the attribute": (
        "  call void @f()\n  ret void",
        'define void @f() "probe-stack"="system" {\n  ret void\n}',
    ),
    "of an unknown kind": ("  ret void", 'module asm ".globl x"'),
    "uses invoke": (
        "  invoke void @f() to label %a unwind label %b\na:\n  ret void\nb:\n"
        "  %l = landingpad { ptr, i32 } cleanup\n  ret void",
        "define void @f() {\n  ret void\n}",
    ),
}
# A function that somebody wrote as Metal's compiler does not; LLVM's own verifier says so before we look.
_PERSONALITY = {"uses invoke": " personality ptr null"}


@pytest.mark.parametrize("why", _REFUSED)
def test_what_a_kernel_must_not_contain_is_not_compiled_and_said(why: str) -> None:
    body, around = _REFUSED[why]
    text = air("bad", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out"), builtin(1, GRID)], around=around)
    text = text.replace("i32 %i) {", f"i32 %i){_PERSONALITY.get(why, '')} {{")

    found = compiled(text)

    assert isinstance(found, Refused)
    assert why.strip() in found.reason
    assert found.fault == "refused"


def test_equal_instructions_have_one_digest_whatever_the_kernel_is_called() -> None:
    first, second = compiled(doubled()), compiled(doubled().replace("@doubled", "@other"))
    third = compiled(doubled("fmul float %v, %v"))

    assert isinstance(first, Code) and isinstance(second, Code) and isinstance(third, Code)
    assert first.body == second.body
    assert first.body != third.body


def test_bitcode_that_is_cut_off_is_refused() -> None:
    from mps_build.kernels.code.kernel import compile_kernel
    from small_kernels import bitcode

    found = compile_kernel(bitcode(doubled())[:200])

    assert isinstance(found, Refused)
    assert "cannot read the bitcode" in found.reason


def test_a_name_that_is_not_utf8_is_refused_and_no_fault_of_ours() -> None:
    from mps_build.kernels.code.kernel import addressing_of, compile_kernel
    from mps_build.kernels.code.model import Rejected
    from small_kernels import bitcode

    odd = bitcode(doubled()).replace(b"doubled", b"\xffoubled")
    with pytest.raises(Rejected, match="not UTF-8"):
        addressing_of(odd)
    found = compile_kernel(odd)

    assert isinstance(found, Refused)
    assert found.fault == "refused"
    assert "not UTF-8" in found.reason


_ATOMIC = """
  call void @air.wg.barrier(i32 2, i32 1)
  %old = call i32 @air.atomic.global.add.u.i32(ptr addrspace(1) %out, i32 1, i32 0, i32 2, i1 true)
{then}
  ret void"""
_ATOMICS = """
declare void @air.wg.barrier(i32, i32)
declare i32 @air.atomic.global.add.u.i32(ptr addrspace(1), i32, i32, i32, i1)"""


@pytest.mark.parametrize(
    ("then", "kinds"),
    [
        ("  %v = load i32, ptr addrspace(1) %out", ["race"]),
        ("  store i32 %i, ptr addrspace(1) %out", ["race"]),
        ("  call void @air.wg.barrier(i32 1, i32 1)\n  %v = load i32, ptr addrspace(1) %out", []),
        ("  %q = getelementptr i32, ptr addrspace(1) %out, i32 1\n  %v = load i32, ptr addrspace(1) %q", []),
        ("", []),
    ],
)
def test_an_atomic_operation_and_a_plain_access_may_not_meet(then: str, kinds: list[str]) -> None:
    arguments = [buffer(0, "out", "uint"), builtin(1, GRID)]
    body = _ATOMIC.format(then=then)
    text = air("counts", "ptr addrspace(1) %out, i32 %i", body, arguments, around=_ATOMICS)
    one = device({"counts": compiled(text)})

    ran = launch(one, "counts", {"out": output_buffer(8)}, threads=64, group=64, checks=(Races(),))

    assert [each.kind for each in ran.troubles] == kinds


@pytest.mark.parametrize(("entries", "accepted"), [("[0 x { i32, ptr, ptr }] zeroinitializer", True),
                                                   ("[1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } "
                                                    "{ i32 65535, ptr @made, ptr null }]", False)])  # fmt: skip
def test_only_an_empty_table_of_constructors_is_accepted(entries: str, accepted: bool) -> None:
    around = f"@llvm.global_ctors = appending global {entries}\ndefine void @made() {{\n  ret void\n}}"
    text = air("k", "ptr addrspace(1) %out", "  ret void", [buffer(0, "out")], around=around)

    assert isinstance(compiled(text), Code) is accepted
