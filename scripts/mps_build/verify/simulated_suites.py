"""The device suite over a simulated device on Linux: PyTorch's own MPS host code, or a macOS wheel itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from packaging.version import Version

from mps_build.common.cores import usable_cores
from mps_build.common.errors import OwnFault, UsageError
from mps_build.common.records.device_record import FAILED, Case, Simulated, WheelFile
from mps_build.simulation.official import session
from mps_build.simulation.session import provide, simulated_environ

from .device_suite import DeviceSuite
from .request import VerifyRequest
from .suite.outcomes import SuiteRun
from .suite.request import Limits
from .target.environments import PYTEST, EnvironmentStore
from .target.interpreter import SuiteEnviron, describe_interpreter, suite_environ, the_one_torch
from .target.resolve import Target
from .target.wheel import audited_kind
from .verification import RunContext


class SimulatedSuite(DeviceSuite):
    """The same files and children, in the simulated interpreter."""

    def __init__(self, request: VerifyRequest, simulated: Simulated) -> None:
        super().__init__(request)
        self.simulated = simulated

    def make_target(self, store: EnvironmentStore) -> Target:
        """Return the simulated interpreter; it is built first where it is not there yet.

        Raises:
            SourceError, HostError, BuildEnvironmentError, PatchError, CompileError: it cannot be built here.
        """
        built = provide(
            self.simulated.release,
            source=Path(self.simulated.source) if self.simulated.source else None,
            torch=self.simulated.torch,
            offline=store.offline,
            jobs=usable_cores(),
            trust=store.trust,
            reporter=store.reporter,
        )
        caller = suite_environ(os.environ)
        # The session's own path stays out, as `simulate` keeps it out.
        passed = {name: value for name, value in os.environ.items() if name == "MPS_BUILD_CALLER_PATH"}
        variables = simulated_environ(built, macos=self.simulated.macos, environ={**caller.variables, **passed})
        environ = SuiteEnviron(variables=variables, kept=caller.kept, removed=caller.removed)
        interpreter = describe_interpreter(built.root.python, environ=variables)
        folder, version = the_one_torch(interpreter)
        document = {
            **self.request.named_target(),
            "torch": str(folder),
            "version": version,
            "library": str(built.library),
        }
        return Target(interpreter=interpreter, environ=environ, document=document)


_BEFORE_3_11 = ("exceptiongroup", "tomli")  # what pytest needs there
# What the loader says of a function of macOS that nothing here gives, and the Metal of a server that has ended.
BELOW = ("which cannot be had in a simulation", "the kernel server does not answer")
SLOWER = 6  # an emulated processor than this machine's, and a kernel that is compiled when it is first used


class OfficialSuite(SimulatedSuite):
    """The same files and children, in the wheel's own Python; a kernel server stands beside them until the block ends.

    Args:
        wheel: `torch==VERSION`, or the path of a wheel.
    """

    def __init__(self, request: VerifyRequest, simulated: Simulated, *, wheel: str) -> None:
        super().__init__(request, simulated)
        self._wanted = session.Request(target=wheel, is_trusted=request.trust)
        self._beside = ExitStack()

    def __enter__(self) -> OfficialSuite:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._beside.close()

    def check(self) -> None:
        """Refuse a machine or a file that cannot be used, then find files, operator and cases.

        Raises:
            HostError, RefusedForSafety: the wheel cannot or may not run here. UsageError: nothing fits the options.
        """
        session.check(self._wanted)
        super().check()

    def run(self, context: RunContext) -> None:
        """Run the cases in children; what failed below the wheel is our fault, and no answer of the wheel's.

        Raises:
            UsageError: the options choose no case.
        """

        def on_case(suite_run: SuiteRun, case: Case) -> None:
            case = suite_run.cases[-1] = _judged_below(case)
            context.on_case(suite_run, case)

        super().run(replace(context, on_case=on_case))

    def _sum_up(self, context: RunContext) -> None:
        # Once more: an outcome may have been taken back, and parts beside each other are put together at the end.
        context.run.cases = [_judged_below(case) for case in context.run.cases]
        super()._sum_up(context)

    def limits(self) -> Limits:
        """Return what a child may take: an emulator's slowness is not a case's fault, nor the wheel's."""
        limits = super().limits()
        return replace(
            limits,
            start_seconds=limits.start_seconds * SLOWER,
            case_seconds=limits.case_seconds * SLOWER,
            end_seconds=limits.end_seconds * SLOWER,
        )

    def make_target(self, store: EnvironmentStore) -> Target:
        """Return the wheel's Python with pytest beside it; the kernel server runs from here on.

        Raises:
            SourceError, BuildEnvironmentError, CompileError: a part could not be had.
            OwnFault: the wheel cannot be imported here.
        """
        ready = session.prepare(self._wanted, store.reporter)
        # pip reads conditions for its own Python, not for the one that it fetches for.
        older = _BEFORE_3_11 if Version(ready.interpreter.version) < Version("3.11") else ()
        pytest = session.packages_beside(ready, (*PYTEST, *older), store.reporter, is_trusted=store.trust)
        caller = suite_environ(os.environ)
        # As SimulatedSuite: the session's own path stays out.
        passed = {name: value for name, value in os.environ.items() if name == "MPS_BUILD_CALLER_PATH"}
        variables = session.program_environ(
            ready, environ={**caller.variables, **passed}, macos=self.simulated.macos
        ) | {"PYTHONPATH": str(pytest), **self._beside.enter_context(session.served(ready))}
        # The environment is ours, and emulated Python takes long to compile: its byte code is kept.
        del variables["PYTHONDONTWRITEBYTECODE"]
        try:
            interpreter = describe_interpreter(ready.python, environ=variables)
            folder, version = the_one_torch(interpreter)
        except UsageError as error:  # no Python of the user's
            raise OwnFault(str(error), hint="please report it with the whole output") from error
        wheel = ready.wheel
        return Target(
            interpreter=interpreter,
            environ=SuiteEnviron(variables=variables, kept=caller.kept, removed=caller.removed),
            document={
                **self.request.named_target(),
                "torch": str(folder),
                "version": version,
                "wheel": wheel.path.name,
            },
            wheel=WheelFile(file=wheel.path.name, sha256=wheel.sha256, kind=audited_kind(wheel.path)),
        )


@contextmanager
def simulated_python(simulated: Simulated, store: EnvironmentStore) -> Iterator[Target]:
    """Yield the Python whose mps answered so, and its variables; it is made first where it is not there yet.

    Raises:
        HostError, SourceError, BuildEnvironmentError, CompileError, OwnFault: it cannot be had here.
    """
    request = VerifyRequest(simulated=simulated)
    if not simulated.official:
        yield SimulatedSuite(request, simulated).make_target(store)
        return
    with OfficialSuite(request, simulated, wheel=f"torch=={simulated.release}") as suite:
        yield suite.make_target(store)


def _judged_below(case: Case) -> Case:
    if case.outcome in FAILED and any(text in (case.reason or "") for text in BELOW):
        return case.model_copy(update={"outcome": "own_fault"})
    return case
