"""A small launch made large: moved along its grid, its strides stretched, its indices raised; what it left there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..program.launch import Step, Words, WrongBinding, memory_of
from .left import BadReport, Left, check_numbers, troubles_of
from .troubles import Compiled, Trouble

# A launch here is a few threadgroups: what takes longer runs wild, and would fill the memory.
PATIENCE = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """How a small launch becomes a large one; everything grows in proportion to `units`.

    Args:
        axis: of the grid; it is moved by `units` of `unit` threadgroups each (0: the grid stays).
        bytes: by argument name, how far each buffer's contents move with each unit; the others stay.
        words: by argument name, the offset, the size and the growth (with each unit) of lengths in constants; a counter
            that starts earlier, so that the moved threads count as the small launch's do, grows by less than nothing.
        stretched: by argument name, the bytes of a piece, and how far each piece moves away from the one before it.
        values: by argument name, the whole numbers that grow in a buffer as the launch finds it: offset, size, growth.
        results: the same of a buffer as the launch leaves it.
        only: which of the threadgroups along the axis are run; empty: all.
        milliseconds: that one of them may take.

    Memory behind a table of addresses has a name of its own (`memory_of`).
    """

    axis: int
    units: int
    bytes: Mapping[str | int, int]
    words: Mapping[str | int, Words] = field(default_factory=dict)
    unit: int = 1
    stretched: Mapping[str | int, tuple[int, int]] = field(default_factory=dict)
    values: Mapping[str | int, Words] = field(default_factory=dict)
    results: Mapping[str | int, Words] = field(default_factory=dict)
    only: tuple[int, ...] = ()
    milliseconds: int = PATIENCE

    @property
    def groups(self) -> int:
        """How many threadgroups the launch is moved by along its axis."""
        return self.units * self.unit

    def growth(self, key: str | int, size: int) -> int:
        """Return by how many bytes a buffer of `size` bytes grows with each unit."""
        piece, by = self.stretched.get(key, (size or 1, 0))
        return self.bytes.get(key, 0) + by * max(-(-size // piece) - 1, 0)

    def pieces(self, key: str | int, size: int) -> list[tuple[int, int, int]]:
        """Return where a buffer's pieces lie: their begin in the small buffer, their length, their begin in the large.

        >>> Shift(axis=0, units=2, bytes={"x": 100}, stretched={"x": (4, 10)}).pieces("x", 10)
        [(0, 4, 200), (4, 4, 224), (8, 2, 248)]
        """
        piece, by = self.stretched.get(key, (size or 1, 0))
        begin = self.bytes.get(key, 0) * self.units
        return [
            (at, min(piece, size - at), begin + at + by * self.units * number)
            for number, at in enumerate(range(0, size, piece))
        ]


@dataclass(slots=True, kw_only=True)
class Moved:
    """What a shifted launch left in its outputs' moved places, and what stopped it."""

    contents: dict[str | int, bytes] = field(default_factory=dict)
    trouble: Trouble | None = None
    sizes: dict[str | int, int] = field(default_factory=dict)


def sizes_of(step: Step, shift: Shift) -> dict[str | int, int]:
    """Return how many bytes each buffer of the large launch has."""
    return {key: each.size + shift.growth(key, each.size) * shift.units for key, each in memory_of(step).items()}


def moved_of(step: Step, shift: Shift, codes: Mapping[str, Compiled], left: Left, contents: Sequence[bytes]) -> Moved:
    """Return what a shifted launch left, by argument, and its trouble in words; numbers that grow are given without.

    Raises:
        BadReport: it tells of other outputs than the step has.
    """
    check_numbers(left)
    keys, memory = outputs_of(step), memory_of(step)
    if [len(each) for each in contents] != [memory[key].size for key in keys]:
        raise BadReport("it tells of other buffers than there are")
    found = [each for launch in left.launches for each in troubles_of(launch, step.kernel, codes)]
    return Moved(
        contents={
            key: raised(data, shift.results.get(key, ()), -shift.units)
            for key, data in zip(keys, contents, strict=True)
        },
        trouble=found[0] if found else None,
        sizes=sizes_of(step, shift),
    )


def outputs_of(step: Step) -> list[str | int]:
    """Return the arguments whose buffers a kernel may write, in their order; of a launch alone, also what is judged
    only through a later launch."""
    return [key for key, each in memory_of(step).items() if each.role != "input"]


def grown(data: bytes, words: Sequence[tuple[int, int, int]], units: int) -> bytes:
    """Return a constant whose lengths are grown: offset, size and growth with each unit.

    >>> grown(bytes([5, 0, 0, 0]), [(0, 4, 2)], 3)
    b'\\x0b\\x00\\x00\\x00'

    Raises:
        WrongBinding: a length does not fit its word.
    """
    out = bytearray(data)
    for offset, size, growth in words:
        value = int.from_bytes(out[offset : offset + size], "little") + growth * units
        if not 0 <= value < 1 << 8 * size:
            raise WrongBinding(f"a length of {value} does not fit its {8 * size} bits")
        out[offset : offset + size] = value.to_bytes(size, "little")
    return bytes(out)


def raised(data: bytes, words: Sequence[tuple[int, int, int]], units: int) -> bytes:
    """Return a buffer whose whole numbers are grown; negative ones, which count from the end, stay.

    >>> words = [(0, 2, 3), (2, 2, 3)]
    >>> raised(bytes([5, 0, 255, 255]), words, 2), raised(bytes([11, 0, 255, 255]), words, -2)
    (b'\\x0b\\x00\\xff\\xff', b'\\x05\\x00\\xff\\xff')

    Raises:
        WrongBinding: one of them does not fit.
    """
    out = bytearray(data)
    for at, size, growth in words if data else ():
        value = int.from_bytes(data[at : at + size], "little", signed=True)
        value += growth * units if value >= 0 else 0
        if value >= 1 << (8 * size - 1):
            raise WrongBinding(f"a number of {value} does not fit its {8 * size} bits")
        out[at : at + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    return bytes(out)
