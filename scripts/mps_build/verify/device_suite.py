"""The device suite as the work of a verification."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.known_issues import as_suite_reads_them
from mps_build.common.recipe.catalogue import data_root

from .facts import judge_text_on
from .operators import check_names, check_operator
from .suite.child import Limits
from .suite.driver import run_suite
from .suite.files import suite_files
from .suite.memory import default_limit_bytes
from .suite.suite_request import SuiteRequest
from .target.resolve import Target, prepare_target
from .target.torch_environment import Shop
from .verify_request import VerifyRequest
from .work import Setting


class DeviceSuite:
    """The files of tests/device, or of another suite of its form."""

    hint: str | None = None

    def __init__(self, request: VerifyRequest) -> None:
        self.request = request
        self.suite = request.suite or data_root() / "tests" / "device"
        self.files: tuple[Path, ...] = ()

    def check(self) -> None:
        """Find the files of the layers that were asked for, and the operator.

        Raises:
            UsageError: no such suite, layer, operator or case.
        """
        self.files = suite_files(self.suite, self.request.layers)
        check_operator(self.request.op, self.suite)
        check_names(self.request.only, self.suite)

    def make_target(self, shop: Shop) -> Target:
        """Return the Python under test, with pytest in it or beside it."""
        return prepare_target(self.request, shop)

    def run(self, setting: Setting) -> None:
        """Run the cases in children.

        Raises:
            UsageError: the options choose no case.
        """
        request = self.request
        suite = SuiteRequest(
            interpreter=setting.target.interpreter.executable,
            environ=setting.target.environ.variables,
            ini=self.suite / "pytest.ini",
            files=self.files,
            device=request.device,
            folder=setting.folder,
            limits=limits_of(request),
            full=request.full,
            quick=request.quick,
            only=request.only,
            op=request.op,
            plant=request.absolute_plant,
            known=as_suite_reads_them(setting.known),
            jobs=request.jobs,
        )
        setting.console.started("Cases", unit="cases")
        judge_text = judge_text_on(setting.host, setting.draft.torch.version)
        run_suite(suite, judge_text=judge_text, on_case=setting.on_case, run=setting.run)
        setting.console.done()
        if not setting.run.cases and not setting.run.refused:
            chosen = ", ".join((*request.only, *([request.op] if request.op else [])))
            raise UsageError(
                f"no case has the id or dispatches {chosen or 'anything'}",
                hint="ids are in any record, under `cases`",
            )


def limits_of(request: VerifyRequest) -> Limits:
    """Return what a child may take, in seconds of a case and in memory."""
    return Limits(case_seconds=request.case_seconds, memory_bytes=request.memory_bytes or default_limit_bytes())
