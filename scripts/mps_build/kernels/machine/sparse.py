"""Launches over tensors of many gigabytes of which only a few pages exist, and of which only a few threadgroups run."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..code.compiled import Code
from ..program.launch import Addresses, Buffer, Step, WrongBinding
from .checks import FORWARD
from .left import Launch, Left, Place
from .runtime import Report, Run
from .shift import Shift, grown, outputs_of, raised

POISON = 0xA5
# Where the slots of memory behind tables begin.
_INNER = 40


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
    placed = _Placed(library, shift)
    for slot, argument in enumerate(each for each in code.metadata.arguments if each.is_buffer):
        key = argument.name if argument.name in step.arguments else argument.index
        if (shared := step.threadgroup_bytes.get(argument.name)) is not None:
            at = _place(library, slot, shared, max(argument.align, 16))
            library.rt_arena_add(at, shared, 0)
            placed.places.append(Place(slot=slot, address=at, size=shared, name=argument.name))
            pointers[argument.index] = at
            continue
        value = step.arguments.get(key)
        if value is None:
            continue
        if isinstance(value, Buffer):
            at = placed.buffer(slot, key, value, argument.name)
        elif isinstance(value, bytes):
            at = placed.data(slot, grown(value, shift.words.get(key, ()), shift.units), argument.align, argument.name)
        else:
            at = placed.table(slot, key, value)
        pointers[argument.index] = at
    said = _launch(device, step, shift, shift.only or None if groups is None else groups, pointers)
    left = Left(launches=(Launch.of(0, said, placed.places),))
    return left, [b"".join(ctypes.string_at(*each) for each in placed.kept[key]) for key in outputs_of(step)]


class _Placed:
    """The memory of a shifted launch: where it lies, and where the pieces of each buffer's contents are."""

    def __init__(self, library: Any, shift: Shift) -> None:
        self._library, self._shift, self._inner = library, shift, _INNER
        self.places: list[Place] = []
        self.kept: dict[str | int, list[tuple[int, int]]] = {}

    def buffer(self, slot: int, key: str | int, value: Buffer, name: str) -> int:
        """Place a buffer as large as the shift makes it, with its contents where they are moved to."""
        shift = self._shift
        size = value.size + shift.growth(key, value.size) * shift.units
        at = _place(self._library, slot, size, value.align or 16)
        data = raised(value.data, shift.values.get(key, ()), shift.units) or bytes([POISON]) * value.size
        pieces = shift.pieces(key, value.size)
        for begin, length, to in pieces:
            self._library.rt_fill(at + to, data[begin : begin + length], length)
        self.kept[key] = [(at + to, length) for _, length, to in pieces]
        self.places.append(Place(slot=slot, address=at, size=size, name=name))
        return at

    def data(self, slot: int, data: bytes, align: int, name: str = "") -> int:
        """Place bytes that the kernel only reads."""
        at = _place(self._library, slot, len(data), max(align, 1))
        self._library.rt_fill(at, data, len(data))
        self.places.append(Place(slot=slot, address=at, size=len(data), name=name))
        return at

    def table(self, slot: int, key: str | int, table: Addresses) -> int:
        """Place a table of addresses and the memory behind it."""
        data = bytearray(table.data)
        for offset, buffer in table.places.items():
            name = f"{key}+{offset}"
            struct.pack_into("<Q", data, offset, self.buffer(self._inner, name, buffer, name))
            self._inner += 1
        return self.data(slot, bytes(data), 16)


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
        milliseconds=shift.milliseconds,
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
