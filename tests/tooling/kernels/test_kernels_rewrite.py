"""Code rewritten for this machine: addresses rounded down as on Apple's, and the bits of a bfloat kept."""

from __future__ import annotations

import multiprocessing
import struct
from typing import Any

import pytest
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.program.launch import Buffer, input_buffer, output_buffer
from small_kernels import GRID, air, buffer, builtin, compiled, device, launch

_WORDS = struct.Struct("<4I")


def _stored(kind: str, value: str, align: str = "") -> str:
    """Store one vector at byte 4 of a buffer."""
    body = f"""
  %q = getelementptr i8, ptr addrspace(1) %out, i64 4
  store {kind} {value}, ptr addrspace(1) %q{align}
  ret void"""
    return air("stored", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out", "uint"), builtin(1, GRID)])


def _added(byte: int) -> str:
    body = f"""
  %q = getelementptr i8, ptr addrspace(1) %out, i64 {byte}
  %o = call i32 @air.atomic.global.add.u.i32(ptr addrspace(1) %q, i32 7, i32 0, i32 2, i1 true)
  ret void"""
    around = "declare i32 @air.atomic.global.add.u.i32(ptr addrspace(1), i32, i32, i32, i1)"
    return air(
        "added", "ptr addrspace(1) %out, i32 %i", body, [buffer(0, "out", "uint"), builtin(1, GRID)], around=around
    )


def _left(text: str, name: str, *, simulated: bool) -> tuple[int, ...]:
    code = compiled(text, simulated=simulated)
    assert isinstance(code, Code), code
    out = Buffer(size=16, role="inout", data=bytes(16))
    ran = launch(device({name: code}), name, {0: out}, threads=1, group=1)
    return _WORDS.unpack(ran.contents[id(out)])


@pytest.mark.parametrize(
    ("kind", "value", "align", "left"),
    [
        ("<2 x i32>", "<i32 1, i32 2>", "", (1, 2, 0, 0)),  # a vector's own alignment is its size
        ("<2 x i32>", "<i32 1, i32 2>", ", align 8", (1, 2, 0, 0)),
        ("<2 x i32>", "<i32 1, i32 2>", ", align 4", (0, 1, 2, 0)),  # a packed one asks for no more than its elements
        ("<4 x i8>", "<i8 1, i8 0, i8 0, i8 0>", ", align 4", (0, 1, 0, 0)),
    ],
)
def test_a_vector_is_stored_at_an_address_that_fits_it(
    kind: str, value: str, align: str, left: tuple[int, ...]
) -> None:
    assert _left(_stored(kind, value, align), "stored", simulated=True) == left


def test_kernels_that_are_verified_store_where_they_say() -> None:
    assert _left(_stored("<2 x i32>", "<i32 1, i32 2>", ", align 8"), "stored", simulated=False) == (0, 1, 2, 0)


@pytest.mark.parametrize(("byte", "left"), [(4, (0, 7, 0, 0)), (6, (0, 7, 0, 0)), (11, (0, 0, 7, 0))])
def test_an_atomic_operation_goes_to_a_whole_word(byte: int, left: tuple[int, ...]) -> None:
    assert _left(_added(byte), "added", simulated=True) == left


pytest.importorskip("llvmlite")


# The sign of a zero's neighbour is the other operand's, of which nothing but a sum and this bit are used (nextafter).
_BODY = """
  %j = zext i32 %i to i64
  %px = getelementptr bfloat, ptr addrspace(1) %in, i64 %j
  %x = load bfloat, ptr addrspace(1) %px, align 2
  %py = getelementptr bfloat, ptr addrspace(1) %other, i64 %j
  %y = load bfloat, ptr addrspace(1) %py, align 2
  %nan = fcmp uno bfloat %x, %y
  br i1 %nan, label %sum, label %bits
sum:
  %t = fadd bfloat %x, %y
  %u = bitcast bfloat %t to i16
  br label %end
bits:
  %s = bitcast bfloat %y to i16
  %sign = and i16 %s, -32768
  %tiny = or i16 %sign, 1
  br label %end
end:
  %n = phi i16 [ %u, %sum ], [ %tiny, %bits ]
  %q = getelementptr i16, ptr addrspace(1) %out, i64 %j
  store i16 %n, ptr addrspace(1) %q, align 2
  ret void"""


def _kernel() -> str:
    names = [
        buffer(0, "out", "half"),
        buffer(1, "in", "half", access="read"),
        buffer(2, "other", "half", access="read"),
    ]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, ptr addrspace(1) %other, i32 %i"
    return air("signs", parameters, _BODY, [*names, builtin(3, GRID)])


def _run(x: bytes, y: bytes, answers: Any) -> None:
    out = output_buffer(len(x))
    arguments: dict[str | int, object] = {"out": out, "in": input_buffer(x), "other": input_buffer(y)}
    ran = launch(device({"signs": compiled(_kernel())}), "signs", arguments, threads=len(x) // 2, group=4)
    answers.put(ran.contents[id(out)])


def test_the_sign_of_a_bfloat_alone_is_compiled_and_right() -> None:
    x = struct.pack("<4H", 0x3F80, 0x0000, 0x7FC0, 0x8001)
    y = struct.pack("<4H", 0xBF80, 0x0001, 0x3F80, 0xFF80)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_run, args=(x, y, answers))
    child.start()
    child.join()

    assert child.exitcode == 0, "the compiler has ended its process"
    signs = struct.unpack("<4H", answers.get())
    assert (signs[0], signs[1], signs[3]) == (0x8001, 0x0001, 0x8001)
    assert signs[2] & 0x7FFF > 0x7F80
