"""The children of a workload: what each reported, and a new one behind each case that ended its process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.errors import OwnFault
from mps_build.common.process import Command
from mps_build.common.records.device_record import Case, Result

from ..suite.child import ChildEnd, run_child
from ..suite.outcomes import JudgeText, case_of_event, describe_end, hits_in, last_lines, signal_name
from ..suite.request import Limits
from .commands import Bench, run_name
from .request import Workload

# What a process may write and yet end with 0: the GPU dropped work, its answers are worth nothing.
_VOIDING = frozenset({"gpu_fault", "gpu_timeout", "virtual_gpu_unusable"})
_FELL_BACK = "fall back to run on the CPU"


@dataclass(slots=True, kw_only=True)
class ChildReport:
    """The events of one child, by kind and in order; and how it ended."""

    events: list[Mapping[str, Any]] = field(default_factory=list)
    trouble: str | None = None
    outcome: str = "failed"
    category: str | None = None
    stop: bool = False

    def all(self, kind: str) -> list[Mapping[str, Any]]:
        """Return all events of a kind, in order."""
        return [event for event in self.events if event.get("event") == kind]

    def last(self, kind: str) -> Mapping[str, Any] | None:
        """Return the last event of a kind; None if there is none."""
        return next((event for event in reversed(self.events) if event.get("event") == kind), None)


def run_and_report(
    command: Command,
    *,
    folder: Path,
    name: str,
    limits: Limits,
    judge_text: JudgeText,
    on_event: Callable[[Mapping[str, Any]], None] = lambda event: None,
) -> ChildReport:
    """Run one child under the watchdog; `trouble` is what kept it from its end, None if nothing did.

    Raises:
        OwnFault: a part of the suite failed in the child: nothing follows for the torch under test.
    """
    report = ChildReport()

    def take(event: Mapping[str, Any]) -> None:
        report.events.append(event)
        on_event(event)

    outcomes = folder / f"{name}.outcomes.jsonl"
    outcomes.unlink(missing_ok=True)
    end = run_child(command, log=folder / f"{name}.log", outcomes=outcomes, limits=limits, on_event=take)
    if (fault := report.last("own_fault")) is not None:
        raise OwnFault(
            f"{name}: a part of mps-build failed, not the torch under test: {fault.get('reason')}",
            hint=f"please report it with {folder / f'{name}.log'}",
        )
    text = "".join(part for _, part in end.slices)
    _judge(report, end, text, judge_text)
    fallen = sorted({line.strip() for line in text.splitlines() if _FELL_BACK in line})
    if fallen and report.last("fallbacks") is None:
        report.events.append({"event": "fallbacks", "operators": fallen})
    return report


def _judge(report: ChildReport, end: ChildEnd, text: str, judge_text: JudgeText) -> None:
    sound = end.exit == 0 and end.finished and not end.cut
    judged = judge_text(text, end.exit, signal_name(end.exit))
    if sound and judged.category not in _VOIDING:
        return
    report.category, report.stop = judged.category, judged.stop
    report.outcome = "timeout" if end.cut == "timeout" else "crashed" if end.cut or signal_name(end.exit) else "failed"
    how = judged.category if sound else describe_end(end)
    report.trouble = f"{how}: {last_lines(text) or 'not a word'}"


@dataclass(slots=True, kw_only=True)
class CaseRun:
    """Runs the script again behind each case that it did not survive.

    `hits` of the fault, in the child that runs; None: nobody counts them.
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
            self.running, self.hits = None, hits_in(event)
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
