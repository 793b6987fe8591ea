"""One verification in order: the files, the machine, the Python, torch, the cases, the verdict, the record."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mps_build.common.console import Console
from mps_build.common.errors import MpsBuildError, UsageError, VirtualGpu
from mps_build.common.known_issues import Circumstances, Issue, active_issues, load_issues
from mps_build.common.records.device_record import (
    FAILED,
    Case,
    Estimate,
    Record,
    Torch,
    load_record,
    to_json,
    write_record,
)
from mps_build.common.stopping import exit_status

from .preparation import Prepared, prepare, refuse, run_folder
from .progress import Progress
from .record_builder import RecordBuilder, known_issues
from .request import VerifyRequest
from .suite.outcomes import SuiteRun
from .target.diagnosis import HostFacts
from .target.environments import EnvironmentStore
from .target.resolve import Target
from .verdict import Judged, judge_run

_WRITE_SECONDS = 2.0
_INTERRUPTED = Judged(
    verdict="not_verified", exit_code=130, cause="interrupted", message="interrupted", hint="run the same command again"
)
# What the selection of a record of an older version does not say.
_DEFAULTS = {"cases": 0, "keys": 0, "seconds": 0.0, "seed": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Where cases run: in which Python, on which machine, with which known issues, and who hears of each case."""

    target: Target
    host: HostFacts
    known: tuple[Issue, ...]
    folder: Path
    builder: RecordBuilder
    run: SuiteRun
    on_case: Callable[[SuiteRun, Case], None]
    on_estimate: Callable[[Estimate], None]
    console: Console


class Suite(Protocol):
    """What a verification runs: the device suite, or the workloads of training.

    Attributes:
        root: the folder of its files; it holds known_issues.yaml.
        hint: what a regression is followed by, where it is not the script of one case.
    """

    root: Path
    hint: str | None

    def check(self) -> None:
        """Refuse what can be refused before the machine is looked at."""

    def make_target(self, store: EnvironmentStore) -> Target:
        """Return the Python under test with what the cases need."""

    def run(self, context: RunContext) -> None:
        """Run the cases; each goes into the context's run, and to its listener."""


