"""Two records side by side: what fails now and did not, what passes now, whose error grew, what became slower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mps_build.common.records.benchmark import BenchmarkRecord
from mps_build.common.records.device_record import FAILED, Case, Record

from .words import share_of_bound

# Below a tenth of what is allowed, an error says nothing; a growth by less than half may be another chip's rounding.
_LEAST_SHARE = 0.1
_GROWTH = 1.5
# Times of short cases are noise.
_LEAST_SECONDS = 1.0
_SLOWER = 1.5
_WRONG = frozenset({*FAILED, "known"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One case that differs.

    `before` and `after`: what is compared (an outcome, a share of the bound, seconds). `reason`: what is or was wrong.
    """

    id: str
    before: str
    after: str
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What differs between an older record and a newer one."""

    same_circumstances: bool
    differences: Mapping[str, tuple[str, str]]
    newly_failing: tuple[Change, ...]
    newly_passing: tuple[Change, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    error_growth: tuple[Change, ...]
    slower: tuple[Change, ...]
    seconds: tuple[float, float]
    partial: tuple[bool, bool]

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)


def compare_records(before: Record, after: Record) -> Comparison:
    """Return what changed from one record to another; a case that only one of them ran has not changed."""
    old, new = _by_id(before.cases), _by_id(after.cases)
    both = [name for name in new if name in old]
    differences = circumstances(before, after)
    return Comparison(
        same_circumstances=not differences,
        differences=differences,
        newly_failing=tuple(
            _outcomes(old[name], new[name])
            for name in both
            if new[name].outcome in _WRONG and old[name].outcome not in _WRONG
        ),
        newly_passing=tuple(
            _outcomes(old[name], new[name])
            for name in both
            if old[name].outcome in _WRONG and new[name].outcome in ("passed", "unexpected_pass")
        ),
        only_before=tuple(name for name in old if name not in new),
        only_after=tuple(name for name in new if name not in old),
        error_growth=_growth(old, new, both),
        slower=_slower(old, new, both),
        seconds=(before.seconds, after.seconds),
        partial=(before.partial, after.partial),
    )


def new_failures(before: Record, after: Record) -> tuple[str, ...]:
    """Return the cases that fail now, known issues aside, and did not: also those that the older record did not ask."""
    failed = {case.id for case in before.cases if case.outcome in FAILED}
    return tuple(case.id for case in after.cases if case.outcome in FAILED and case.id not in failed)


def _by_id(cases: Sequence[Case]) -> dict[str, Case]:
    return {case.id: case for case in cases}


def _outcomes(old: Case, new: Case) -> Change:
    return Change(id=new.id, before=old.outcome, after=new.outcome, reason=new.reason or old.reason)


def circumstances(
    before: Record | BenchmarkRecord, after: Record | BenchmarkRecord, **more: tuple[object, object]
) -> dict[str, tuple[str, str]]:
    """Return the circumstances that differ: a failure on another machine is not yet a failure of another torch."""
    pairs: dict[str, tuple[object, object]] = {
        "torch": (before.torch.version, after.torch.version),
        "commit": (before.torch.commit, after.torch.commit),
        "wheel": (before.torch.wheel and before.torch.wheel.sha256, after.torch.wheel and after.torch.wheel.sha256),
        "device": (before.device, after.device),
        "simulated": (_answers_as(before), _answers_as(after)),
        "gpu": (before.gpu.get("name"), after.gpu.get("name")),
        "macos": (before.host.get("macos"), after.host.get("macos")),
        "chip": (before.host.get("chip"), after.host.get("chip")),
        "python": (before.python and before.python.version, after.python and after.python.version),
        **{
            choice: (before.selection.get(choice), after.selection.get(choice))
            for choice in ("full", "quick", "inject")
        },
        **more,
    }
    return {name: (str(one), str(other)) for name, (one, other) in pairs.items() if one != other}


def _answers_as(record: Record | BenchmarkRecord) -> str | None:
    simulated = record.simulated if isinstance(record, Record) else None
    return f"as on macOS {simulated.macos}{simulated.below}" if simulated else None


def _growth(old: Mapping[str, Case], new: Mapping[str, Case], names: Sequence[str]) -> tuple[Change, ...]:
    grown = []
    for name in names:
        was, now = share_of_bound(old[name]), share_of_bound(new[name])
        if was is None or now is None or now < _LEAST_SHARE or now < _GROWTH * was:
            continue
        grown.append((now / max(was, 1e-9), Change(id=name, before=f"{was:.3g}", after=f"{now:.3g}")))
    return tuple(change for _, change in sorted(grown, key=lambda pair: -pair[0]))


def _slower(old: Mapping[str, Case], new: Mapping[str, Case], names: Sequence[str]) -> tuple[Change, ...]:
    slower = []
    for name in names:
        was, now = old[name].seconds, new[name].seconds
        if was is None or now is None or now < _LEAST_SECONDS or now < _SLOWER * was:
            continue
        slower.append((now - was, Change(id=name, before=f"{was:.2f} s", after=f"{now:.2f} s")))
    return tuple(change for _, change in sorted(slower, key=lambda pair: -pair[0]))


def tables(found: Comparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Return what a person is shown: title, columns and rows of each part that holds anything."""
    changes = ("case", "before", "after", "what")
    circumstances: list[tuple[str, ...]] = [(name, *pair) for name, pair in found.differences.items()]
    parts: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("Circumstances that differ", ("", "before", "after"), circumstances),
        ("Newly failing", changes, _rows(found.newly_failing)),
        ("Newly passing", changes, _rows(found.newly_passing)),
        ("Error growth, as a share of what is allowed", changes[:3], [row[:3] for row in _rows(found.error_growth)]),
        ("Slower", changes[:3], [row[:3] for row in _rows(found.slower)]),
        ("Only in the first", ("case",), [(name,) for name in found.only_before]),
        ("Only in the second", ("case",), [(name,) for name in found.only_after]),
    ]
    return [part for part in parts if part[2]]


def verdict(found: Comparison) -> str:
    """Return the comparison in one sentence."""
    part = " (of a partial record)" if any(found.partial) else ""
    failing, passing = len(found.newly_failing), len(found.newly_passing)
    if not failing and not passing:
        return f"no case changed its outcome{part}"
    return f"{failing} newly failing, {passing} newly passing{part}"


def _rows(changes: Sequence[Change]) -> list[tuple[str, ...]]:
    return [
        (change.id, change.before, change.after, " ".join((change.reason or "").split())[:120]) for change in changes
    ]
