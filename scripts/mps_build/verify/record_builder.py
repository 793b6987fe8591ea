"""The record of a verification while it is made: what is known so far, at any moment."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any

from mps_build import __version__
from mps_build.common.known_issues import Issue
from mps_build.common.records.device_record import (
    Case,
    Concurrency,
    Estimate,
    Explanations,
    Finding,
    KnownIssue,
    Python,
    Record,
    Torch,
)

from .request import VerifyRequest
from .suite.outcomes import SuiteRun
from .verdict import Judged, count


@dataclass(slots=True)
class RecordBuilder:
    """What the record will say, as far as it is known."""

    host: Mapping[str, Any] = field(default_factory=dict)
    gpu: Mapping[str, Any] = field(default_factory=dict)
    torch: Torch = field(default_factory=Torch)
    python: Python | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    concurrency: Concurrency | None = None
    target: Mapping[str, Any] = field(default_factory=dict)
    known: tuple[KnownIssue, ...] = ()
    explanations: Explanations | None = None
    unmet: tuple[str, ...] = ()
    estimate: Estimate | None = None
    notes: list[str] = field(default_factory=list)
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))
    began: float = field(default_factory=time.monotonic)

    def record(self, request: VerifyRequest, run: SuiteRun, judged: Judged, *, partial: bool) -> Record:
        """Return the record as it stands."""
        return Record(
            tool=f"mps-build {__version__}",
            tool_version=__version__,
            statement=request.statement(self.gpu),
            verdict=judged.verdict,
            exit_code=judged.exit_code,
            cause=judged.cause,
            message=judged.message,
            hint=judged.hint,
            partial=partial,
            device=request.device,
            target=dict(self.target),
            selection=request.selection(),
            torch=self.torch,
            python=self.python,
            host=dict(self.host),
            gpu=dict(self.gpu),
            environment=dict(self.environment),
            concurrency=self.concurrency_of(run),
            known_issues=self.known,
            fault=run.fault_result() if request.fault and not partial else None,
            fault_hits=run.fault_hits,
            notes=tuple(self.notes + run.notes),
            started=self.started.isoformat(timespec="seconds"),
            seconds=round(time.monotonic() - self.began, 2),
            simulated=request.simulated,
            explanations=self.explanations,
            unmet=self.unmet,
            counts=dict(count(run.cases)),
            estimate=self.estimate,
            findings=findings_of(run),
            cases=tuple(run.cases),
        )

    def concurrency_of(self, run: SuiteRun) -> Concurrency | None:
        """Return how the run shares the machine: the threads are those that its processes say they have."""
        if self.concurrency is None or run.threads is None:
            return self.concurrency
        return self.concurrency.model_copy(update={"threads": run.threads})


def findings_of(run: SuiteRun) -> tuple[Finding, ...]:
    """Return what the cases that did not end well come down to, in their order."""
    names = dict.fromkeys(case.finding for case in run.cases if case.finding)
    return tuple(run.findings[name] for name in names if name in run.findings)


def known_issues(rows: Iterable[Issue]) -> tuple[KnownIssue, ...]:
    """Return active rows as the record holds them: what a report says of each, and which cases it covers."""
    return tuple(_known_issue(row) for row in rows)


def _known_issue(row: Issue) -> KnownIssue:
    return KnownIssue(
        id=row.id,
        kind=row.kind,
        link=row.link,
        title=row.title,
        outcome=row.outcome,
        reason=row.reason,
        since=row.since,
        fixed_by=row.fixed_by,
        cases=row.cases or (),
    )


def summed_up(cases: Iterable[Case], rows: Iterable[Issue]) -> Explanations:
    """Return how many cases are wrong by bugs, by limits of the simulation, and by nothing that is known."""
    every = tuple(cases)
    limits = {row.id for row in rows if row.kind == "limit"}
    kinds = Counter("limit" if case.known_issue in limits else "bug" for case in every if case.outcome == "known")
    return Explanations(bug=kinds["bug"], limit=kinds["limit"], unexplained=sum(case.is_new for case in every))


def unmet(cases: Sequence[Case], rows: Iterable[Issue]) -> tuple[str, ...]:
    """Return the rows of whose cases some ran, and none was wrong as the row says; one that is flaky may be unmet."""
    met = {case.known_issue for case in cases if case.outcome == "known"}
    ran = [case.id for case in cases if case.outcome != "skipped"]
    return tuple(row.id for row in rows if row.outcome != "flaky" and row.id not in met and _has_run(row, ran))


def _has_run(row: Issue, ran: Iterable[str]) -> bool:
    patterns = [*(row.cases or ()), *row.drawn]
    return any(fnmatchcase(case_id, pattern) for case_id in ran for pattern in patterns)
