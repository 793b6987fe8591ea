"""What is told of each case: one JSON line an event; known issues that are active here."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import stat
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Iterable

from .cases import Case


def _output_bytes() -> int | None:
    """Return how much this process has written, if to a file: the driver ascribes a GPU's fault text by it."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        facts = os.fstat(2)
    except OSError:
        return None
    return facts.st_size if stat.S_ISREG(facts.st_mode) else None


class OutcomeLog:
    """Appends events to a file; without a file it keeps silent."""

    def __init__(self, path: Path | None) -> None:
        self._file = None if path is None else path.open("ab", buffering=0)

    def write(self, event: str, **facts: Any) -> None:
        """Append one line and hand it to the system."""
        if self._file is not None:
            line = json.dumps({"event": event, **facts, "output_bytes": _output_bytes()})
            self._file.write(f"{line}\n".encode())

    def started(self, case: Case) -> None:
        """Say that a case begins: if nothing follows, it crashed or hung."""
        self.write("started", id=case.id, layer=case.layer, issue=list(case.issues), limit_seconds=case.limit_seconds)

    @property
    def read_by_a_driver(self) -> bool:
        """Say whether somebody reads the events, and so may start another process."""
        return self._file is not None

    def finished(
        self, case: Case, outcome: str, reason: str, error: dict[str, float], seconds: float, **facts: Any
    ) -> None:
        """Say what came of a case."""
        self.write(
            "finished",
            id=case.id,
            layer=case.layer,
            issue=list(case.issues),
            outcome=outcome,
            reason=reason,
            error=error,
            seconds=round(seconds, 4),
            **facts,
        )


def judge(failed: bool, issue: KnownIssue | None, is_ours: Callable[[], bool] = lambda: False) -> str:
    """Return the outcome of a case that ran, in the light of what is known; `is_ours`: the suite itself failed.

    >>> judge(True, None), judge(True, KnownIssue("1", ("a",), "fails")), judge(False, KnownIssue("1", ("a",), "fails"))
    ('failed', 'known', 'unexpected_pass')
    """
    if failed:
        return "known" if issue is not None else "own_fault" if is_ours() else "failed"
    return "unexpected_pass" if issue is not None and issue.outcome != "flaky" else "passed"


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
