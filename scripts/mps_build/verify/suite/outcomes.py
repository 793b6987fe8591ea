"""From what a child reported, and from how it ended, to the outcomes of a run."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol

from mps_build.common.records.device_record import Case, FaultResult, Finding, Result

from .child import ChildEnd


class Judgement(Protocol):
    """What a text of a process means (triage's DeviceText)."""

    @property
    def category(self) -> str:
        """The category of triage, such as `gpu_timeout`."""

    @property
    def stop(self) -> bool:
        """True if nothing more should be run on this machine."""


JudgeText = Callable[[str, int | None, str | None], Judgement]


@dataclass(slots=True, kw_only=True)
class SuiteRun:
    """What a run came to; grows while it runs, so that an interruption keeps what there is.

    `files`: case -> its file, of all cases that were collected. `caught`: a case failed after the fault did something.
    `own`: cases in which the suite itself failed. `threads`: of a process, as it says; the most of any.
    `findings`: what failed cases come down to, by name. `not_run`: cases that were left when the time was over.
    """

    cases: list[Case] = field(default_factory=list)
    collected: int = 0
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stopped: str | None = None
    fault_hits: int | None = None
    caught: bool = False
    refused: str | None = None
    bad: int = 0
    own: int = 0
    faults: int = 0
    threads: int | None = None
    findings: dict[str, Finding] = field(default_factory=dict)
    not_run: int = 0

    def fault_result(self) -> FaultResult:
        """Return what became of the fault: one that never fired was not missed: it was not exercised."""
        if self.refused is not None:
            return "error"
        if self.caught:
            return "caught"
        return "not_exercised" if self.fault_hits == 0 else "missed"


OnCase = Callable[[SuiteRun, Case], None]


_RESULTS: tuple[Result, ...] = ("passed", "failed", "known", "unexpected_pass", "skipped", "own_fault")
# The event that counts an injected fault's hits, and its old name, which another suite (--suite) may have.
FAULT_EVENTS = ("fault", "plant")
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


def hits_in(event: Mapping[str, Any], *, otherwise: int | None = None) -> int | None:
    """Return how often the injected fault had fired when an event was written; `otherwise` where it does not say."""
    found: int | None = event.get("fault_hits", event.get("plant_hits", otherwise))
    return found


def finding_of_event(event: Mapping[str, Any]) -> Finding | None:
    """Return what a failed case comes down to, where the suite says so."""
    said = event.get("finding")
    try:
        return Finding.model_validate(said) if isinstance(said, dict) else None
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
