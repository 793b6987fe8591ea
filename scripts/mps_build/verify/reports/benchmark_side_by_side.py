"""Two benchmarks side by side: wheel against wheel, macOS against macOS, Mac against Mac."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from mps_build.common.records.benchmark import BenchmarkRecord, Row

from .side_by_side import circumstances

# A change of a step's time counts when the two sets of samples hardly overlap and it is more than this.
_LEAST_CHANGE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RowChange:
    """One row in both records. `device` and `cpu` are the newer step's time over the older one's; 0.8 is faster."""

    id: str
    comparable: bool
    why_not: str | None
    ratio_before: float | None
    ratio_after: float | None
    device: float | None
    cpu: float | None
    changed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkComparison:
    """What differs between an older benchmark and a newer one."""

    differences: Mapping[str, tuple[str, str]]
    rows: tuple[RowChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    partial: tuple[bool, bool]

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return asdict(self)

    @property
    def slower(self) -> tuple[str, ...]:
        """Ids of the rows that became slower beyond their intervals."""
        return tuple(row.id for row in self.rows if row.changed == "slower")

    @property
    def faster(self) -> tuple[str, ...]:
        """Ids of the rows that became faster beyond their intervals."""
        return tuple(row.id for row in self.rows if row.changed == "faster")


def compare_benchmarks(before: BenchmarkRecord, after: BenchmarkRecord) -> BenchmarkComparison:
    """Return what changed; rows of other shapes are named and not compared."""
    old, new = {row.id: row for row in before.rows}, {row.id: row for row in after.rows}
    return BenchmarkComparison(
        differences=circumstances(before, after, threads=(before.cpu.get("threads"), after.cpu.get("threads"))),
        rows=tuple(_change(old[name], new[name]) for name in old if name in new),
        only_before=tuple(name for name in old if name not in new),
        only_after=tuple(name for name in new if name not in old),
        partial=(before.partial, after.partial),
    )


def tables(found: BenchmarkComparison) -> list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Return what a person is shown: title, columns and rows of each part that holds anything."""
    circumstances: list[tuple[str, ...]] = [(name, *pair) for name, pair in found.differences.items()]
    rows: list[tuple[str, ...]] = [
        (
            row.id,
            _times(row.ratio_before),
            _times(row.ratio_after),
            _percent(row.device),
            _percent(row.cpu),
            row.why_not or row.changed,
        )
        for row in found.rows
    ]
    columns = ("row", "times the CPU, before", "after", "device's step", "CPU's step", "")
    parts: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("Circumstances that differ", ("", "before", "after"), circumstances),
        ("Rows", columns, rows),
        ("Only in the first", ("row",), [(name,) for name in found.only_before]),
        ("Only in the second", ("row",), [(name,) for name in found.only_after]),
    ]
    return [part for part in parts if part[2]]


def verdict(found: BenchmarkComparison) -> str:
    """Return the comparison in one sentence."""
    part = " (of a partial record)" if any(found.partial) else ""
    compared = sum(row.comparable for row in found.rows)
    if not compared:
        return f"no row can be compared{part}"
    return (
        f"of {compared} rows the device's step is slower in {len(found.slower)}, faster in {len(found.faster)}, "
        f"as before in {compared - len(found.slower) - len(found.faster)}{part}"
    )


def _change(old: Row, new: Row) -> RowChange:
    why_not = _obstacle(old, new)
    device = _factor(old, new, "device") if why_not is None else None
    return RowChange(
        id=new.id,
        comparable=why_not is None,
        why_not=why_not,
        ratio_before=old.ratio.median if old.ratio else None,
        ratio_after=new.ratio.median if new.ratio else None,
        device=device,
        cpu=_factor(old, new, "cpu") if why_not is None else None,
        changed=_word(old, new, device),
    )


def _obstacle(old: Row, new: Row) -> str | None:
    for name, before, after in (
        ("shape", old.size, new.size),
        ("dtype", old.dtype, new.dtype),
        ("kind", old.facts, new.facts),
    ):
        if before != after:
            return f"not comparable: {name} {_flat(before)} before, {_flat(after)} after"
    for when, row in (("before", old), ("after", new)):
        if row.ratio is None:
            return f"not comparable: withheld {when} ({', '.join(flag.id for flag in row.flags) or row.outcome})"
    return None


def _flat(value: object) -> str:
    return ", ".join(f"{key} {part}" for key, part in value.items()) if isinstance(value, dict) else str(value)


def _factor(old: Row, new: Row, side: str) -> float | None:
    if not old.samples.get(side) or not new.samples.get(side):
        return None
    return round(median(new.samples[side]) / median(old.samples[side]), 4)


def _word(old: Row, new: Row, factor: float | None) -> str:
    """Return slower or faster where no more than a tenth of all pairs of samples say otherwise."""
    if factor is None or abs(math.log(factor)) < math.log1p(_LEAST_CHANGE):
        return "as before" if factor is not None else ""
    wins = _share_above(new.samples["device"], old.samples["device"])
    if wins >= 0.9:
        return "slower"
    return "faster" if wins <= 0.1 else "as before"


def _share_above(values: Sequence[float], others: Sequence[float]) -> float:
    return sum(value > other for value in values for other in others) / (len(values) * len(others))


def _times(value: float | None) -> str:
    return "withheld" if value is None else f"{value:.3g}"


def _percent(factor: float | None) -> str:
    return "" if factor is None else f"{(factor - 1) * 100:+.1f} %"
