"""What asks for an alignment goes to the address rounded down to it, where the simulated device runs a kernel."""

from __future__ import annotations

import struct

import pytest
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.program.launch import Buffer
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
