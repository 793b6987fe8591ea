"""One verification in order: the files, the machine, the Python, torch, the cases, the verdict, the record."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import HostError, MpsBuildError, UsageError, VirtualGpu
from mps_build.common.known_issues import Circumstances, Issue, active_issues, as_suite_reads_them, load_issues
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.records.verification import Case, Python, Record, Torch, load_record, to_json, write_record
from mps_build.common.stopping import exit_status
from mps_build.common.workspace import cache_folder, work_folder

from .draft import Draft, known_issues
from .facts import judge_text_on, observe_host, recorded_line
from .judgement import BAD, Judged, judge_run
from .operators import check_operator
from .pace import Pace
from .resume import not_the_same
from .suite.child import Limits
from .suite.driver import run_suite
from .suite.files import suite_files
from .suite.memory import default_limit_bytes
from .suite.run import SuiteRun
from .suite.suite_request import SuiteRequest
from .target import diagnosis
from .target.diagnosis import HostFacts, ProbeFacts
from .target.resolve import Target, prepare_target
from .target.torch_environment import Shop
from .target.wheel_fit import name_wheel
from .verify_request import VerifyRequest

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
    """One run of the command."""

    def __init__(self, request: VerifyRequest, console: Console) -> None:
        self.request, self.console = request, console
        self.draft = Draft(target=request.asked())
        self.folder = (request.folder or work_folder() / "verify" / _stamp(self.draft.started, request)).absolute()
        self.suite = request.suite or data_root() / "tests" / "device"
        self.suite_run = SuiteRun()
        self.written = self.began = 0.0
        self.pace = Pace()
        self.done_before = 0
        self.virtual = False
        self.refusal: Record | None = None

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
            self._write(self._record(_interrupted(), partial=True))
            raise

    def interrupted_record(self) -> Record:
        """Return what there is after an interruption: a partial record, without a verdict."""
        return self._record(_interrupted(), partial=True)

    def _run(self) -> Record:
        issues = load_issues(self.request.known_issues or self.suite / "known_issues.yaml")
        files = self._suite_files()
        self.request.check_plant()
        check_operator(self.request.op, self.suite)
        earlier = self._take_up()
        host = observe_host(self.request.host_file)
        if self.request.python and self.request.host_file is None:
            host = replace(host, rosetta=None)  # that is said of our own Python; the probe asks the one under test
        self.draft.host = host.document
        if self.request.host_file is not None:
            self.console.print(recorded_line(self.request.host_file))
        with self.console.step("Check the machine"):
            self._refuse(
                diagnosis.host_obstacle(
                    _unless_allowed(host, self.request), self.request.device, self._wanted_version()
                )
            )
            self._refuse(self._recorded_host())
        with self.console.step("Prepare the Python under test"):
            target = self._prepare_target()
        with self.console.step("Check torch and its device"):
            facts = self._probe(target, host)
        if earlier is not None:
            self._refuse(not_the_same(earlier, self.draft.torch, self.request, self.folder))
            self.console.line(f"{len(earlier.cases)} cases are taken from the interrupted run")
        rows = self._active(issues, host, facts)
        with self.console.step(f"Run the cases on {self.request.device}"):
            self._drive(files, target, rows, host)
        self._after(target)
        judged = judge_run(
            self.suite_run,
            device=self.request.device,
            record=self.folder / "record.json",
            planted=self.request.plant is not None,
            accept_known=self.request.accept_known,
            virtual=self.virtual,
        )
        judged = replace(judged, hint=self._hint(judged.cause, judged.hint))
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
        self.suite_run.bad = sum(case.outcome in BAD for case in earlier.cases)
        return earlier

    def _prepare_target(self) -> Target:
        return prepare_target(self.request, self._shop())

    def _shop(self) -> Shop:
        return Shop(
            cache=cache_folder() / "verify",
            environ={**fetch_environ(os.environ), "PYTHONDONTWRITEBYTECODE": "1"},
            log=self.folder / "pip.log",
            reporter=self.console,
            offline=self.request.offline,
        )

    # The diagnosis.

    def _probe(self, target: Target, host: HostFacts) -> ProbeFacts:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.draft.target = target.document
        self.draft.environment = {"kept": dict(target.environ.kept), "removed": dict(target.environ.removed)}
        self.draft.python = Python(
            executable=str(target.interpreter.executable),
            version=target.interpreter.version,
            machine=target.interpreter.machine,
        )
        facts = diagnosis.probe(
            target.interpreter.executable, self.request.device, environ=target.environ.variables, folder=self.folder
        )
        self.draft.torch = Torch(version=facts.torch, commit=facts.get("import", "commit"), wheel=target.wheel)
        self.draft.gpu = {key: value for key, value in facts.stages.get("device", {}).items() if key != "stage"}
        allowed = _unless_allowed(host, self.request)
        obstacle = diagnosis.torch_obstacle(facts, allowed, self.request.device, judge_text_on(host, facts.torch))
        if obstacle is not None and not (self.request.allow_virtual and obstacle.cause == "virtual_gpu"):
            raise obstacle
        self.virtual = bool(host.virtual) or obstacle is not None
        self.console.line(f"torch {facts.torch} on {facts.get('device', 'name') or self.request.device}")
        return facts

    def _recorded_host(self) -> MpsBuildError | None:
        if self.request.host_file is None:
            return None
        return HostError(
            f"not verified: {self.request.host_file} is a recording; nothing on that Mac prevents verification, "
            "but a recording cannot run it",
            hint="run the same command, without --host, on the Mac itself",
        )

    def _wanted_version(self) -> str | None:
        """Return the version under test if the arguments alone tell it."""
        if self.request.is_wheel:
            return name_wheel(Path(self.request.target or "").absolute()).version
        return self.request.exact_version

    @staticmethod
    def _refuse(obstacle: MpsBuildError | None) -> None:
        if obstacle is not None:
            raise obstacle

    # The suite.

    def _suite_files(self) -> tuple[Path, ...]:
        return suite_files(self.suite, self.request.layers)

    def _active(self, issues: tuple[Issue, ...], host: HostFacts, facts: ProbeFacts) -> tuple[Issue, ...]:
        here = Circumstances(
            device=self.request.device,
            torch=facts.torch,
            macos=host.macos,
            chip=host.chip,
            virtual=self.virtual or host.virtual,
        )
        rows = active_issues(issues, here)
        self.draft.known = known_issues(rows)
        return rows

    def _drive(self, files: tuple[Path, ...], target: Target, rows: tuple[Issue, ...], host: HostFacts) -> None:
        request = self.request
        suite = SuiteRequest(
            interpreter=target.interpreter.executable,
            environ=target.environ.variables,
            ini=self.suite / "pytest.ini",
            files=files,
            device=request.device,
            folder=self.folder,
            limits=Limits(
                case_seconds=request.case_seconds, memory_bytes=request.memory_bytes or default_limit_bytes()
            ),
            full=request.full,
            quick=request.quick,
            only=request.only,
            op=request.op,
            plant=request.absolute_plant,
            known=as_suite_reads_them(rows),
            jobs=request.jobs,
        )
        self.console.started("Cases", unit="cases")
        self.began, self.pace = time.monotonic(), Pace(case.id for case in self.suite_run.cases)
        self.done_before = len(self.suite_run.cases)  # of a run that is resumed
        judge_text = judge_text_on(host, self.draft.torch.version)
        run_suite(suite, judge_text=judge_text, on_case=self._on_case, run=self.suite_run)
        self.console.done()
        if not self.suite_run.cases and not self.suite_run.refused:
            chosen = ", ".join((*request.only, *([request.op] if request.op else [])))
            raise UsageError(
                f"no case has the id or dispatches {chosen or 'anything'}",
                hint="ids are in any record, under `cases`",
            )

    def _on_case(self, suite_run: SuiteRun, case: Case) -> None:
        if case.outcome in BAD:
            self.console.line(f"{case.outcome}: {case.id}: {case.reason or ''}"[:300])
        note = f"{suite_run.bad} failed" if suite_run.bad else ""
        total = self.done_before + suite_run.collected
        self.pace.add(case.id, suite_run.files)
        left = self.pace.seconds_left(time.monotonic() - self.began)
        note = f"{note}  {case.id}".strip()
        self.console.advanced(len(suite_run.cases), total=total or None, note=note, left=left)
        if time.monotonic() - self.written > _WRITE_SECONDS:
            self._write(self._record(_interrupted(), partial=True))

    def _after(self, target: Target) -> None:
        changed = target.changes()
        if changed is None or self.draft.python is None:
            return
        self.draft.python = self.draft.python.model_copy(update={"unchanged": not changed})
        if changed:
            shown = ", ".join(changed[:5]) + (f" and {len(changed) - 5} more" if len(changed) > 5 else "")
            self.draft.notes.append(f"in the interpreter's folders this changed while the suite ran: {shown}")

    # The record.

    def _record(self, judged: Judged, *, partial: bool) -> Record:
        return self.draft.record(self.request, self.suite_run, judged, partial=partial)

    def _write(self, record: Record) -> None:
        write_record(record, self.folder / "record.json")
        self.written = time.monotonic()


def _stamp(started: datetime, request: VerifyRequest) -> str:
    return f"{started:%Y%m%dT%H%M%S}-{request.device}-{os.getpid()}"


def _unless_allowed(host: HostFacts, request: VerifyRequest) -> HostFacts:
    """Return the host as the diagnosis is to see it: --allow-virtual runs the cases, without a verdict."""
    return replace(host, virtual=None) if request.allow_virtual and host.virtual else host
