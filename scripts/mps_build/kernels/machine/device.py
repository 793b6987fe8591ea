"""Runs programs in this process: places buffers between protected pages, and launches kernels."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from ..code.compiled import ARENA_STEP, ENTRY, PAGE, Code, Variable
from ..program.launch import Addresses, Buffer, Program, Step, Value, WrongBinding
from ..read.metadata import Argument
from .checks import FORWARD, Layout, RunCheck
from .left import Launch, Left, Place, buffers_of
from .link import Image
from .runner import Runner
from .runtime import Report, Run, addresses
from .shift import Shift
from .sparse import run_shifted

_CANARY = 0xC3
_MILLISECONDS, _SEED = 5000, 1
# Where threadgroup memory is open in this process: its addresses are the same for all devices.
_MAPPED: dict[int, int] = {}
# Where code is loaded in this process, and where the next begins; far from what the system maps.
_LOADED: dict[bytes, int] = {}
_CODE_BASE, _CODE_STEP = 0x5B00_0000_0000, 1 << 28


class Device(Runner):
    """The runtime and the kernels that are loaded, in this process."""

    def __init__(self, library: Any, codes: Mapping[str, Code]) -> None:
        super().__init__(library, codes)
        self.codes: Mapping[str, Code] = codes
        self._names = addresses(library)

    def clear(self) -> None:
        """Close all buffers and threadgroup memory: another kernel finds nothing of what ran before."""
        self.library.rt_release()
        for base, begin in _MAPPED.items():
            self.library.rt_unmap(begin, base + ARENA_STEP // 2 - begin)
        _MAPPED.clear()

    def left_by(self, program: Program, checks: Sequence[RunCheck]) -> tuple[Left, list[bytes]]:
        """Run all steps of a program, until one is stopped."""
        layout = Layout()
        for check in checks:
            layout = check.lay_out(layout)
        placed: dict[int, Place] = {}
        for step in program.steps:
            for value in step.arguments.values():
                self._place_all(value, placed, layout)
        launches: list[Launch] = []
        for number, step in enumerate(program.steps):
            launches.append(self._run_step(number, step, placed, layout, checks))
            if launches[-1].is_trouble:
                break
        return self._collected(program, placed, launches)

    def entry(self, code: Code) -> int:
        """Return where a kernel's code begins in memory; it is loaded at first use."""
        if code.objectcode not in _LOADED:
            image = Image(code.objectcode)
            base = _CODE_BASE + len(_LOADED) * _CODE_STEP
            data, entry = image.linked(base, self._names, ENTRY)
            if self.library.rt_load_code(base, data, len(data)):
                raise WrongBinding(f"no room for {len(data)} bytes of code at {base:#x}")
            _LOADED[code.objectcode] = entry
        return _LOADED[code.objectcode]

    def shifted_by(self, step: Step, shift: Shift, groups: Sequence[int] | None) -> tuple[Left, list[bytes]]:
        """Run a step's threadgroups where a shift moves them to (sparse.py)."""
        return run_shifted(self, step, shift, groups)

    def _map(self, variable: Variable) -> None:
        """Open the pages of a threadgroup variable; the page behind stays closed."""
        base = variable.address // ARENA_STEP * ARENA_STEP
        end = _MAPPED.get(base, base + ARENA_STEP // 2)
        begin = variable.address // PAGE * PAGE
        if begin < end:
            if not self.library.rt_map_fixed(begin, end - begin):
                raise WrongBinding(f"no room for threadgroup memory at {begin:#x}")
            _MAPPED[base] = begin

    def _place_all(self, value: Value, placed: dict[int, Place], layout: Layout) -> None:
        if isinstance(value, Addresses):
            for buffer in value.places.values():
                self._place_all(buffer, placed, layout)
        elif isinstance(value, Buffer) and id(value) not in placed:
            slot = len(placed)
            at = self._place(slot, value.size, value.align or _natural(value.size, layout), layout)
            if value.data:
                ctypes.memmove(at, value.data, len(value.data))
            elif value.size:
                ctypes.memset(at, layout.poison, value.size)
            placed[id(value)] = Place(slot=slot, address=at, size=value.size)

    def _place(self, slot: int, size: int, align: int, layout: Layout) -> int:
        at = self.library.rt_place(slot, size, align or 16, layout.at_begin)
        if not at:
            raise WrongBinding(f"no room for {size} bytes in slot {slot}")
        self.library.rt_surround(slot, at, size, layout.at_begin, _CANARY)
        return int(at)

    def _run_step(
        self, number: int, step: Step, placed: dict[int, Place], layout: Layout, checks: Sequence[RunCheck]
    ) -> Launch:
        code = self.codes[step.kernel]
        self.library.rt_arena_clear()
        self.library.rt_shadow_clear()
        arguments, constants = self._bind(step, code, placed, layout)
        self._open_threadgroup_memory(code)
        job = Run(
            entry=self.entry(code),
            arguments=ctypes.addressof(arguments),
            grid=step.grid,
            group=step.threadgroup,
            cooperative=code.is_cooperative,
            order=FORWARD,
            poison=layout.poison,
            milliseconds=_MILLISECONDS,
            seed=_SEED,
        )
        for check in checks:
            check.launch(job, step, code)
        said = Report()
        self.library.rt_run(ctypes.byref(job), ctypes.byref(said))
        every = [*placed.values(), *constants]
        spoilt = []
        for place, each in enumerate(every):
            if offset := self.library.rt_spoiled(each.slot, each.address, each.size, layout.at_begin, _CANARY):
                spoilt.append((place, int(offset)))
        return Launch.of(number, said, every, spoilt)

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

    def _bind(self, step: Step, code: Code, placed: dict[int, Place], layout: Layout) -> tuple[Any, list[Place]]:
        arguments = code.metadata.arguments
        pointers = (ctypes.c_void_p * max(len(arguments), 1))()
        known = {each.name for each in arguments} | {each.index for each in arguments}
        if unknown := set(step.arguments) - known:
            raise WrongBinding(f"{step.kernel} has no argument {unknown}")
        constants: list[Place] = []
        # Constants lie in slots of their own behind the buffers'; the next step uses them again.
        for argument in arguments:
            if not argument.is_buffer:
                continue
            if argument.space == 3:
                at = self._threadgroup_memory(argument, step, len(placed) + len(constants), layout, constants)
            else:
                at = self._address(argument, step, placed, constants, layout)
            pointers[argument.index] = at
        return pointers, constants

    def _threadgroup_memory(
        self, argument: Argument, step: Step, slot: int, layout: Layout, constants: list[Place]
    ) -> int:
        size = step.threadgroup_bytes.get(argument.name)
        if size is None:
            raise WrongBinding(f"{step.kernel} needs a length for threadgroup memory {argument.name}")
        at = self._place(slot, size, max(argument.align, 16), layout)
        constants.append(Place(slot=slot, address=at, size=size, name=argument.name))
        self.library.rt_arena_add(at, size, 0)
        self.library.rt_shadow_add(at, size, 3)
        return at

    def _address(
        self, argument: Argument, step: Step, placed: dict[int, Place], constants: list[Place], layout: Layout
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
        at = self._place(slot, len(value), max(argument.align, 1), layout)
        ctypes.memmove(at, value, len(value))
        constants.append(Place(slot=slot, address=at, size=len(value), name=argument.name))
        return at

    def _collected(
        self, program: Program, placed: dict[int, Place], launches: Sequence[Launch]
    ) -> tuple[Left, list[bytes]]:
        """Take what is not only read; an input that has changed is reported with its first changed byte."""
        contents, changed = [], []
        for number, value in enumerate(buffers_of(program)):
            entry = placed[id(value)]
            held = ctypes.string_at(entry.address, entry.size)
            if value.role != "input":
                contents.append(held)
            elif held != value.data:
                at = next(i for i, (a, b) in enumerate(zip(held, value.data, strict=True)) if a != b)
                changed.append((number, at))
        names = tuple(placed[id(value)].name for value in buffers_of(program))
        return Left(launches=tuple(launches), changed=tuple(changed), names=names), contents


def _natural(size: int, layout: Layout) -> int:
    """Return the alignment at which a buffer ends exactly at its page: its elements', as far as its size tells."""
    return 16 if layout.aligned else min(size & -size, 16) or 1
