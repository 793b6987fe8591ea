"""From what a child reported, and from how it ended, to the outcome of a case."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from mps_build.common.records.device_record import Case, Finding, Result

from .child import ChildEnd

_RESULTS: tuple[Result, ...] = ("passed", "failed", "known", "unexpected_pass", "skipped", "own_fault")
WHERE = {
    "collection": "before its first case",
    "between cases": "between two cases",
    "end": "after its last case",
}


def known_row(case_id: str, known: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the first active row that names a case, by its id or by a shell pattern."""
    return next((row for row in known if _is_one_of(case_id, row["cases"])), None)


def known_death(case_id: str, reason: str, known: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the row that expects a case to end its process so; one that expects wrong answers alone does not.

    The levels of the call are not known then, so that a row that asks for one does not fit.
    """
    return next(
        (
            row
            for row in known
            if row["outcome"] != "fails"
            and _is_one_of(case_id, (*row["cases"], *(() if _asks_levels(row) else row.get("drawn", ()))))
            and re.search(row.get("says", ""), reason)
        ),
        None,
    )


def _asks_levels(row: Mapping[str, Any]) -> bool:
    return bool(row.get("dtype") or row.get("levels"))


def _is_one_of(case_id: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(case_id, pattern) for pattern in patterns)


def case_of_event(event: Mapping[str, Any], layer: str) -> Case:
    """Return the case of one line; an outcome outside the contract is a failure of the case, never a pass."""
    outcome_written, reason = event.get("outcome"), event.get("reason")
    outcome: Result = next((known for known in _RESULTS if known == outcome_written), "failed")
    if outcome != outcome_written:
        reason = f"the suite wrote the unknown outcome {outcome_written!r}"
    error = event.get("error") or None
    figures = error if isinstance(error, dict) else {}
    row, levels = event.get("known_issue"), event.get("levels")
    return Case(
        id=str(event["id"]),
        layer=str(event.get("layer") or layer),
        issue=tuple(str(number) for number in event.get("issue") or ()),
        outcome=outcome,
        reason=str(reason) if reason else None,
        error=error if isinstance(error, dict) else ({"message": str(error)} if error else None),
        largest=_figure(figures.get("max_abs")),
        bound=_figure(figures.get("bound")),
        seconds=_figure(event.get("seconds")),
        known_issue=str(row) if row and outcome in ("known", "unexpected_pass") else None,
        levels={str(name): str(level) for name, level in levels.items()} if isinstance(levels, dict) else None,
        finding=found.id if (found := finding_of_event(event)) else None,
    )


def finding_of_event(event: Mapping[str, Any]) -> Finding | None:
    """Return what a failed case comes down to, where the suite says so."""
    told = event.get("finding")
    try:
        return Finding.model_validate(told) if isinstance(told, dict) else None
    except ValueError:
        return None


def _figure(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def is_orderly(end: ChildEnd) -> bool:
    """True for pytest's own ends: all well, some failed, nothing to run. A child that says nothing more is none."""
    return end.exit in (0, 1, 5) and (end.finished or end.exit == 5)


def describe_end(end: ChildEnd) -> str:
    """Return how a child ended, in words."""
    if end.cut == "timeout":
        return "ended by the watchdog: no output within the time limit"
    if end.cut == "memory":
        return "ended by the watchdog: it used more memory than allowed"
    name = signal_name(end.exit)
    if name:
        return f"the process died with {name}"
    return f"the process ended with exit {end.exit}" + ("" if end.exit else ", though it had not finished")


def signal_name(code: int | None) -> str | None:
    """Return the name of the signal that an exit status tells of, if it does."""
    if code is None or code >= 0:
        return None
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def last_lines(text: str, count: int = 6) -> str:
    """Return the last words of a process in one line; Python's own dump of a dead process stands behind them.

    >>> last_lines("failed assertion `no\\nFatal Python error: Aborted\\n\\nThread 0x1:\\n  File ...")
    'failed assertion `no | Fatal Python error: Aborted'
    """
    before, dump, behind = text.partition("Fatal Python error")
    text = f"{before}{dump}{behind.partition(chr(10))[0]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-count:])[-900:]
