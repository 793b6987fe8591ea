"""The Metal kernels of one operator in two versions' wheels: versions that have the same need not both be asked.

Equal kernels do not prove equal answers: code of the host changes too. What is skipped is a guess, which the search
tests at both sides of its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ...common.errors import UsageError
from ...common.reporter import Reporter
from ...kernels.execution.selection import Choice, choose
from ...kernels.read.library import Library
from ...kernels.read.wheel import read_libraries
from ...kernels.report.difference import compare_kernels
from .runner import CannotTest
from .versions import parse_version

_SHOWN, _KEPT = 5, 3


@dataclass(slots=True, kw_only=True)
class KernelsOf:
    """One operator's kernels, read from wheels.

    Args:
        operator: aten name.
        fetch: returns a version's wheel; raises CannotTest where there is none.
    """

    operator: str
    fetch: Callable[[str], Path]
    reporter: Reporter
    _libraries: dict[str, tuple[Library, ...]] = field(default_factory=dict)
    _changed: dict[tuple[str, str], tuple[str, ...] | None] = field(default_factory=dict)

    def changed(self, one: str, other: str) -> tuple[str, ...] | None:
        """Return which of the operator's kernels are not the same, or None: not known (no wheel, no such kernel)."""
        key = (one, other) if one < other else (other, one)
        if key not in self._changed:
            self._changed[key] = self._compared(*key)
        return self._changed[key]

    def note(self, old: str, new: str) -> str:
        """Return what a reader of a result must know: which kernels changed between two versions."""
        names = self.changed(old, new)
        if names is None:
            return f"the kernels of {self.operator} in {old} and {new} cannot be compared"
        if not names:
            return f"no Metal kernel of {self.operator} differs between {old} and {new}: the cause is not in them"
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return f"kernels of {self.operator} that differ between {old} and {new}: {', '.join(names[:_SHOWN])}{more}"

    def _compared(self, one: str, other: str) -> tuple[str, ...] | None:
        try:
            sides = [self._read(version) for version in (one, other)]
        except (CannotTest, UsageError):
            return None
        names = {
            library.functions[place].name
            for side in sides
            for library in side
            for place in choose(library, Choice(operator=self.operator))
        }
        if not names:
            return None
        found = compare_kernels(sides[0], sides[1], self.reporter, keep=names.__contains__)
        return tuple(sorted((*found.changed, *found.new, *found.gone)))

    def _read(self, version: str) -> tuple[Library, ...]:
        if parse_version(version) is None:
            raise CannotTest("a commit has no wheel before it is built")
        if version not in self._libraries:
            while len(self._libraries) >= _KEPT:  # each is 200 MB
                del self._libraries[next(iter(self._libraries))]
            self._libraries[version] = read_libraries(self.fetch(version))
        return self._libraries[version]
