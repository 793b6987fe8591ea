"""Runs programs: places buffers between protected pages, launches kernels, and says what came of it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..binding.pack import WrongBinding
from ..code.rewrite import ARENA_STEP, PAGE, Variable
from ..metadata import Argument
from ..program import Addresses, Buffer, Program, Step, Value, View, dense_strides
from .code import Code
from .modes import FORWARD, REVERSE, SHUFFLED, SIMDGROUPS_IN_TURN, Mode, Ran
from .runtime import Report, Run
from .troubles import Placed, Trouble, race, spoilt, stopped

__all__ = ["FORWARD", "REVERSE", "SHUFFLED", "SIMDGROUPS_IN_TURN", "Device", "Mode", "Ran"]
_CANARY = 0xC3
# Where threadgroup memory is open in this process: its addresses are the same for all devices.
_MAPPED: dict[int, int] = {}
# The runtime's numbers of floating types, whose NaNs are many and mean one thing.
_KINDS = {"half": 1, "half2": 1, "bfloat": 2, "float": 3, "float2": 3}


class Device:
    """The runtime and the kernels that are loaded."""

    def __init__(self, library: Any, codes: Mapping[str, Code]) -> None:
        self.library = library
        self.codes = codes

    def run(self, program: Program, mode: Mode) -> Ran:
        """Run all steps of a program.

        Raises:
            WrongBinding: an argument is missing, too long or unknown.
        """
        ran = self._run(program, mode)
        if not mode.aligned and any(trouble.kind == "trap" for trouble in ran.troubles):
            return self._run(program, replace(mode, aligned=True))
        return ran

    def _run(self, program: Program, mode: Mode) -> Ran:
        ran = Ran()
        placed: dict[int, Placed] = {}
        for step in program.steps:
            for value in step.arguments.values():
                self._place_all(value, placed, mode)
        for step in program.steps:
            self._run_step(step, placed, mode, ran)
            if ran.troubles:
                break
        self._collect(program, placed, mode, ran)
        return ran

    def _map(self, variable: Variable) -> None:
        """Open the pages of a threadgroup variable; the page behind stays closed."""
        base = variable.address // ARENA_STEP * ARENA_STEP
        end = _MAPPED.get(base, base + ARENA_STEP // 2)
        begin = variable.address // PAGE * PAGE
        if begin < end:
            if not self.library.rt_map_fixed(begin, end - begin):
                raise WrongBinding(f"no room for threadgroup memory at {begin:#x}")
            _MAPPED[base] = begin

    def _place_all(self, value: Value, placed: dict[int, Placed], mode: Mode) -> None:
        if isinstance(value, Addresses):
            for buffer in value.places.values():
                self._place_all(buffer, placed, mode)
        elif isinstance(value, Buffer) and id(value) not in placed:
            slot = len(placed)
            at = self._place(slot, value.size, value.align or _natural(value.size, mode), mode)
            if value.data:
                ctypes.memmove(at, value.data, len(value.data))
            elif value.size:
                ctypes.memset(at, mode.poison, value.size)
            placed[id(value)] = Placed(slot, at, value.size, "")

    def _place(self, slot: int, size: int, align: int, mode: Mode) -> int:
        at = self.library.rt_place(slot, size, align or 16, mode.at_begin)
        if not at:
            raise WrongBinding(f"no room for {size} bytes in slot {slot}")
        self.library.rt_surround(slot, at, size, mode.at_begin, _CANARY)
        return int(at)

    def _run_step(self, step: Step, placed: dict[int, Placed], mode: Mode, ran: Ran) -> None:
        code = self.codes[step.kernel]
        self.library.rt_arena_clear()
        self.library.rt_shadow_clear()
        arguments, constants = self._bind(step, code, placed, mode)
        group = _narrowed(step) if mode.narrow and step.free else step.threadgroup
        self._open_threadgroup_memory(code)
        job = Run(
            entry=code.entry(),
            arguments=ctypes.addressof(arguments),
            grid=step.grid,
            group=group,
            cooperative=code.is_cooperative,
            order=FORWARD if step.in_order else mode.order,
            poison=mode.poison,
            flush=mode.flush,
            track=mode.track and code.is_cooperative,
            milliseconds=mode.milliseconds,
            seed=mode.seed,
        )
        said = Report()
        self.library.rt_run(ctypes.byref(job), ctypes.byref(said))
        ran.threads += said.threads
        ran.inactive += said.inactive
        ran.divergent += said.divergent
        ran.unwritten += said.unwritten
        every = [*placed.values(), *constants]
        if said.status:
            ran.troubles.append(stopped(step, said, every))
        if said.races:
            ran.troubles.append(race(step, said, every, code))
        for each in every:
            if spoiled := self.library.rt_spoiled(each.slot, each.address, each.size, mode.at_begin, _CANARY):
                ran.troubles.append(spoilt(step, each, int(spoiled)))

    def _open_threadgroup_memory(self, code: Code) -> None:
        for variable in code.variables:
            self._map(variable)
            self.library.rt_arena_add(variable.address, variable.size, variable.is_zero)
            self.library.rt_shadow_add(variable.address, variable.size, 3)

    def prepare(self, code: Code) -> None:
        """Open a kernel's threadgroup memory, for a launch that this class does not place."""
        self.library.rt_arena_clear()
        self.library.rt_shadow_clear()
        self._open_threadgroup_memory(code)

    def _bind(self, step: Step, code: Code, placed: dict[int, Placed], mode: Mode) -> tuple[Any, list[Placed]]:
        arguments = code.metadata.arguments
        pointers = (ctypes.c_void_p * max(len(arguments), 1))()
        known = {each.name for each in arguments} | {each.index for each in arguments}
        if unknown := set(step.arguments) - known:
            raise WrongBinding(f"{step.kernel} has no argument {unknown}")
        constants: list[Placed] = []
        # Constants lie in slots of their own behind the buffers'; the next step uses them again.
        for argument in arguments:
            if not argument.is_buffer:
                continue
            if argument.space == 3:
                at = self._threadgroup_memory(argument, step, len(placed) + len(constants), mode, constants)
            else:
                at = self._address(argument, step, placed, constants, mode)
            pointers[argument.index] = at
        return pointers, constants

    def _threadgroup_memory(
        self, argument: Argument, step: Step, slot: int, mode: Mode, constants: list[Placed]
    ) -> int:
        size = step.threadgroup_bytes.get(argument.name)
        if size is None:
            raise WrongBinding(f"{step.kernel} needs a length for threadgroup memory {argument.name}")
        at = self._place(slot, size, max(argument.align, 16), mode)
        constants.append(Placed(slot, at, size, argument.name))
        self.library.rt_arena_add(at, size, 0)
        self.library.rt_shadow_add(at, size, 3)
        return at

    def _address(
        self, argument: Argument, step: Step, placed: dict[int, Placed], constants: list[Placed], mode: Mode
    ) -> int:
        value = step.arguments.get(argument.name, step.arguments.get(argument.index, ...))
        if value is ...:
            raise WrongBinding(f"{step.kernel}: argument {argument.name} (slot {argument.slot}) is not bound")
        if value is None:
            return 0
        if isinstance(value, Buffer):
            entry = placed[id(value)]
            entry.name = entry.name or argument.name
            self.library.rt_shadow_add(entry.address, entry.size, 1)
            if argument.size is not None and value.size < argument.size:
                raise WrongBinding(f"{step.kernel}: {argument.name} needs {argument.size} bytes, has {value.size}")
            return entry.address
        if isinstance(value, Addresses):
            data = bytearray(value.data)
            for offset, buffer in value.places.items():
                entry = placed[id(buffer)]
                entry.name = entry.name or f"{argument.name}+{offset}"
                self.library.rt_shadow_add(entry.address, entry.size, 1)
                struct.pack_into("<Q", data, offset, entry.address)
            value = bytes(data)
        slot = len(placed) + len(constants)
        at = self._place(slot, len(value), max(argument.align, 1), mode)
        ctypes.memmove(at, value, len(value))
        constants.append(Placed(slot, at, len(value), argument.name))
        return at

    def _collect(self, program: Program, placed: dict[int, Placed], mode: Mode, ran: Ran) -> None:
        """Take the buffers' contents; an input that has changed is trouble."""
        for step in program.steps:
            for value in _buffers(step.arguments.values()):
                if id(value) in ran.contents:
                    continue
                entry = placed[id(value)]
                ran.contents[id(value)] = ctypes.string_at(entry.address, entry.size)
                if value.role == "input" and ran.contents[id(value)] != value.data:
                    at = next(
                        i for i, (a, b) in enumerate(zip(ran.contents[id(value)], value.data, strict=True)) if a != b
                    )
                    where = {"buffer": entry.name, "byte": at}
                    ran.troubles.append(
                        Trouble(kind="write", text=f"writes its input {entry.name} at byte {at}", where=where)
                    )

    def take(self, view: View, contents: bytes) -> bytes:
        """Return a view's elements, dense.

        Raises:
            WrongBinding: the view reaches past its buffer.
        """
        strides = view.strides if view.strides is not None else dense_strides(view.shape)
        if view.count == 0:
            return b""
        size = view.dtype.size
        last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s > 0)
        first = view.offset + sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s < 0)
        if first < 0 or (last + 1) * size > len(contents):
            raise WrongBinding(f"a view reaches byte {(last + 1) * size} of {len(contents)}")
        if strides == dense_strides(view.shape):
            return contents[view.offset * size : (view.offset + view.count) * size]
        out = ctypes.create_string_buffer(view.count * size)
        count = len(view.shape)
        sizes = (ctypes.c_int64 * count)(*view.shape)
        steps = (ctypes.c_int64 * count)(*(each * size for each in strides))
        source = ctypes.c_char_p(contents)
        address = (ctypes.cast(source, ctypes.c_void_p).value or 0) + view.offset * size
        self.library.rt_strided(out, address, size, count, ctypes.addressof(sizes), ctypes.addressof(steps), 0)
        return out.raw

    def first_difference(self, got: bytes, want: bytes, view: View) -> int | None:
        """Return the first element (of a complex number: component) that differs, any NaN being equal to any."""
        if got == want:
            return None
        kind = _KINDS.get(view.dtype.name, 0)
        size = view.dtype.size // (2 if view.dtype.kind == "complex" else 1)
        if len(got) != len(want):
            return 0
        at = self.library.rt_differs(got, want, len(got) // size, size, kind)
        return None if at < 0 else int(at) // (2 if view.dtype.kind == "complex" else 1)

    def canonical(self, data: bytes, view: View) -> bytes:
        """Return a view's elements with every NaN written in one way."""
        kind = _KINDS.get(view.dtype.name, 0)
        if not kind or not data:
            return data
        size = view.dtype.size // (2 if view.dtype.kind == "complex" else 1)
        out = ctypes.create_string_buffer(data, len(data))
        self.library.rt_canonical(out, len(data) // size, kind)
        return out.raw


def _natural(size: int, mode: Mode) -> int:
    """Return the alignment at which a buffer ends exactly at its page: its elements', as far as its size tells."""
    return 16 if mode.aligned else min(size & -size, 16) or 1


def _buffers(values: Any) -> Sequence[Buffer]:
    found: list[Buffer] = []
    for value in values:
        if isinstance(value, Buffer):
            found.append(value)
        elif isinstance(value, Addresses):
            found += value.places.values()
    return found


def _narrowed(step: Step) -> tuple[int, int, int]:
    """Another legal threadgroup: smaller, and not a power of two where that is possible."""
    x, y, z = step.threadgroup
    return (max(1, x * 3 // 8), max(1, y // 2), max(1, z // 2)) if x * y * z > 1 else (7, 1, 1)
