"""Known issues that are active here, as the driver hands them over: JSON rows, no YAML."""

from __future__ import annotations

import fnmatch
import json
from dataclasses import dataclass
from pathlib import Path

OUTCOMES = ("fails", "flaky", "crashes")


class KnownIssuesError(Exception):
    """The file of active rows cannot be used: the message says why."""


@dataclass(frozen=True)
class KnownIssue:
    """One active row: which cases it covers (ids or patterns), and what is expected of them."""

    id: str
    cases: tuple[str, ...]
    outcome: str
    reason: str = ""

    def covers(self, case_id: str) -> bool:
        """Say whether the row speaks of this case."""
        return any(fnmatch.fnmatchcase(case_id, pattern) for pattern in self.cases)


def load_known(path: Path) -> tuple[KnownIssue, ...]:
    """Return the rows of a JSON list of {"id", "cases": [id or pattern], "outcome", "reason"}."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_row(row) for row in rows)
    except (OSError, ValueError, TypeError, KeyError) as wrong:
        raise KnownIssuesError(f"{path}: {type(wrong).__name__}: {wrong}") from wrong


def _row(row: dict) -> KnownIssue:  # type: ignore[type-arg]
    if row["outcome"] not in OUTCOMES:
        raise ValueError(f"outcome {row['outcome']!r} is none of {', '.join(OUTCOMES)}")
    return KnownIssue(str(row["id"]), tuple(row["cases"]), row["outcome"], str(row.get("reason", "")))
