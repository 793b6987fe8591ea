"""Two wheels' kernels side by side: the same, changed, new and gone, by their instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...common.cores import usable_cores
from ...common.reporting import Reporter
from ..execution.pool import Done, Task, examine_all
from ..execution.servers import servers
from ..execution.verify_all import FOUND
from ..execution.worker import Place, Setting
from ..read.library import BASIC, KERNEL_TYPE, Library


@dataclass(slots=True, kw_only=True)
class Family:
    """What became of one family's kernels; `before` and `after` are instructions of those that changed."""

    name: str
    changed: int = 0
    new: int = 0
    gone: int = 0
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Names of kernels, each in exactly one list: changed if it is in any library that both wheels have.

    Args:
        unreadable: kernels of both wheels of which one cannot be read; they count as changed.
        families: those in which anything is not the same, the most changed first.
        places: of each changed kernel, where it is in the left and in the right wheel's libraries.
    """

    same: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    families: tuple[Family, ...] = ()
    places: Mapping[str, tuple[Place, Place]] = field(default_factory=dict)


def compare_kernels(
    left: Sequence[Library], right: Sequence[Library], reporter: Reporter, *, keep: Callable[[str], bool] | None = None
) -> Difference:
    """Return what became of the left wheel's kernels in the right one. Nothing is run, only read.

    Args:
        keep: which names to look at (default: all).
    """
    libraries = (*left, *right)
    wanted = keep or (lambda name: True)
    before = _places(libraries, range(len(left)), wanted)
    after = _places(libraries, range(len(left), len(libraries)), wanted)
    pairs: dict[Place, Place | None] = {}
    verdicts: dict[str, list[str]] = {}
    for name in dict.fromkeys((*before, *after)):
        for one, other in _paired(libraries, before.get(name, []), after.get(name, [])):
            if one is not None and other is not None and _bits(libraries, one) == _bits(libraries, other):
                verdicts.setdefault(name, []).append("same")
            elif other is not None:
                pairs[other] = one
            elif one is not None:
                pairs[one] = None
    found = _Found(libraries, pairs, verdicts, len(left))
    first = {place: other for place, other in pairs.items() if libraries[place[0]].name == BASIC or other is None}
    _read(libraries, first, found.take, reporter)
    # What has changed in one library has changed: the other's copy need not be read.
    rest = {place: pairs[place] for place in pairs if place not in first and not found.has_changed(place)}
    _read(libraries, rest, found.take, reporter)
    return found.difference(before, after)


def _places(libraries: Sequence[Library], numbers: range, keep: Callable[[str], bool]) -> dict[str, list[Place]]:
    found: dict[str, list[Place]] = {}
    for library in numbers:
        for number, function in enumerate(libraries[library].functions):
            if function.kind == KERNEL_TYPE and keep(function.name):
                found.setdefault(function.name, []).append((library, number))
    return found


def _bits(libraries: Sequence[Library], place: Place) -> bytes | None:
    function = libraries[place[0]].functions[place[1]]
    return None if function.fault else libraries[place[0]].bitcode(function)


def _paired(
    libraries: Sequence[Library], before: list[Place], after: list[Place]
) -> list[tuple[Place | None, Place | None]]:
    """Return which copies of one kernel to compare: those of libraries of one name, else the first of each."""
    if not before or not after:
        return [*((each, None) for each in before[:1]), *((None, each) for each in after[:1])]
    by_name = {libraries[place[0]].name: place for place in before}
    common = [(by_name[libraries[each[0]].name], each) for each in after if libraries[each[0]].name in by_name]
    return [*common] or [(before[0], after[0])]


def _read(
    libraries: tuple[Library, ...],
    pairs: Mapping[Place, Place | None],
    take: Callable[[Done], None],
    reporter: Reporter,
) -> None:
    tasks = [Task(library=library, function=number) for library, number in sorted(pairs)]
    if not tasks:
        return
    nothing = Path()
    reporter.started("Read kernels", total=len(tasks), unit="kernels")
    with servers(nothing, None, {}) as started:
        setting = Setting(
            libraries=libraries,
            references={},
            runtime=nothing,
            store=nothing,
            reader=started.reader,
            machine=nothing,
            judge=nothing,
            seed=0,
            is_quick=False,
            pairs=pairs,
        )
        for count, done in enumerate(examine_all(setting, tasks, workers=usable_cores(), batch=256), 1):
            take(done)
            reporter.advanced(count, total=len(tasks))
    reporter.done()


class _Found:
    def __init__(
        self,
        libraries: Sequence[Library],
        pairs: Mapping[Place, Place | None],
        verdicts: dict[str, list[str]],
        left: int,
    ) -> None:
        self._libraries, self._pairs, self._verdicts, self._left = libraries, pairs, verdicts, left
        self._families: dict[str, Family] = {}
        self._places: dict[str, tuple[Place, Place]] = {}

    def take(self, done: Done) -> None:
        place = (done.task.library, done.task.function)
        other = self._pairs[place]
        name = self._libraries[place[0]].functions[place[1]].name
        outcome = str(done.verdict["outcome"])
        counts = done.verdict.get("instructions", [])
        if other is not None:
            outcome = "unreadable" if outcome not in ("same", "changed") else outcome
            is_first = "changed" not in self._verdicts.setdefault(name, [])
            self._verdicts[name].append(outcome)
            if outcome == "changed" and is_first:
                family = self._family(done.family)
                family.changed += 1
                family.before, family.after = family.before + counts[0], family.after + counts[1]
                self._places[name] = (other, place)
        elif place[0] < self._left:
            self._family(done.family).gone += 1
        else:
            self._family(done.family).new += 1

    def has_changed(self, place: Place) -> bool:
        """Return whether the kernel of a place is known to have changed."""
        name = self._libraries[place[0]].functions[place[1]].name
        return not set(self._verdicts.get(name, ())) <= {"same"}

    def _family(self, name: str) -> Family:
        return self._families.setdefault(name, Family(name=name or "(no contract)"))

    def difference(self, before: Mapping[str, object], after: Mapping[str, object]) -> Difference:
        both = [name for name in before if name in after]
        outcomes = {name: set(self._verdicts.get(name, ())) for name in both}
        return Difference(
            same=tuple(sorted(name for name in both if outcomes[name] <= {"same"})),
            changed=tuple(sorted(name for name in both if not outcomes[name] <= {"same"})),
            new=tuple(sorted(name for name in after if name not in before)),
            gone=tuple(sorted(name for name in before if name not in after)),
            unreadable=tuple(sorted(name for name in both if "unreadable" in outcomes[name])),
            families=tuple(
                sorted(self._families.values(), key=lambda each: (-each.changed, -each.new - each.gone, each.name))
            ),
            places=self._places,
        )


# Two runs of verify_kernels side by side: which kernels are wrong now and were not, and the other way about.

Row = tuple[str, str, str, str]
_WRONG = (*FOUND, "known")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsCompared:
    """Rows of kernel, outcome before, outcome after, and what is wrong; `both` counts the kernels of both runs."""

    newly_failing: tuple[Row, ...]
    newly_passing: tuple[Row, ...]
    new_failures: tuple[str, ...]
    both: int

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        keys = ("id", "before", "after", "reason")
        return {
            "compared": "kernels",
            "newly_failing": [dict(zip(keys, row, strict=True)) for row in self.newly_failing],
            "newly_passing": [dict(zip(keys, row, strict=True)) for row in self.newly_passing],
            "new_failures": list(self.new_failures),
        }


def compare_runs(before: Mapping[str, Any], after: Mapping[str, Any]) -> RunsCompared:
    """Return what changed between two documents; a kernel that only one of them ran has not changed."""
    old, new = _by_name(before), _by_name(after)
    rows: list[Row] = [(name, old[name][0], outcome, reason) for name, (outcome, reason) in new.items() if name in old]
    return RunsCompared(
        newly_failing=tuple(row for row in rows if row[2] in _WRONG and row[1] not in _WRONG),
        newly_passing=tuple(row for row in rows if row[1] in _WRONG and row[2] == "passed"),
        new_failures=tuple(
            name for name, (outcome, _) in new.items() if outcome in FOUND and old.get(name, ("", ""))[0] not in FOUND
        ),
        both=len(rows),
    )


def _by_name(document: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return outcome and reason by kernel: the worst of its copies in several libraries."""
    found: dict[str, tuple[str, str]] = {}
    for row in document["kernels"]:
        if row["name"] not in found or row["outcome"] in FOUND:
            found[row["name"]] = (row["outcome"], str(row.get("reason") or ""))
    return found
