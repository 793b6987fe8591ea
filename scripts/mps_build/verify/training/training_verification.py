"""One verification of training in order: what `verify_mps` does before any case, then the workloads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import Issue, as_suite_reads_them
from mps_build.common.process import capture
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.records.verification import Case, Record

from .. import Verification
from ..facts import judge_text_on
from ..judgement import Judged
from ..suite.child import Limits
from ..suite.memory import default_limit_bytes
from ..suite.outcomes import known_row
from ..suite.run import JudgeText
from ..target.diagnosis import HostFacts
from ..target.resolve import Target
from . import command_cases
from .case_run import CaseRun
from .child_report import ChildReport, run_and_report
from .commands import Bench, run_name, script_environ, training_environ
from .judgement import judge_training
from .processes import judge_processes, not_applicable
from .target import prepare_training_target
from .training_request import TrainingRequest
from .versions import load_versions, refuse_old_torch
from .workloads import REAL_WEIGHTS, Workload

_COMMAND_SECONDS = 240.0
_BAD = ("failed", "crashed", "timeout")
_HINT = "each run's log and its events lie beside the record; docs/verify/promises describes each case"


class _Stopped(Exception):
    """The machine is at fault, or a plant is caught: nothing more is to be run."""


class TrainingVerification(Verification):
    """One run of `verify_training`."""

    request: TrainingRequest

    def __init__(self, request: TrainingRequest, console: Console) -> None:
        super().__init__(request, console)
        self.suite = data_root() / "tests" / "training"
        self.table = load_versions()
        self._reference_runs: dict[str, ChildReport] = {}
        self._known: Sequence[Mapping[str, Any]] = ()
        self._judge_text: JudgeText = judge_text_on(HostFacts(system="", document={}), None)

    def _suite_files(self) -> tuple[Path, ...]:
        """Check what can be checked before the machine is looked at."""
        workloads = self.request.workloads()
        self.request.check_weights()
        self.request.check_script()
        refuse_old_torch(self.table, self._wanted_version(), self.request.asked_versions)
        scripts = {workload.script for workload in workloads if workload.script}
        if missing := sorted(name for name in scripts if not (self.suite / name).is_file()):
            raise UsageError(
                f"{self.suite}: lacks {', '.join(missing)}", hint="reinstall mps-build: a file of it is missing"
            )
        return ()

    def _prepare_target(self) -> Target:
        return prepare_training_target(self.request, self._shop(), self.table)

    def _drive(self, files: tuple[Path, ...], target: Target, rows: tuple[Issue, ...], host: HostFacts) -> None:
        workloads = self.request.workloads()
        home = self.folder / "hf_home"
        home.mkdir(parents=True, exist_ok=True)
        program = self.request.script
        given, device = target.environ.variables, self.request.device
        environ = (
            script_environ(given, own=os.environ, device=device)
            if program
            else training_environ(given, home=home, device=device)
        )
        bench = Bench(
            python=target.interpreter.executable,
            environ=environ,
            program=(str(program.absolute()), *self.request.script_arguments) if program else (),
            scripts=self.suite,
            folder=self.folder,
            device=self.request.device,
            force_cpu=self.request.device == "cpu" and host.system == "Darwin",
            plant=self.request.absolute_plant,
        )
        self._known = as_suite_reads_them(rows)
        self._judge_text = judge_text_on(host, self.draft.torch.version)
        try:
            for number, workload in enumerate(workloads, start=1):
                self.console.started(f"{number}/{len(workloads)} {workload.name}", unit="cases")
                bench = self._run_workload(workload, bench)
        except _Stopped:
            pass
        self.console.done()

    def _run_workload(self, workload: Workload, bench: Bench) -> Bench:
        if workload.kind == "accelerate":
            return self._accelerate(bench)
        if workload.kind == "training":
            self._training(workload, bench)
        elif workload.kind == "cases":
            self._cases(workload, bench)
        else:
            self._processes(workload, bench)
        return bench

    # The kinds of workload.

    def _accelerate(self, bench: Bench) -> Bench:
        """Ask the command itself; return the bench with the config that the launches take."""
        env = capture(bench.env(), timeout_seconds=_COMMAND_SECONDS)
        self._add(command_cases.judge_env(env))
        answer = capture(bench.config_default(), timeout_seconds=_COMMAND_SECONDS)
        found = command_cases.read_config(self.folder / "hf_home")
        config = found[1] if found else None
        self._remember(accelerate_env=env.stdout.strip(), accelerate_config=config)
        self._add(command_cases.judge_config(answer, config, self.request.device))
        if config is None:
            return bench
        path = self.folder / "launch_config.json"
        return bench.with_config(command_cases.write_launch_config(config, path, device=self.request.device))

    def _training(self, workload: Workload, bench: Bench) -> None:
        bench.exchange(workload).mkdir(parents=True, exist_ok=True)
        run = self._run_one(workload, bench, "device")
        if workload.against is not None:
            cpu = self._reference_runs.get(workload.against)
        else:
            cpu = None if run.trouble is not None else self._run_one(workload, bench, "cpu")
            if cpu is not None:
                self._reference_runs[workload.name] = cpu
        self._remember_session(run)
        for case in judge_training(workload, self.request.device, run, cpu):
            self._add(case)
        self._stop_if(run)

    def _run_one(self, workload: Workload, bench: Bench, which: Any) -> ChildReport:
        self.console.line(f"{workload.name}: on {self.request.device if which == 'device' else 'the CPU'}")
        report = run_and_report(
            bench.training(workload, which),
            folder=self.folder,
            name=run_name(workload, which),
            limits=self._limits(),
            judge_text=self._judge_text,
        )
        self._count_hits(report)
        return report

    def _cases(self, workload: Workload, bench: Bench) -> None:
        bench.exchange(workload).mkdir(parents=True, exist_ok=True)
        weights = self.request.real_weights.absolute() if self.request.real_weights else None
        run = CaseRun(
            workload=workload,
            bench=bench,
            weights=weights if workload is REAL_WEIGHTS else None,
            limits=self._limits(),
            judge_text=self._judge_text,
            add=self._add,
        )
        for report in run.children():
            self._count_hits(report)
            self._remember_session(report)
            self._stop_if(report)

    def _processes(self, workload: Workload, bench: Bench) -> None:
        if self.request.device != "mps":
            self._add(not_applicable(workload, self.request.device))
            return
        report = run_and_report(
            bench.processes(workload),
            folder=self.folder,
            name=run_name(workload, "device"),
            limits=replace(self._limits(), start_seconds=180.0),
            judge_text=self._judge_text,
        )
        log = self.folder / f"{run_name(workload, 'device')}.log"
        self._add(judge_processes(workload, report, log.read_text(encoding="utf-8", errors="replace")))

    # The cases and the record.

    def _limits(self) -> Limits:
        return Limits(
            case_seconds=self.request.case_seconds,
            memory_bytes=self.request.memory_bytes or default_limit_bytes(),
        )

    def _add(self, case: Case) -> None:
        row = known_row(case.id, self._known)
        if row is not None and case.outcome in _BAD:
            case = case.model_copy(update={"outcome": "known", "known_issue": str(row["id"])})
        elif row is not None and case.outcome == "passed" and row["outcome"] != "flaky":
            case = case.model_copy(update={"outcome": "unexpected_pass", "known_issue": str(row["id"])})
        self.suite_run.cases.append(case)
        self.suite_run.bad += case.outcome in _BAD
        self._on_case(self.suite_run, case)
        if self.request.plant and case.outcome in _BAD:
            raise _Stopped

    def _stop_if(self, report: ChildReport) -> None:
        """End the run where the machine is at fault, as the device suite does."""
        if report.stop and report.category is not None:
            self.suite_run.stopped = report.category
            raise _Stopped

    def _count_hits(self, report: ChildReport) -> None:
        for event in report.all("plant"):
            if event.get("hits") is not None:
                self.suite_run.plant_hits = (self.suite_run.plant_hits or 0) + int(event["hits"])

    def _remember_session(self, report: ChildReport) -> None:
        session = report.last("session")
        if session is not None:
            kept = {name: value for name, value in session.items() if name not in ("event", "output_bytes", "fallback")}
            self._remember(libraries={**self._training_facts().get("libraries", {}), **kept})

    def _training_facts(self) -> dict[str, Any]:
        return dict(self.draft.environment.get("training") or {})

    def _remember(self, **facts: Any) -> None:
        self.draft.environment = {**self.draft.environment, "training": {**self._training_facts(), **facts}}

    def _record(self, judged: Judged, *, partial: bool) -> Record:
        if judged.verdict == "regressed":  # `repro` writes scripts of single operators
            judged = replace(judged, hint=_HINT)
        return super()._record(judged, partial=partial)
