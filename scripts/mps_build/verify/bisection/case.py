"""Interpreter -> Answer: one case of the device suite, as verify_mps asks it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as RichConsole

from mps_build.common.console import Console
from mps_build.common.errors import MpsBuildError, UsageError
from mps_build.common.records.device_record import Case

from .. import Verification, VerifyRequest
from ..device_suite import DeviceSuite
from .runner import Answer, Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudge:
    """Asks one case (or a pattern's cases); a known issue is as bad as a new one here."""

    case: str
    device: str
    allow_virtual: bool
    seconds: float
    folder: Path
    suite: Path | None = None

    def ask(self, prepared: Prepared) -> Answer:
        """Return what one run of the case says.

        Raises:
            UsageError: the suite has no such case.
        """
        place = self.folder / "verify" / prepared.subject
        place.mkdir(parents=True, exist_ok=True)
        request = VerifyRequest(
            python=str(prepared.python),
            device=self.device,
            full=True,
            only=(self.case,),
            allow_virtual=self.allow_virtual,
            case_seconds=self.seconds,
            suite=self.suite,
            folder=place,
        )
        with (place / "console.log").open("a", encoding="utf-8") as file:
            console = Console(rich=RichConsole(file=file, width=200))
            try:
                record = Verification(request, console, DeviceSuite(request)).run()
            except UsageError as error:
                if "no case is called" in str(error):
                    raise UsageError(f"the suite has no case {self.case}", hint=error.hint) from error
                return Answer(word="skip", reason=_line(error))
            except MpsBuildError as error:
                return Answer(word="skip", reason=_line(error))
        return answer_of(record.cases)


def answer_of(cases: Iterable[Case]) -> Answer:
    """Return what the cases' outcomes say: one that is wrong makes it bad, and all skipped says nothing."""
    cases = tuple(cases)
    for outcome in ("failed", "crashed", "known"):
        for case in cases:
            if case.outcome == outcome:
                return Answer(word="bad", reason=f"{outcome}: {case.reason or case.id}"[:300])
    for case in cases:
        if case.outcome == "timeout":
            return Answer(word="timeout", reason=f"{case.id}: {case.reason or 'no answer in time'}")
    if any(case.outcome in ("passed", "unexpected_pass") for case in cases):
        return Answer(word="good")
    return Answer(word="skip", reason=next((case.reason or "skipped" for case in cases), "no case was asked"))


def _line(error: MpsBuildError) -> str:
    return f"{error.cause}: {str(error).splitlines()[0] if str(error) else ''}"[:300]
