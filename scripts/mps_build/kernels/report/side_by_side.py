"""Two runs of verify_kernels side by side: which kernels are wrong now and were not, and the other way about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..execution.verify_all import FOUND

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
