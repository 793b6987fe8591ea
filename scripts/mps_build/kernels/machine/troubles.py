"""What a run leaves: what stopped a launch, or what it did that it must not, in words: which buffer, how far beyond it,
which threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ..code.compiled import Variable
from ..read.metadata import Metadata

# Buffers lie 128 GiB apart: an offset that wrapped at 2**32 elements is still nearest to its own.
_NEAR = 1 << 36
_STATUS = {1: "fault", 2: "timeout", 3: "trap", 4: "deadlock", 5: "bad launch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What stopped a run, or what it did that it must not: `kind` fault, timeout, trap, deadlock, write, race …"""

    kind: str
    text: str
    thread: tuple[int, ...] = ()
    where: Mapping[str, object] = field(default_factory=dict)


class Placed(Protocol):
    """A buffer where it lies in the kernel's memory: address and size in bytes."""

    @property
    def address(self) -> int:
        """Where it begins."""

    @property
    def size(self) -> int:
        """How many bytes it has."""

    @property
    def name(self) -> str:
        """What the kernel's arguments call it."""


class Said(Protocol):
    """What the runtime reports of a launch."""

    @property
    def status(self) -> int:
        """0 ended, 1 fault, 2 time, 3 illegal instruction or arithmetic, 4 deadlock, 5 not to be launched."""

    @property
    def signal(self) -> int:
        """The signal that stopped it."""

    @property
    def address(self) -> int:
        """What it touched."""

    @property
    def thread(self) -> tuple[int, int, int]:
        """Which thread it was."""

    @property
    def races(self) -> int:
        """How often two threads met."""

    @property
    def race_kind(self) -> int:
        """1 write after write, 2 read after write, 3 write after read."""

    @property
    def race_address(self) -> int:
        """Where two threads met first."""

    @property
    def race_threads(self) -> tuple[int, int]:
        """Which two."""


class Compiled(Protocol):
    """What is needed of a compiled kernel."""

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its threadgroup memory."""

    @property
    def is_cooperative(self) -> bool:
        """True if its threads work together."""

    @property
    def metadata(self) -> Metadata:
        """Its arguments."""


@dataclass(frozen=True, slots=True)
class _Area:
    address: int
    size: int
    name: str


def locate(address: int, placed: Sequence[Placed]) -> tuple[str, dict[str, object]]:
    """Say where an address lies: in which buffer, or how far before or behind which."""
    near = [each for each in placed if each.address - _NEAR <= address < each.address + each.size + _NEAR]
    if not near:
        return f"address {address:#x}", {"address": address}
    each = min(near, key=lambda one: max(one.address - address, address - one.address - one.size, 0))
    offset = address - each.address
    if offset < 0:
        return f"{-offset} bytes before {each.name}", {"buffer": each.name, "byte": offset, "size": each.size}
    if offset >= each.size:
        text = f"{offset - each.size} bytes behind the {each.size} bytes of {each.name}"
        return text, {"buffer": each.name, "byte": offset, "size": each.size}
    return f"byte {offset} of {each.name}", {"buffer": each.name, "byte": offset, "size": each.size}


def stopped(kernel: str, said: Said, placed: Sequence[Placed]) -> Trouble:
    """Return why a kernel was stopped: a fault with its place, or its time limit."""
    kind = _STATUS.get(said.status, "fault")
    thread = tuple(said.thread)
    if kind == "fault":
        text, where = locate(said.address, placed)
        return Trouble(kind=kind, text=f"{kernel}: thread {thread} touches {text}", thread=thread, where=where)
    reason = {
        "timeout": "did not end in time",
        "trap": f"was stopped by signal {said.signal} (a division by zero, a misaligned or a wild address)",
        "deadlock": "waits forever at a barrier",
    }.get(kind, kind)
    return Trouble(kind=kind, text=f"{kernel}: thread {thread} {reason}", thread=thread)


def race(kernel: str, said: Said, placed: Sequence[Placed], code: Compiled) -> Trouble:
    """Return the race that was found: the variable, and which two accesses disagree."""
    shared = [_Area(each.address, each.size, "threadgroup memory") for each in code.variables]
    text, where = locate(said.race_address, [*placed, *shared])
    kinds = {1: "both write", 2: "one writes and the other then reads", 3: "one reads and the other then writes"}
    how = kinds.get(said.race_kind, "in a way that is not known")
    one, other = ((each - 1) % 1024 for each in said.race_threads)
    return Trouble(
        kind="race",
        text=f"{kernel}: threads {one} and {other} meet at {text} without a barrier: {how}",
        where={**where, "count": said.races},
    )


def spoilt(kernel: str, each: Placed, offset: int) -> Trouble:
    """Return the write outside of a buffer that its guard bytes showed."""
    side = f"{-offset} bytes before" if offset < 0 else f"{offset - each.size} bytes behind the {each.size} bytes of"
    where = {"buffer": each.name, "byte": offset, "size": each.size}
    return Trouble(kind="fault", text=f"{kernel} writes {side} {each.name}", where=where)


@dataclass(slots=True, kw_only=True)
class Ran:
    """What a run left behind: each buffer's bytes, and trouble."""

    contents: dict[int, bytes] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    threads: int = 0
    inactive: int = 0
    divergent: int = 0
    unwritten: int = 0
