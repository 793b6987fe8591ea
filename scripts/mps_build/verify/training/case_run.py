"""A workload whose cases judge themselves, in as many children as it takes: a crash or a hang costs one case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.records.device_record import Case, Result

from ..suite.outcomes import JudgeText, case_of_event
from ..suite.request import Limits
from .child_report import ChildReport, run_and_report
from .commands import Bench, run_name
from .workloads import Workload


@dataclass(slots=True, kw_only=True)
class CaseRun:
    """Runs the script again behind each case that it did not survive.

    `hits` of the plant, in the child that runs; None: nobody counts them.
    """

    workload: Workload
    bench: Bench
    weights: Path | None
    limits: Limits
    judge_text: JudgeText
    add: Callable[[Case], None]
    expected: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    running: str | None = None
    hits: int | None = None

    def children(self) -> Iterator[ChildReport]:
        """Run the children one after another and yield each; every collected case has an outcome at the end."""
        after: str | None = None
        while True:
            self.running = self.hits = None
            report = run_and_report(
                self.bench.cases(self.workload, after=after, weights=self.weights),
                folder=self.bench.folder,
                name=run_name(self.workload, "device"),
                limits=self.limits,
                judge_text=self.judge_text,
                on_event=self._on_event,
            )
            after = self._left_behind(report)
            yield report
            if after is None:
                break
        for name in self.expected:
            if name not in self.seen:
                self._add(self._case(name, "failed", "the workload gave no outcome"))

    def _on_event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("event")
        if kind == "collected" and not self.expected:
            self.expected = [str(name) for name in event.get("ids") or ()]
        elif kind == "started":
            self.running = str(event["id"])
        elif kind == "finished":
            self.running, self.hits = None, event.get("plant_hits")
            self._add(case_of_event(event, self.workload.part))

    def _left_behind(self, report: ChildReport) -> str | None:
        """Take in the case that a child did not survive; return it if others follow."""
        if report.trouble is None:
            return None
        outcome: Result = "timeout" if report.outcome == "timeout" else "crashed" if self.running else "failed"
        if self.running is not None:
            name = self.running
            self._add(self._case(name, outcome, report.trouble))
            return name if name != self.expected[-1:][0] else None
        if all(name in self.seen for name in self.expected) and self.expected:
            self._add(self._case(f"{self.workload.name}::end", outcome, f"behind its last case: {report.trouble}"))
        else:
            self._add(self._case(f"{self.workload.name}::begin", outcome, f"outside of any case: {report.trouble}"))
        return None

    def _add(self, case: Case) -> None:
        if case.id not in self.seen:
            self.seen.add(case.id)
            self.add(case)

    def _case(self, name: str, outcome: Result, reason: str) -> Case:
        return Case(id=name, layer=self.workload.part, outcome=outcome, reason=reason)
