"""Launches over tensors of many gigabytes of which only a few pages exist, and of which only a few threadgroups run."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..code.compiled import Code
from ..program.errors import WrongBinding
from ..program.launch import Addresses, Buffer, Step
from .checks import FORWARD
from .left import Launch, Left, Place
from .runtime import Report, Run
from .shift import Shift, grown, outputs_of

POISON = 0xA5
# A launch here is a few threadgroups: what takes longer runs wild, and would fill the memory.
_MILLISECONDS = 250
# Where the slots of tables' buffers begin, and how many there are for each table.
_INNER, _MOST_INNER = 40, 4


def largest_size() -> int:
    """Return the most bytes that a buffer may have here: 2**32 elements of 8 bytes, and some more."""
    return (1 << 36) - (1 << 25)


class Launcher(Protocol):
    """What launches a kernel in this process."""

    library: Any
    codes: Mapping[str, Code]

    def prepare(self, code: Code) -> None:
        """Open a kernel's threadgroup memory."""

    def entry(self, code: Code) -> int:
        """Return where a kernel's code begins in memory."""


def run_shifted(
    device: Launcher, step: Step, shift: Shift, groups: Sequence[int] | None = None
) -> tuple[Left, list[bytes]]:
    """Run a step's own threadgroups (or some of them along the axis) as the shift makes them.

    Raises:
        WrongBinding: a buffer becomes larger than there is room for, or a length does not fit its word.
    """
    library, code = device.library, device.codes[step.kernel]
    library.rt_release()
    device.prepare(code)
    pointers = (ctypes.c_void_p * max(len(code.metadata.arguments), 1))()
    kept: dict[str | int, list[tuple[int, int]]] = {}
    places = []
    for slot, argument in enumerate(each for each in code.metadata.arguments if each.is_buffer):
        key = argument.name if argument.name in step.arguments else argument.index
        if (shared := step.threadgroup_bytes.get(argument.name)) is not None:
            at = _place(library, slot, shared, max(argument.align, 16))
            library.rt_arena_add(at, shared, 0)
            places.append(Place(slot=slot, address=at, size=shared, name=argument.name))
            pointers[argument.index] = at
            continue
        value = step.arguments.get(key)
        if value is None:
            continue
        if isinstance(value, Buffer):
            size = value.size + shift.growth(key, value.size) * shift.units
            at = _place(library, slot, size, value.align or 16)
            data = _raised(value.data, shift.values.get(key), shift.units) or bytes([POISON]) * value.size
            pieces = shift.pieces(key, value.size)
            for begin, length, to in pieces:
                library.rt_fill(at + to, data[begin : begin + length], length)
            kept[key] = [(at + to, length) for _, length, to in pieces]
            places.append(Place(slot=slot, address=at, size=size, name=argument.name))
        elif isinstance(value, bytes):
            data = grown(value, shift.words.get(key, ()), shift.units)
            at = _place(library, slot, len(data), max(argument.align, 1))
            library.rt_fill(at, data, len(data))
            places.append(Place(slot=slot, address=at, size=len(data), name=argument.name))
        else:
            at = _place_table(library, slot, value, places, shift, key)
        pointers[argument.index] = at
    said = _launch(device, step, shift, groups, pointers)
    left = Left(launches=(Launch.of(0, said, places),))
    return left, [b"".join(ctypes.string_at(*each) for each in kept[key]) for key in outputs_of(step)]


def _place_table(library: Any, slot: int, table: Addresses, places: list[Place], shift: Shift, key: str | int) -> int:
    """Place a table of addresses and its buffers, which stay where they are; return where it lies."""
    data = bytearray(table.data)
    for number, (offset, buffer) in enumerate(table.places.items()):
        inner = _INNER + _MOST_INNER * slot + number
        at = _place(library, inner, buffer.size, buffer.align or 16)
        held = _raised(buffer.data, shift.values.get(key), shift.units) or bytes([POISON]) * buffer.size
        library.rt_fill(at, held, buffer.size)
        places.append(Place(slot=inner, address=at, size=buffer.size, name=f"+{offset}"))
        struct.pack_into("<Q", data, offset, at)
    at = _place(library, slot, len(data), 16)
    library.rt_fill(at, bytes(data), len(data))
    places.append(Place(slot=slot, address=at, size=len(data)))
    return at


def _launch(device: Launcher, step: Step, shift: Shift, groups: Sequence[int] | None, pointers: object) -> Report:
    counts = [-(-threads // size) for threads, size in zip(step.grid, step.threadgroup, strict=True)]
    grid = list(step.grid)
    grid[shift.axis] += shift.groups * step.threadgroup[shift.axis]
    if grid[shift.axis] >= 1 << 32:
        raise WrongBinding("no grid has so many threads")
    code = device.codes[step.kernel]
    job = Run(
        entry=device.entry(code),
        arguments=ctypes.addressof(pointers),  # type: ignore[arg-type]
        grid=tuple(grid),
        group=step.threadgroup,
        cooperative=code.is_cooperative,
        order=FORWARD,
        poison=POISON,
        milliseconds=_MILLISECONDS,
        seed=1,
    )
    said = Report()
    large = [count + (shift.groups if axis == shift.axis else 0) for axis, count in enumerate(counts)]
    for z in range(counts[2]):
        for y in range(counts[1]):
            for x in range(counts[0]):
                at = [x, y, z]
                if groups is not None and at[shift.axis] not in groups:
                    continue
                at[shift.axis] += shift.groups
                job.first, job.count = at[0] + large[0] * (at[1] + large[1] * at[2]), 1
                device.library.rt_run(ctypes.byref(job), ctypes.byref(said))
                if said.status:
                    return said
    return said


def _place(library: object, slot: int, size: int, align: int) -> int:
    if size > largest_size():
        raise WrongBinding(f"a buffer of {size} bytes has no room here")
    at = library.rt_place(slot, size, align, 0)  # type: ignore[attr-defined]
    if not at:
        raise WrongBinding(f"no room for {size} bytes")
    return int(at)


def _raised(data: bytes, how: tuple[int, int] | None, units: int) -> bytes:
    """Return a buffer's whole numbers, each grown; negative ones count from the end, which grows itself.

    Raises:
        WrongBinding: one of them does not fit.
    """
    if how is None:
        return data
    width, growth = how
    grown = bytearray()
    for at in range(0, len(data), width):
        value = int.from_bytes(data[at : at + width], "little", signed=True)
        value += growth * units if value >= 0 else 0
        if value >= 1 << (8 * width - 1):
            raise WrongBinding(f"an index of {value} does not fit its {8 * width} bits")
        grown += value.to_bytes(width, "little", signed=True)
    return bytes(grown)
