"""Training as the suite of a verification: each workload in processes of its own, and the cases that follow from it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mps_build.common.cores import threads_set, usable_cores, with_share, within_quota
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import as_suite_reads_them
from mps_build.common.process import capture
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.records.device_record import FAILED, Case, Concurrency

from ..device_suite import limits_of
from ..suite.outcomes import known_row
from ..target.diagnosis import judge_text_on
from ..target.environments import EnvironmentStore
from ..target.resolve import Target, wanted_version
from ..verification import RunContext
from . import judgement
from .children import CaseRun, ChildReport, run_and_report
from .commands import Bench, run_name, script_environ, training_environ
from .judgement import judge_processes, judge_training, not_applicable
from .libraries import load_versions, prepare_training_target, refuse_old_torch
from .request import REAL_WEIGHTS, TrainingRequest, Workload

_COMMAND_SECONDS = 240.0
_HINT = "each run's log and its events lie beside the record; docs/verify/promises describes each case"


class _Stopped(Exception):
    """The machine is at fault, or the injected fault is caught: nothing more is to be run."""


class Training:
    """The workloads that a request asks for."""

    hint: str | None = _HINT  # `repro` writes scripts of single operators

    def __init__(self, request: TrainingRequest) -> None:
        self.request = request
        self.root = data_root() / "tests" / "training"
        self.table = load_versions()

    def check(self) -> None:
        """Check the workloads, their files, and what the caller brings along.

        Raises:
            UsageError: one of them cannot be run.
        """
        workloads = self.request.workloads()
        self.request.check_weights()
        self.request.check_script()
        refuse_old_torch(self.table, wanted_version(self.request), self.request.chosen_versions)
        scripts = {workload.script for workload in workloads if workload.script}
        if missing := sorted(name for name in scripts if not (self.root / name).is_file()):
            raise UsageError(
                f"{self.root}: lacks {', '.join(missing)}", hint="reinstall mps-build: a file of it is missing"
            )

    def make_target(self, store: EnvironmentStore) -> Target:
        """Return the Python under test, with the libraries in it."""
        return prepare_training_target(self.request, store, self.table)

    def run(self, context: RunContext) -> None:
        """Run the workloads in order, until the machine is at fault or the injected fault is caught."""
        home = context.folder / "hf_home"
        home.mkdir(parents=True, exist_ok=True)
        request, program = self.request, self.request.script
        given, device = within_quota(context.target.environ.variables), request.device
        cores = usable_cores()
        context.builder.concurrency = Concurrency(cores=cores, processes=1, threads=threads_set(given) or cores)
        environ = (
            script_environ(given, own=os.environ, device=device)
            if program
            else training_environ(given, home=home, device=device)
        )
        bench = Bench(
            python=context.target.interpreter.executable,
            environ=environ,
            program=(str(program.absolute()), *request.script_arguments) if program else (),
            scripts=self.root,
            folder=context.folder,
            device=device,
            force_cpu=device == "cpu" and context.host.system == "Darwin",
            fault=request.absolute_fault,
        )
        session, workloads = _Session(request, context), request.workloads()
        try:
            for number, workload in enumerate(workloads, start=1):
                context.console.started(f"{number}/{len(workloads)} {workload.name}", unit="cases")
                bench = session.run(workload, bench)
        except _Stopped:
            pass
        context.console.done()


class _Session:
    """One run of the workloads: what they share, and what has been found."""

    def __init__(self, request: TrainingRequest, context: RunContext) -> None:
        self.request, self.context = request, context
        self._known: Sequence[Mapping[str, Any]] = as_suite_reads_them(context.known)
        self._judge_text = judge_text_on(context.host, context.builder.torch.version)
        self._limits = limits_of(request)
        self._reference_runs: dict[str, ChildReport] = {}

    def run(self, workload: Workload, bench: Bench) -> Bench:
        """Run one workload; return the bench for those that follow."""
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
        """Run the command itself; return the bench with the config that the launches take."""
        env = capture(bench.env(), timeout_seconds=_COMMAND_SECONDS)
        self._add(judgement.judge_env(env))
        answer = capture(bench.config_default(), timeout_seconds=_COMMAND_SECONDS)
        found = judgement.read_config(self.context.folder / "hf_home")
        config = found[1] if found else None
        self._remember(accelerate_env=env.stdout.strip(), accelerate_config=config)
        self._add(judgement.judge_config(answer, config, self.request.device))
        if config is None:
            return bench
        path = self.context.folder / "launch_config.json"
        return bench.with_config(judgement.write_launch_config(config, path, device=self.request.device))

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
        self.context.console.line(f"{workload.name}: on {self.request.device if which == 'device' else 'the CPU'}")
        report = run_and_report(
            bench.training(workload, which),
            folder=self.context.folder,
            name=run_name(workload, which),
            limits=self._limits,
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
            limits=self._limits,
            judge_text=self._judge_text,
            add=lambda case: self._add(case, hits=run.hits),
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
            replace(bench, environ=with_share(bench.environ, 2)).processes(workload),  # two on one device
            folder=self.context.folder,
            name=run_name(workload, "device"),
            limits=replace(self._limits, start_seconds=180.0),
            judge_text=self._judge_text,
        )
        log = self.context.folder / f"{run_name(workload, 'device')}.log"
        self._add(judge_processes(workload, report, log.read_text(encoding="utf-8", errors="replace")))

    # The cases and what the record says of the libraries.

    def _add(self, case: Case, *, hits: int | None = None) -> None:
        """Take a case in; `hits` of the fault, where its process has not yet reported them at its end."""
        row = known_row(case.id, self._known)
        if row is not None and case.outcome in FAILED:
            case = case.model_copy(update={"outcome": "known", "known_issue": str(row["id"])})
        elif row is not None and case.outcome == "passed" and row["outcome"] != "flaky":
            case = case.model_copy(update={"outcome": "unexpected_pass", "known_issue": str(row["id"])})
        self.context.run.cases.append(case)
        self.context.run.bad += case.outcome in FAILED
        self.context.on_case(self.context.run, case)
        if self.request.fault and case.outcome in FAILED and self._is_catch(case, hits):
            self.context.run.caught = True
            raise _Stopped

    def _is_catch(self, case: Case, hits: int | None) -> bool:
        """Say whether the fault can have done it; a process that died took the count of its hits with it."""
        return case.outcome != "failed" or (self.context.run.fault_hits if hits is None else hits) != 0

    def _stop_if(self, report: ChildReport) -> None:
        """End the run where the machine is at fault, as the device suite does."""
        if report.stop and report.category is not None:
            self.context.run.stopped = report.category
            raise _Stopped

    def _count_hits(self, report: ChildReport) -> None:
        for event in report.all("fault"):
            if event.get("hits") is not None:
                self.context.run.fault_hits = (self.context.run.fault_hits or 0) + int(event["hits"])

    def _remember_session(self, report: ChildReport) -> None:
        session = report.last("session")
        if session is not None:
            self.context.run.threads = session.get("threads") or self.context.run.threads
            kept = {name: value for name, value in session.items() if name not in ("event", "output_bytes", "fallback")}
            self._remember(libraries={**self._training_facts().get("libraries", {}), **kept})

    def _training_facts(self) -> dict[str, Any]:
        return dict(self.context.builder.environment.get("training") or {})

    def _remember(self, **facts: Any) -> None:
        self.context.builder.environment = {
            **self.context.builder.environment,
            "training": {**self._training_facts(), **facts},
        }
