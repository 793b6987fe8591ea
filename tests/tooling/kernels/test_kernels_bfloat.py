"""Bits of a bfloat: LLVM's assertion on a lone sign (in a process of its own), and every bit kept."""

from __future__ import annotations

import multiprocessing
import struct
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.program.launch import input_buffer, output_buffer
from small_kernels import GRID, air, buffer, builtin, compiled, device, launch

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
