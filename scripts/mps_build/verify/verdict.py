"""From the outcomes of all cases to one verdict and one exit code."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import (
    BuildEnvironmentError,
    DeviceUnusable,
    KnownIssuesOnly,
    MpsBuildError,
    MpsNotBuilt,
    NoGpuSession,
    OwnFault,
    Regressed,
    RosettaError,
    UsageError,
    VirtualGpu,
)
from mps_build.common.records.device_record import Case, Verdict

from .suite.outcomes import SuiteRun

_SHOWN = 5
_STOPS: dict[str, type[MpsBuildError]] = {
    "virtual_gpu_unusable": VirtualGpu,
    "mps_unavailable": NoGpuSession,
    "wrong_architecture": RosettaError,
    "not_built": MpsNotBuilt,
    "openmp_duplicate": BuildEnvironmentError,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The end of a verification."""

    verdict: Verdict
    exit_code: int = 0
    cause: str | None = None
    message: str | None = None
    hint: str | None = None


def judge_run(
    run: SuiteRun,
    *,
    device: str,
    record: Path,
    fault: str | None = None,
    accept_known: bool = False,
    virtual: bool = False,
    simulated: bool = False,
    limits: Collection[str] = (),
    python: Path | None = None,
) -> Judged:
    """Return the verdict of a run that was not interrupted.

    Args:
        record: where its record goes, for the next command.
        fault: the injected one.
        limits: known issues that are limits of the simulation.
        python: the user's own interpreter under test, None for one that we made: `repro` runs only ours unasked.
    """
    if run.refused is not None:
        return _ended(
            UsageError,
            f"the suite refuses its options: {run.refused}",
            "see docs/verify/injected_faults.md" if fault is not None else None,
        )
    if run.stopped is not None:
        error = _STOPS.get(run.stopped, DeviceUnusable)
        return _ended(error, f"the run was stopped by what a process wrote: {run.stopped}", _AGAIN)
    counts = count(run.cases)
    if virtual and device == "mps":
        return _ended(VirtualGpu, "a virtual machine's GPU: the cases ran, and no verdict follows from them", _ON_A_MAC)
    new = [case for case in run.cases if case.is_new]
    if new and all(case.is_event for case in run.cases if case.outcome != "skipped"):
        said = f"no case of the suite was run, and nothing follows: {new[0].id}: {new[0].reason}"
        return _ended(OwnFault, said, f"please report it with {record}")
    if new and (run.caught or fault is None):
        return Judged(
            verdict="regressed", exit_code=Regressed.exit_code, cause=Regressed.cause, hint=_repro(run, record, python)
        )
    if own := [case for case in run.cases if case.outcome == "own_fault"]:
        number = "one case" if len(own) == 1 else f"{len(own)} cases"
        said = f"the suite itself failed in {number}, and nothing follows: {own[0].id}: {own[0].reason}"
        return _ended(OwnFault, said, f"please report it with {record}")
    if not counts["passed"] + counts["known"] + counts["unexpected_pass"] + len(new):
        skipped = f"all {counts['skipped']} cases were skipped" if counts["skipped"] else "no case was chosen"
        return _ended(UsageError, f"nothing was verified: {skipped}", "choose others with --only, --op or --layer")
    if fault is not None:
        by_themselves = _by_themselves(new) if new else None
        if run.fault_result() == "not_exercised":
            return not_exercised(fault, "case", by_themselves)
        return Judged(verdict="rehearsed", message=by_themselves)
    if device != "mps":
        return Judged(verdict="rehearsed")
    if any(case.outcome == "known" and case.known_issue not in limits for case in run.cases):
        error = KnownIssuesOnly
        if accept_known:
            return Judged(verdict="rehearsed" if simulated else "known_issues_only")
        return Judged(verdict="known_issues_only", exit_code=error.exit_code, cause=error.cause, hint=_ACCEPT)
    return Judged(verdict="rehearsed" if simulated else "verified")


def not_exercised(fault: str, what: str, more: str | None = None) -> Judged:
    """Return the end of a run in which no case, or no row, met the injected fault: nothing was verified."""
    said = f"nothing was verified: no {what} met the injected fault {fault} (its hits are 0)"
    hint = "choose what reaches it, or let HITS count what it does: docs/verify/injected_faults.md"
    return _ended(UsageError, f"{said}; {more}" if more else said, hint)


_AGAIN = "close other GPU programs, let the machine cool, then run it again"
_ON_A_MAC = "verify on a Mac itself"
_ACCEPT = "`--accept known` makes this exit 0"


def _by_themselves(new: Sequence[Case]) -> str:
    """Say what failed beside a fault that no case caught."""
    more = f" and {len(new) - _SHOWN} more" if len(new) > _SHOWN else ""
    named = ", ".join(case.id for case in new[:_SHOWN])
    return (
        "no case caught the injected fault: what failed had no hit of it, fails without it too, or is no case: "
        f"{named}{more}"
    )


def _repro(run: SuiteRun, record: Path, python: Path | None) -> str:
    new = [case for case in run.cases if case.is_new]
    first = next((case.id for case in new if not case.is_event), None)
    if first is None:
        return f"what failed is no case: {new[0].id}: {new[0].reason}"
    command = f"nox -s repro -- {shlex.quote(str(record))} {shlex.quote(first)}"
    if python is not None:
        command += f" --python {shlex.quote(str(python))}"
    return f"`{command}` writes that failure as a script of its own"


def count(cases: Sequence[Case]) -> Counter[str]:
    """Return how many cases ended in each way."""
    return Counter(case.outcome for case in cases)


def _ended(error: type[MpsBuildError], message: str, hint: str | None) -> Judged:
    return Judged(verdict="not_verified", exit_code=error.exit_code, cause=error.cause, message=message, hint=hint)
