"""What public reports say of a release, and whether the simulated device shows it: rows, answers, reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mps_build.common import strict_yaml
from mps_build.common.known_issues import Issue, within
from mps_build.common.records.device_record import Case

Why = Annotated[str, StringConstraints(min_length=20)]
_FAILED = ("failed", "crashed", "timeout", "known")


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Reason(_Declared):
    """Why the simulated device does not show a report.

    `cause`: `host`, where the fault does lie in host code or kernels of the release; `gpu`: it needs a GPU's numbers or
    times; `mpsgraph`: Apple's own fault; `later`, `fixed`: the host code of it came later, or had been fixed.
    """

    cause: Literal["host", "gpu", "mpsgraph", "later", "fixed"]
    why: Why


class HistoryReasons(_Declared):
    """The whole of history.yaml; `other`: reports whose cases fail by another fault than the report's."""

    schema_version: Literal[1]
    not_shown: Mapping[str, Reason]
    other: Mapping[str, Why] = Field(default={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report that is asked; `patterns` are its cases, beside those that name it. `is_listed`: known_issues.yaml says
    that it holds for the release; else it is an entry of the catalogue, of which no source gives a range."""

    id: str
    title: str
    patterns: tuple[str, ...]
    is_listed: bool


def load_reasons(path: Path) -> HistoryReasons:
    """Return history.yaml.

    Raises:
        UsageError: it lists every fault with its line.
    """
    return strict_yaml.load(path, HistoryReasons)


def reports(issues: Iterable[Issue], entries: Iterable[Mapping[str, Any]], *, release: str) -> tuple[Report, ...]:
    """Return the reports of mps that hold for a release, on any macOS, and every other entry of the catalogue.

    A known issue without `since` is no report: the suite found it on the simulated device.
    """
    listed = [
        Report(id=row.id, title=row.title, patterns=row.cases or (), is_listed=True)
        for row in issues
        if row.since is not None and "mps" in row.devices and within(release, row.torch)
    ]
    ids = {report.id for report in listed}
    more = [
        Report(id=str(row["issue"]), title=str(row["title"]), patterns=(), is_listed=False)
        for row in entries
        if str(row["issue"]) not in ids
    ]
    return (*listed, *more)


def answers(found: Iterable[Report], cases: Sequence[Case]) -> dict[str, str]:
    """Return what a run says of each report that a case was asked of: `shown`, where one failed, or `passed`."""
    asked = [case for case in cases if case.outcome != "skipped"]
    said: dict[str, str] = {}
    for report in found:
        mine = [case.outcome for case in asked if _is_of(case, report)]
        if mine:
            said[report.id] = "shown" if any(outcome in _FAILED for outcome in mine) else "passed"
    return said


def _is_of(case: Case, report: Report) -> bool:
    return report.id in case.issue or any(fnmatchcase(case.id, pattern) for pattern in report.patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One report with its answers by macOS; `reason` where it is not shown."""

    report: Report
    answers: Mapping[str, str]
    is_shown: bool
    reason: Reason | None


def history(
    found: Iterable[Report], said: Mapping[str, Mapping[str, str]], reasons: HistoryReasons
) -> tuple[Line, ...]:
    """Return the reports that hold for the release: those that are listed, and those that the device shows.

    Args:
        said: by macOS, by report.
    """
    lines = []
    for report in found:
        mine = {macos: one[report.id] for macos, one in said.items() if report.id in one}
        is_shown = "shown" in mine.values() and report.id not in reasons.other
        if is_shown or report.is_listed:
            reason = reasons.not_shown.get(report.id)
            lines.append(Line(report=report, answers=mine, is_shown=is_shown, reason=reason))
    return tuple(lines)


def share_shown(lines: Iterable[Line]) -> tuple[int, int]:
    """Return how many known issues whose cause lies in host code or kernels are shown, and how many there are.

    No source says of other entries of the catalogue that they hold for the release: one that is shown would count, and
    one that is not could not.
    """
    listed = [line for line in lines if line.report.is_listed]
    shown = sum(line.is_shown for line in listed)
    hidden = sum(not line.is_shown and line.reason is not None and line.reason.cause == "host" for line in listed)
    return shown, shown + hidden


def faults(lines: Iterable[Line], reasons: HistoryReasons) -> list[str]:
    """Return what is wrong with the reasons: one is missing, or is there for what is shown or is not a row."""
    by_id = {line.report.id: line for line in lines}
    hidden = {name for name, one in by_id.items() if not one.is_shown}
    missing = [f"{name}: not shown, and no reason" for name in by_id if name in hidden and not by_id[name].reason]
    needless = [f"{name}: a reason, and it is shown" for name in reasons.not_shown if name in by_id.keys() - hidden]
    unknown = [f"{name}: a reason, and it is not a row" for name in reasons.not_shown if name not in by_id]
    return [*missing, *needless, *unknown]