class Verification:
    """One run of a suite, from the request to its record."""

    def __init__(self, request: VerifyRequest, console: Console, suite: Suite) -> None:
        self.request, self.console, self.suite = request, console, suite
        self.builder = RecordBuilder(target=request.named_target())
        self.folder = run_folder(request, self.builder.started)
        self.suite_run = SuiteRun()
        self.written = 0.0
        self.refusal: Record | None = None
        self.progress: Progress | None = None

    def run(self) -> Record:
        """Run everything and return the record; an error becomes a record with its cause and exit code."""
        try:
            return self._run()
        except MpsBuildError as error:
            error.hint = self._hint(error.cause, error.hint)
            judged = Judged(
                verdict="not_verified",
                exit_code=error.exit_code,
                cause=error.cause,
                message=str(error),
                hint=error.hint,
            )
            self.refusal = record = self._record(judged, partial=bool(self.suite_run.cases))
            if not self.request.resume:  # what was to be resumed stays as it is
                self._write(record)
            error.document = {**to_json(record), **error.document}
            if self.request.fault:
                error.document |= {"fault": "error", "plant": "error"}
            raise
        except KeyboardInterrupt:
            self._write(self.interrupted_record())
            raise

    def interrupted_record(self) -> Record:
        """Return what there is after an interruption: a partial record, without a verdict."""
        return self._record(_interrupted(), partial=True)

    def _run(self) -> Record:
        request = self.request
        issues = load_issues(request.known_issues or self.suite.root / "known_issues.yaml")
        self.suite.check()
        request.check_fault()
        earlier = self._take_up()
        prepared = prepare(
            request,
            builder=self.builder,
            folder=self.folder,
            console=self.console,
            make_target=self.suite.make_target,
        )
        if earlier is not None:
            refuse(_difference(earlier, self.builder.torch, request, self.folder))
            self.console.line(f"{len(earlier.cases)} cases are taken from the interrupted run")
        with self.console.step(f"Run the cases on {request.device}"):
            self.suite.run(self._context(prepared, self._active(issues, prepared)))
        self._after(prepared.target)
        judged = judge_run(
            self.suite_run,
            device=request.device,
            record=self.folder / "record.json",
            fault=request.fault,
            accept_known=request.accept_known,
            virtual=prepared.virtual,
            simulated=request.simulated is not None,
            limits=[row.id for row in self.builder.known if row.kind == "limit"],
            python=None if prepared.target.before is None else prepared.target.interpreter.executable,
        )
        hint = self.suite.hint if judged.verdict == "regressed" and self.suite.hint else judged.hint
        judged = replace(judged, hint=self._hint(judged.cause, hint))
        record = self._record(judged, partial=self.suite_run.stopped is not None)
        self._write(record)
        return record

    def _hint(self, cause: str | None, hint: str | None) -> str | None:
        """On a virtual GPU: name what gives a verdict all the same, on this torch's kernels alone."""
        if cause != VirtualGpu.cause:
            return hint
        command = self.request.kernels_command(self.builder.torch.version)
        return f"{hint}; on Linux, `{command}` gives a verdict on this torch's Metal kernels, and on them alone"

    def _take_up(self) -> Record | None:
        """Take over what an interrupted run found; whether it ran the same is known once torch was reached."""
        if not self.request.resume:
            return None
        earlier = load_record(self.folder / "record.json")
        self.builder.torch, self.suite_run.cases = earlier.torch, list(earlier.cases)
        self.suite_run.findings = {finding.id: finding for finding in earlier.findings}
        self.suite_run.bad = sum(case.outcome in FAILED for case in earlier.cases)
        return earlier

    def _active(self, issues: tuple[Issue, ...], prepared: Prepared) -> tuple[Issue, ...]:
        here = Circumstances(
            device=self.request.device,
            where=self.request.where,
            torch=prepared.facts.torch,
            macos=prepared.host.macos,
            chip=prepared.host.chip,
            virtual=prepared.virtual or prepared.host.virtual,
        )
        if self.request.any_release:
            issues = tuple(row.model_copy(update={"torch": None}) for row in issues)
        rows = active_issues(issues, here)
        self.builder.known = known_issues(rows)
        return rows

    def _context(self, prepared: Prepared, rows: tuple[Issue, ...]) -> RunContext:
        self.progress = progress = Progress(self.console, self.suite_run.cases, self.builder.concurrency_of)

        def on_case(suite_run: SuiteRun, case: Case) -> None:
            progress.show(suite_run, case)
            if time.monotonic() - self.written > _WRITE_SECONDS:
                self._write(self.interrupted_record())

        def on_estimate(estimate: Estimate) -> None:
            self.builder.estimate = estimate
            progress.expect(estimate)

        return RunContext(
            target=prepared.target,
            host=prepared.host,
            known=rows,
            folder=self.folder,
            builder=self.builder,
            run=self.suite_run,
            on_case=on_case,
            on_estimate=on_estimate,
            console=self.console,
        )

    def _after(self, target: Target) -> None:
        if self.progress is not None and self.progress.slow:
            self.builder.notes.append(self.progress.slow)
        changed = target.changes()
        if changed is None or self.builder.python is None:
            return
        self.builder.python = self.builder.python.model_copy(update={"unchanged": not changed})
        if changed:
            shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            self.builder.notes.append(f"in the interpreter's folders this changed while the suite ran: {shown}")

    def _record(self, judged: Judged, *, partial: bool) -> Record:
        return self.builder.record(self.request, self.suite_run, judged, partial=partial)

    def _write(self, record: Record) -> None:
        write_record(record, self.folder / "record.json")
        self.written = time.monotonic()


def _difference(earlier: Record, torch: Torch, request: VerifyRequest, folder: Path) -> UsageError | None:
    """Return why the cases of an interrupted run cannot be taken over; None where they can."""
    differences = [
        name
        for name, before, now in (
            ("torch", earlier.torch.version, torch.version),
            ("torch's commit", earlier.torch.commit, torch.commit),
            ("the device", earlier.device, request.device),
            ("what the device answers as", earlier.simulated, request.simulated),
            ("what was chosen of the suite", {**_DEFAULTS, **earlier.selection}, request.selection()),
        )
        if before != now
    ]
    if not earlier.partial:
        return UsageError(
            f"{folder}: that run is complete ({earlier.verdict})", hint="leave --resume out to run it again"
        )
    if differences:
        return UsageError(
            f"{folder}: it ran with other options: {', '.join(differences)} differ",
            hint="leave --resume out to start again",
        )
    return None


def _interrupted() -> Judged:
    return replace(_INTERRUPTED, exit_code=exit_status())
