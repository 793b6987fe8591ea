"""Known issues that are active here, as the driver hands them over: JSON rows, no YAML.

A row speaks of cases by their ids (regressions, scenarios), or of drawn cases by operator, transformation, dtype and
other levels of the call. It may also say what the failure looks like.
"""

from __future__ import annotations

import fnmatch
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable

OUTCOMES = ("fails", "flaky", "crashes")


class KnownIssuesError(Exception):
    """The file of active rows cannot be used: the message says why."""


@dataclass(frozen=True)
class Answer:
    """One wrong answer: what is said of it, and the levels of the drawn call by factor (`dtype`, `layout0`, ...)."""

    text: str
    levels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownIssue:
    """One active row: of which cases it speaks, and what is expected of them.

    Attributes:
        cases, drawn: ids or patterns; `drawn` is OPERATOR:TRANSFORMATION:SEED.
        dtype, levels: patterns of the call's levels; one that begins with `!` fits what the rest does not.
        says: a regular expression.
    """

    id: str
    cases: tuple[str, ...]
    outcome: str
    reason: str = ""
    drawn: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    levels: dict[str, tuple[str, ...]] = field(default_factory=dict)
    says: str = ""

    def expects(self, case_id: str) -> bool:
        """Say whether the row names this case; of a drawn one it does not know that it fails."""
        return _is_one_of(case_id, self.cases)

    def explains(self, case_id: str, answer: Answer) -> bool:
        """Say whether this wrong answer of a case is what the row speaks of."""
        return (self.expects(case_id) or self._draws(case_id, answer.levels)) and bool(
            re.search(self.says, answer.text)
        )

    def _draws(self, case_id: str, levels: dict[str, str]) -> bool:
        return (
            _is_one_of(case_id, self.drawn)
            and (not self.dtype or _some_level_fits(levels, "dtype", self.dtype))
            and all(_some_level_fits(levels, name, wanted) for name, wanted in self.levels.items())
        )


def explaining(rows: Iterable[KnownIssue], case_id: str, answers: Iterable[Answer]) -> KnownIssue | None:
    """Return the row of the first wrong answer, if each has one: a second fault does not hide behind a known one."""
    every = tuple(rows)
    found = [next((row for row in every if row.explains(case_id, answer)), None) for answer in answers]
    return found[0] if found and None not in found else None


def load_known(path: Path) -> tuple[KnownIssue, ...]:
    """Return the rows of a JSON list; README.md, "Options", says what a row holds."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return tuple(_row(row) for row in rows)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, re.error) as wrong:
        raise KnownIssuesError(f"{path}: {type(wrong).__name__}: {wrong}") from wrong


def _row(row: dict[str, Any]) -> KnownIssue:
    if row["outcome"] not in OUTCOMES:
        raise ValueError(f"outcome {row['outcome']!r} is none of {', '.join(OUTCOMES)}")
    return KnownIssue(
        str(row["id"]),
        tuple(row["cases"]),
        row["outcome"],
        str(row.get("reason", "")),
        tuple(row.get("drawn", ())),
        tuple(row.get("dtype", ())),
        {str(name): tuple(levels) for name, levels in row.get("levels", {}).items()},
        re.compile(row.get("says", "")).pattern,
    )


def _is_one_of(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(text, pattern) for pattern in patterns)


def _fits(level: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(level, one.lstrip("!")) != one.startswith("!") for one in patterns)


def _some_level_fits(levels: dict[str, str], name: str, patterns: tuple[str, ...]) -> bool:
    named = [level for factor, level in levels.items() if _is_one_of(factor, tuple(name.split("|")))]
    return any(_fits(level, patterns) for level in named)
