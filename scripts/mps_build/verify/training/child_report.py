"""One child of a workload, and the events that it reported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.errors import OwnFault
from mps_build.common.process import Command

from ..suite.child import ChildEnd, run_child
from ..suite.outcomes import JudgeText, describe_end, last_lines, signal_name
from ..suite.request import Limits

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
