"""The record in the making: what is known so far, at any moment."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from mps_build import __version__
from mps_build.common.known_issues import Issue
from mps_build.common.records.device_record import (
    Concurrency,
    Estimate,
    Explanations,
    Finding,
    KnownIssue,
    Python,
    Record,
    Torch,
)

from .judgement import Judged, count
from .suite.run import SuiteRun
from .verify_request import VerifyRequest


@dataclass(slots=True)
class Draft:
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
            plant=run.plant_result() if request.plant and not partial else None,
            plant_hits=run.plant_hits,
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
