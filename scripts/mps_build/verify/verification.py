"""One verification in order: the files, the machine, the Python, torch, the cases, the verdict, the record."""

from __future__ import annotations

import time
from dataclasses import replace

from mps_build.common.console import Console
from mps_build.common.errors import MpsBuildError, VirtualGpu
from mps_build.common.known_issues import Circumstances, Issue, active_issues, load_issues
from mps_build.common.records.device_record import FAILED, Case, Estimate, Record, load_record, to_json, write_record
from mps_build.common.stopping import exit_status

from .device_suite import DeviceSuite
from .draft import Draft, known_issues
from .judgement import Judged, judge_run
from .preparation import Prepared, prepare, refuse, run_folder
from .progress import Progress
from .resume import not_the_same
from .suite.run import SuiteRun
from .target.resolve import Target
from .verify_request import VerifyRequest
from .work import Setting, Work

_WRITE_SECONDS = 2.0
_INTERRUPTED = Judged(
    verdict="not_verified", exit_code=130, cause="interrupted", message="interrupted", hint="run the same command again"
)


def _interrupted() -> Judged:
    return replace(_INTERRUPTED, exit_code=exit_status())


def run(request: VerifyRequest, *, console: Console) -> Record:
    """Verify, and return the record; it lies in its folder too, from the first case on.

    Raises:
        MpsBuildError: no verdict can be had; its document is the record all the same.
        KeyboardInterrupt: the partial record is in its folder.
    """
    return Verification(request, console).run()


class Verification:
    """One run of the command; `work` is what it runs, the device suite unless something else is given."""

    def __init__(self, request: VerifyRequest, console: Console, work: Work | None = None) -> None:
        self.request, self.console = request, console
        self.work: Work = work or DeviceSuite(request)
        self.draft = Draft(target=request.asked())
        self.folder = run_folder(request, self.draft.started)
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
            if self.request.plant:
                error.document["plant"] = "error"
            raise
        except KeyboardInterrupt:
            self._write(self.interrupted_record())
            raise

    def interrupted_record(self) -> Record:
        """Return what there is after an interruption: a partial record, without a verdict."""
        return self._record(_interrupted(), partial=True)

    def _run(self) -> Record:
        request = self.request
        issues = load_issues(request.known_issues or self.work.suite / "known_issues.yaml")
        self.work.check()
        request.check_plant()
        earlier = self._take_up()
        prepared = prepare(
            request,
            draft=self.draft,
            folder=self.folder,
            console=self.console,
            make_target=self.work.make_target,
        )
        if earlier is not None:
            refuse(not_the_same(earlier, self.draft.torch, request, self.folder))
            self.console.line(f"{len(earlier.cases)} cases are taken from the interrupted run")
        with self.console.step(f"Run the cases on {request.device}"):
            self.work.run(self._setting(prepared, self._active(issues, prepared)))
        self._after(prepared.target)
        judged = judge_run(
            self.suite_run,
            device=request.device,
            record=self.folder / "record.json",
            planted=request.plant is not None,
            accept_known=request.accept_known,
            virtual=prepared.virtual,
            simulated=request.simulated is not None,
            limits=[row.id for row in self.draft.known if row.kind == "limit"],
        )
        hint = self.work.hint if judged.verdict == "regressed" and self.work.hint else judged.hint
        judged = replace(judged, hint=self._hint(judged.cause, hint))
        record = self._record(judged, partial=self.suite_run.stopped is not None)
        self._write(record)
        return record

    def _hint(self, cause: str | None, hint: str | None) -> str | None:
        """On a virtual GPU: name what gives a verdict all the same, on this torch's kernels alone."""
        if cause != VirtualGpu.cause:
            return hint
        command = self.request.kernels_command(self.draft.torch.version)
        return f"{hint}; on Linux, `{command}` gives a verdict on this torch's Metal kernels, and on them alone"

    def _take_up(self) -> Record | None:
        """Take over what an interrupted run found; whether it asked the same is known once torch is asked."""
        if not self.request.resume:
            return None
        earlier = load_record(self.folder / "record.json")
        self.draft.torch, self.suite_run.cases = earlier.torch, list(earlier.cases)
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
        rows = active_issues(issues, here)
        self.draft.known = known_issues(rows)
        return rows

    def _setting(self, prepared: Prepared, rows: tuple[Issue, ...]) -> Setting:
        self.progress = progress = Progress(self.console, self.suite_run.cases, self.draft.concurrency_of)

        def on_case(suite_run: SuiteRun, case: Case) -> None:
            progress.show(suite_run, case)
            if time.monotonic() - self.written > _WRITE_SECONDS:
                self._write(self.interrupted_record())

        def on_estimate(estimate: Estimate) -> None:
            self.draft.estimate = estimate
            progress.expect(estimate)

        return Setting(
            target=prepared.target,
            host=prepared.host,
            known=rows,
            folder=self.folder,
            draft=self.draft,
            run=self.suite_run,
            on_case=on_case,
            on_estimate=on_estimate,
            console=self.console,
        )

    def _after(self, target: Target) -> None:
        if self.progress is not None and self.progress.slow:
            self.draft.notes.append(self.progress.slow)
        changed = target.changes()
        if changed is None or self.draft.python is None:
            return
        self.draft.python = self.draft.python.model_copy(update={"unchanged": not changed})
        if changed:
            shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            self.draft.notes.append(f"in the interpreter's folders this changed while the suite ran: {shown}")

    def _record(self, judged: Judged, *, partial: bool) -> Record:
        return self.draft.record(self.request, self.suite_run, judged, partial=partial)

    def _write(self, record: Record) -> None:
        write_record(record, self.folder / "record.json")
        self.written = time.monotonic()
