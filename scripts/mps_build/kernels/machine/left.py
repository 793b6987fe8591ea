"""What a run leaves, as numbers: a closed process reports them, and who requested them puts them into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ..program.launch import Addresses, Buffer, Program
from .runtime import Report
from .troubles import Compiled, Placed, Ran, Trouble, race, spoilt, stopped


@dataclass(slots=True, kw_only=True)
class Place:
    """A buffer where it lies in the kernel's memory: address and size in bytes."""

    address: int
    size: int
    slot: int
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What the runtime reports of one launch (runtime.h, `struct report`), where its memory lay, and what was spoilt.

    Args:
        spoilt: numbers of places, and the byte beside each that has changed.
    """

    step: int
    status: int
    signal: int
    address: int
    thread: tuple[int, int, int]
    divergent: int
    threads: int
    inactive: int
    races: int
    race_kind: int
    race_address: int
    race_threads: tuple[int, int]
    unwritten: int
    places: tuple[Place, ...]
    spoilt: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, step: int, said: Report, places: Sequence[Place], spoiled: Sequence[tuple[int, int]] = ()) -> Launch:
        """Return a launch of what the runtime reports; places are given only where something is wrong."""
        numbers = {
            name: int(getattr(said, name))
            for name in ("status", "signal", "address", "divergent", "threads", "inactive", "races", "race_kind",
                         "race_address", "unwritten")
        }  # fmt: skip
        is_wrong = said.status or said.races or spoiled
        return cls(
            step=step,
            **numbers,
            thread=(said.thread[0], said.thread[1], said.thread[2]),
            race_threads=(said.race_threads[0], said.race_threads[1]),
            places=tuple(places) if is_wrong else (),
            spoilt=tuple(spoiled),
        )

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        found = {name: getattr(self, name) for name in _FIELDS}
        return {**found, "places": [{name: getattr(each, name) for name in _OF_PLACE} for each in self.places]}

    def numbers(self) -> tuple[int, ...]:
        """Return all of its numbers."""
        first = (self.step, self.status, self.signal, self.address, self.divergent, self.threads, self.inactive)
        races = (self.races, self.race_kind, self.race_address, *self.race_threads, self.unwritten)
        return (*first, *races, *self.thread, *(number for pair in self.spoilt for number in pair))

    @property
    def is_trouble(self) -> bool:
        """True if the launch was stopped, or did what it must not."""
        return bool(self.status or self.races or self.spoilt)


_FIELDS = [each.name for each in fields(Launch) if each.name != "places"]
_OF_PLACE = [each.name for each in fields(Place)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a program's launches left beside the buffers' bytes.

    Args:
        changed: inputs that are not as they were: number of the buffer, and the first byte.
        names: of the buffers, as the kernels' arguments call them.
    """

    launches: tuple[Launch, ...]
    changed: tuple[tuple[int, int], ...] = ()
    names: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it; dataclasses.asdict would copy each number."""
        return {
            "launches": [each.record() for each in self.launches],
            "changed": self.changed,
            "names": self.names,
        }


class BadReport(Exception):
    """What a closed process tells cannot be: it speaks of launches or places that there are not."""


def buffers_of(program: Program) -> list[Buffer]:
    """Return a program's buffers, each once, in the order in which they are placed."""
    found: dict[int, Buffer] = {}
    for step in program.steps:
        for value in step.arguments.values():
            held: Sequence[Any] = tuple(value.places.values()) if isinstance(value, Addresses) else (value,)
            found |= {id(each): each for each in held if isinstance(each, Buffer) and id(each) not in found}
    return list(found.values())


_MOST_PLACES, _MOST_NAME = 256, 400


def check_numbers(left: Left) -> None:
    """Raise BadReport if a number has more bits than its word, or a list or a name is longer than any can be."""
    places = [place for launch in left.launches for place in launch.places]
    numbers = [number for launch in left.launches for number in launch.numbers()]
    numbers += [number for place in places for number in (place.address, place.size)]
    names = (*left.names, *(place.name for place in places))
    lists = (left.names, left.changed, *(part for each in left.launches for part in (each.places, each.spoilt)))
    if (
        any(not -(1 << 63) <= number < 1 << 64 for number in numbers)
        or any(len(each) > _MOST_PLACES for each in lists)
        or any(len(each) > _MOST_NAME for each in names)
    ):
        raise BadReport("it tells numbers that no launch has")


def in_words(program: Program, codes: Mapping[str, Compiled], left: Left, contents: Sequence[bytes]) -> Ran:
    """Return what a run left: each buffer's bytes, and trouble in words.

    Raises:
        BadReport: numbers of launches, places or buffers that the program has not.
    """
    check_numbers(left)
    buffers = buffers_of(program)
    kept = [each for each in buffers if each.role != "input"]
    if [each.size for each in kept] != [len(each) for each in contents] or len(left.launches) > len(program.steps):
        raise BadReport("it tells of other buffers or launches than there are")
    ran = Ran(contents={id(each): each.data for each in buffers})
    ran.contents |= {id(each): data for each, data in zip(kept, contents, strict=True)}
    for number, launch in enumerate(left.launches):
        if launch.step != number or any(not 0 <= place < len(launch.places) for place, _ in launch.spoilt):
            raise BadReport("it tells of launches in another order, or of places that are not there")
        ran.threads += launch.threads
        ran.inactive += launch.inactive
        ran.divergent += launch.divergent
        ran.unwritten += launch.unwritten
        ran.troubles += troubles_of(launch, program.steps[number].kernel, codes)
    for number, at in left.changed:
        if not (0 <= number < min(len(buffers), len(left.names)) and 0 <= at < buffers[number].size):
            raise BadReport("it tells of a change in a buffer that is not there")
        name = left.names[number]
        where = {"buffer": name, "byte": at}
        ran.troubles.append(Trouble(kind="write", text=f"writes its input {name} at byte {at}", where=where))
    return ran


def troubles_of(launch: Launch, kernel: str, codes: Mapping[str, Compiled]) -> list[Trouble]:
    """Return what was wrong with a launch, in words."""
    every: Sequence[Placed] = launch.places
    found = []
    if launch.status:
        found.append(stopped(kernel, launch, every))
    if launch.races:
        found.append(race(kernel, launch, every, codes[kernel]))
    return [*found, *(spoilt(kernel, every[place], offset) for place, offset in launch.spoilt)]
