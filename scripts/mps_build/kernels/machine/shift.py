"""A small launch moved far along its grid, and what it left there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..program.launch import Buffer, Step
from .left import BadReport, Left, check_numbers, troubles_of
from .troubles import Compiled, Trouble


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A small launch, moved along one dimension of its grid.

    Args:
        axis: of the grid; it is moved by `units` of `unit` threadgroups each.
        bytes: by argument name, how far each buffer's contents move with each unit; the others stay.
        words: by argument name, the offset, the size and the growth (with each unit) of lengths in constants.
    """

    axis: int
    units: int
    bytes: Mapping[str | int, int]
    words: Mapping[str | int, tuple[tuple[int, int, int], ...]] = field(default_factory=dict)
    unit: int = 1

    @property
    def groups(self) -> int:
        """How many threadgroups the launch is moved by along its axis."""
        return self.units * self.unit


@dataclass(slots=True, kw_only=True)
class Moved:
    """What a shifted launch left in its outputs' moved places, and what stopped it."""

    contents: dict[str | int, bytes] = field(default_factory=dict)
    trouble: Trouble | None = None
    sizes: dict[str | int, int] = field(default_factory=dict)


def moved_of(step: Step, shift: Shift, codes: Mapping[str, Compiled], left: Left, contents: Sequence[bytes]) -> Moved:
    """Return what a shifted launch left, by argument, and its trouble in words.

    Raises:
        BadReport: it tells of other outputs than the step has.
    """
    check_numbers(left)
    keys = outputs_of(step)
    buffers = [step.arguments[key] for key in keys]
    if [len(each) for each in contents] != [each.size for each in buffers if isinstance(each, Buffer)]:
        raise BadReport("it tells of other buffers than there are")
    sizes = {
        key: value.size + shift.bytes.get(key, 0) * shift.units
        for key, value in step.arguments.items()
        if isinstance(value, Buffer)
    }
    found = [each for launch in left.launches for each in troubles_of(launch, step.kernel, codes)]
    return Moved(contents=dict(zip(keys, contents, strict=True)), trouble=found[0] if found else None, sizes=sizes)


def outputs_of(step: Step) -> list[str | int]:
    """Return the arguments whose buffers a kernel may write and a check may look at, in their order."""
    return [
        key for key, value in step.arguments.items() if isinstance(value, Buffer) and value.role in ("output", "inout")
    ]
