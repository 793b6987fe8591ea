"""The device suite as the work of a verification."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.cores import threads_for, threads_set, usable_cores, with_share
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import as_suite_reads_them
from mps_build.common.recipe.catalogue import data_root
from mps_build.common.records.device_record import Concurrency

from .record_builder import summed_up, unmet
from .request import VerifyRequest
from .suite.driver import run_suite
from .suite.request import Limits, Room, SuiteRequest, default_limit_bytes, jobs_for, suite_files, total_bytes
from .target.diagnosis import judge_text_on
from .target.environments import EnvironmentStore
from .target.resolve import Target, prepare_target
from .verification import RunContext

_SHOWN = 10
# A process imports torch for longer than it computes its share of --quick: on an H200 four of them end before eight.
_MOST_QUICK = 4


class NoSuchCase(UsageError):
    """The options choose no case of the suite."""


class DeviceSuite:
    """The files of tests/device, or of another suite of its form."""

    hint: str | None = None

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.root = request.suite or data_root() / "tests" / "device"
        self.files: tuple[Path, ...] = ()

    def check(self) -> None:
        """Find the files of the requested layers.

        Raises:
            UsageError: no such suite or layer. Ids and operators the suite itself knows, once torch is there.
        """
        self.files = suite_files(self.root, self.request.layers)

    def make_target(self, store: EnvironmentStore) -> Target:
        """Return the Python under test, with pytest in it or beside it."""
        return prepare_target(self.request, store)

    def run(self, context: RunContext) -> None:
        """Run the cases in children.

        Raises:
            NoSuchCase: the options choose none.
        """
        request, environ = self.request, context.target.environ.variables
        context.builder.concurrency = together = self._concurrency(context)
        suite = SuiteRequest(
            interpreter=context.target.interpreter.executable,
            environ=with_share(environ, together.processes, cores=together.cores),
            ini=self.root / "pytest.ini",
            files=self.files,
            device=request.device,
            folder=context.folder,
            limits=self.limits(),
            full=request.full,
            quick=request.quick,
            layers=request.layers,
            cases=request.cases,
            keys=request.keys,
            seconds=request.seconds,
            seed=request.seed,
            only=tuple(map(if_there, request.only)) if request.any_release else request.only,
            op=request.op,
            skip=request.skip,
            fault=request.absolute_fault,
            known=as_suite_reads_them(context.known),
            jobs=together.processes,
            threads=together.threads,
        )
        context.console.started("Cases", unit="cases")
        if suite.jobs > 1:
            threads = f"{suite.threads} thread{'s' if suite.threads != 1 else ''} each"
            context.console.line(f"{suite.jobs} processes, {threads}, on {together.cores} cores (--jobs N: so many)")
        run_suite(
            suite,
            judge_text=judge_text_on(context.host, context.builder.torch.version),
            on_case=context.on_case,
            on_estimate=context.on_estimate,
            run=context.run,
        )
        context.console.done()
        self._sum_up(context)
        if context.run.not_run:
            context.run.notes.append(f"{context.run.not_run} cases were not run: the time of --time was over")
        if not context.run.cases and not context.run.refused:
            chosen = ", ".join((*request.only, *([request.op] if request.op else [])))
            raise NoSuchCase(
                f"no case has the id or dispatches {chosen or 'anything'}",
                hint="ids are in any record, under `cases`",
            )

    def limits(self) -> Limits:
        """Return what a child may take."""
        return limits_of(self.request)

    def _sum_up(self, context: RunContext) -> None:
        """Say what the known issues came to."""
        run, rows = context.run, context.known
        if self.request.simulated is not None:
            context.builder.explanations = summed_up(run.cases, rows)
        if self.request.is_whole and not (run.stopped or run.refused) and (found := unmet(run.cases, rows)):
            context.builder.unmet = found
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            run.notes.append(f"known issues that no case met here: {', '.join(found[:_SHOWN])}{more}")

    def _concurrency(self, context: RunContext) -> Concurrency:
        device, cores = self.request.device, usable_cores()
        own = 0 if device == "mps" else int(context.builder.gpu.get("memory_bytes") or 0)
        room = Room(cores=cores, memory=total_bytes(), device_memory=own, is_cpu=device == "cpu")
        threads = threads_set(context.target.environ.variables)
        jobs = jobs_of(self.request, room, is_resumed=bool(context.run.cases), threads=threads)
        return Concurrency(cores=cores, processes=jobs, threads=threads or threads_for(jobs, cores=cores))


def if_there(name: str) -> str:
    """Return an id or a pattern of the core as one that need not fit anything: not every release has each case.

    >>> if_there("issue-131750"), if_there("issue-1*"), if_there("add:out:1")
    ('[i]ssue-131750', '[i]ssue-1*', 'add:out:1')
    """
    return name if ":" in name or name[:1] in "*?[" else f"[{name[:1]}]{name[1:]}"


def jobs_of(request: VerifyRequest, room: Room, *, is_resumed: bool = False, threads: int | None = None) -> int:
    """Return how many processes run the suite: the requested number, or what there is room for.

    One where a fault is injected or a run is resumed; so have a few cases, and those of --full, which need much memory.

    Args:
        threads: how many each process has, where the user set it.
    """
    if request.fault or is_resumed:
        return 1
    if request.jobs is not None:
        return request.jobs
    if request.full or request.only or request.op:
        return 1
    jobs = jobs_for(room, threads=threads)
    return min(jobs, _MOST_QUICK) if request.quick else jobs


def limits_of(request: VerifyRequest) -> Limits:
    """Return what a child may take, in seconds of a case and in memory."""
    return Limits(case_seconds=request.case_seconds, memory_bytes=request.memory_bytes or default_limit_bytes())
