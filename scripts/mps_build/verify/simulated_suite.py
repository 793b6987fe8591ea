"""The device suite over a simulated device: PyTorch's own MPS host code on Linux. The only module that knows both."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from mps_build.common.cores import usable_cores
from mps_build.common.records.device_record import Case, Simulated
from mps_build.simulation.session import provide, simulated_environ

from .device_suite import DeviceSuite
from .explanations import (
    Explanation,
    active_explanations,
    as_known,
    load_explanations,
    summed_up,
    with_explanation,
)
from .suite.run import SuiteRun
from .target.interpreter import describe_interpreter, the_one_torch
from .target.resolve import Target
from .target.shop import Shop
from .target.variables import SuiteEnviron, suite_environ
from .verify_request import VerifyRequest
from .work import Setting

EXPLANATIONS = "simulated_explanations.yaml"
_SHOWN = 10


class SimulatedSuite(DeviceSuite):
    """The same files and children, in the simulated interpreter; what fails there is explained by data."""

    def __init__(self, request: VerifyRequest, simulated: Simulated) -> None:
        super().__init__(request)
        self.simulated = simulated
        self.rows: tuple[Explanation, ...] = ()

    def check(self) -> None:
        """Find files, operator and cases, and read why cases fail.

        Raises:
            UsageError: no such suite, layer, operator or case, or the explanations are damaged.
        """
        super().check()
        self.rows = active_explanations(load_explanations(self.suite / EXPLANATIONS), self.simulated)

    def make_target(self, shop: Shop) -> Target:
        """Return the simulated interpreter; it is built first where it is not there yet.

        Raises:
            SourceError, HostError, BuildEnvironmentError, PatchError, CompileError: it cannot be built here.
        """
        built = provide(
            self.simulated.release,
            source=Path(self.simulated.source) if self.simulated.source else None,
            torch=self.simulated.torch,
            offline=shop.offline,
            jobs=usable_cores(),
            trust=shop.trust,
            reporter=shop.reporter,
        )
        caller = suite_environ(os.environ)
        # The session's own path stays out, as `simulate` keeps it out.
        passed = {name: value for name, value in os.environ.items() if name == "MPS_BUILD_CALLER_PATH"}
        variables = simulated_environ(built, macos=self.simulated.macos, environ={**caller.variables, **passed})
        environ = SuiteEnviron(variables=variables, kept=caller.kept, removed=caller.removed)
        interpreter = describe_interpreter(built.root.python, environ=variables)
        folder, version = the_one_torch(interpreter)
        document = {**self.request.asked(), "torch": str(folder), "version": version, "library": str(built.library)}
        return Target(interpreter=interpreter, environ=environ, document=document)

    def known_rows(self, setting: Setting) -> list[dict[str, Any]]:
        """Return the known issues; beside a plant also what is explained, since it would fail without the plant."""
        return [*super().known_rows(setting), *(as_known(self.rows) if self.request.plant else ())]

    def explained(self, case: Case) -> Case:
        """Return a case with why it fails, where it does and that is known."""
        return with_explanation(case, self.rows)

    def run(self, setting: Setting) -> None:
        """Run the cases in children, and say of each that fails why, where it is known.

        Raises:
            UsageError: the options choose no case.
        """
        run = setting.run
        if self.request.plant:
            super().run(setting)
            return

        def on_case(suite_run: SuiteRun, case: Case) -> None:
            case = suite_run.cases[-1] = self.explained(case)
            setting.on_case(suite_run, case)

        super().run(replace(setting, on_case=on_case))
        # Once more: an outcome may have been taken back, and parts beside each other are put together at the end.
        run.cases = [self.explained(case) for case in run.cases]
        setting.draft.explanations = found = summed_up(run.cases, self.rows)
        if found.stale:
            more = f" and {len(found.stale) - _SHOWN} more" if len(found.stale) > _SHOWN else ""
            run.notes.append(
                f"passed, although {EXPLANATIONS} says why it fails: {', '.join(found.stale[:_SHOWN])}{more}"
            )
