"""The device suite over a simulated device: PyTorch's own MPS host code on Linux. The only module that knows both."""

from __future__ import annotations

import os
from pathlib import Path

from mps_build.common.cores import usable_cores
from mps_build.common.records.device_record import Simulated
from mps_build.simulation.session import provide, simulated_environ

from .device_suite import DeviceSuite
from .target.interpreter import describe_interpreter, the_one_torch
from .target.resolve import Target
from .target.shop import Shop
from .target.variables import SuiteEnviron, suite_environ
from .verify_request import VerifyRequest


class SimulatedSuite(DeviceSuite):
    """The same files and children, in the simulated interpreter."""

    def __init__(self, request: VerifyRequest, simulated: Simulated) -> None:
        super().__init__(request)
        self.simulated = simulated

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
