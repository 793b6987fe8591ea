"""What a run of a program is checked for: each check changes how buffers lie or how a kernel is launched.

The device calls two hooks of each, in their order, and knows nothing else of them. A result that differs between a run
with a check and one without it depends on what the check changes, which its `text` names.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from ..code.compiled import Code
from ..program.launch import Step
from .runtime import Run

FORWARD, REVERSE, SHUFFLED, SIMDGROUPS_IN_TURN = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How the buffers of a run lie.

    Args:
        poison: the byte that fills outputs and threadgroup memory.
        at_begin: buffers begin at a protected page; else they end at one.
        aligned: all buffers on 16 bytes; else they end exactly at the page.
    """

    poison: int = 0xA5
    at_begin: bool = False
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A check; what it does not change stays as it is.

    Args:
        outcome: the verdict on a kernel whose result depends on it.
        text: what the result then depends on; empty if no result can.
    """

    outcome: ClassVar[Literal["wrong", "race"]] = "wrong"
    text: ClassVar[str] = ""

    def lay_out(self, layout: Layout) -> Layout:
        """Return how buffers lie instead."""
        return layout

    def launch(self, job: Run, step: Step, code: Code) -> None:
        """Change a launch that is about to begin."""


@dataclass(frozen=True, slots=True)
class Poison(RunCheck):
    """Memory that nobody has written holds another byte."""

    text: ClassVar[str] = "depends on memory never written (an output or threadgroup memory)"
    byte: int

    def lay_out(self, layout: Layout) -> Layout:
        """Fill with the byte."""
        return replace(layout, poison=self.byte)


@dataclass(frozen=True, slots=True)
class BoundsBefore(RunCheck):
    """Buffers begin at a protected page: what lies before them cannot be read."""

    text: ClassVar[str] = "depends on memory outside its buffers"

    def lay_out(self, layout: Layout) -> Layout:
        """Put the beginnings at a page."""
        return replace(layout, at_begin=True)


@dataclass(frozen=True, slots=True)
class Aligned(RunCheck):
    """Kernels that load vectors need buffers on 16 bytes: their ends are then not exactly at the page."""

    def lay_out(self, layout: Layout) -> Layout:
        """Align all buffers."""
        return replace(layout, aligned=True)


@dataclass(frozen=True, slots=True)
class Order(RunCheck):
    """Threads run in another order, unless threadgroups wait for earlier ones."""

    outcome: ClassVar[Literal["wrong", "race"]] = "race"
    text: ClassVar[str] = "depends on the order of its threads"
    order: int

    def launch(self, job: Run, step: Step, code: Code) -> None:
        """Set the order."""
        if not step.in_order:
            job.order = self.order


@dataclass(frozen=True, slots=True)
class Threadgroups(RunCheck):
    """Threads that do not work together run in threadgroups of another size."""

    text: ClassVar[str] = "depends on the threadgroup's size"

    def launch(self, job: Run, step: Step, code: Code) -> None:
        """Take a smaller legal size, which is no power of two where that is possible."""
        if step.free:
            x, y, z = step.threadgroup
            smaller = (max(1, x * 3 // 8), max(1, y // 2), max(1, z // 2)) if x * y * z > 1 else (7, 1, 1)
            job.group = smaller


@dataclass(frozen=True, slots=True)
class Races(RunCheck):
    """Loads and stores of threads that work together are watched: two that meet without a barrier are trouble."""

    def launch(self, job: Run, step: Step, code: Code) -> None:
        """Watch; only cooperative kernels are instrumented."""
        job.track = code.is_cooperative


@dataclass(frozen=True, slots=True)
class TimeLimit(RunCheck):
    """A launch ends after so many milliseconds."""

    milliseconds: int

    def launch(self, job: Run, step: Step, code: Code) -> None:
        """Set the limit."""
        job.milliseconds = self.milliseconds
