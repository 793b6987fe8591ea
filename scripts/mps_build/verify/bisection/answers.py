"""Interpreter -> Answer: by one case of the device suite, or by the user's own command."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as RichConsole

from mps_build.common.console import Console
from mps_build.common.cores import within_quota
from mps_build.common.errors import MpsBuildError, UsageError
from mps_build.common.process import Command, watched
from mps_build.common.records.device_record import Case, Record, Simulated

from .. import Verification, VerifyRequest
from ..device_suite import DeviceSuite, NoSuchCase
from .runner import Answer, Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseJudge:
    """Runs one case (or a pattern's cases); a known issue is as bad as a new one here.

    `simulated_macos`: the subject is an official wheel on Linux that answers as this macOS.
    """

    case: str
    device: str
    allow_virtual: bool
    seconds: float
    folder: Path
    suite: Path | None = None
    simulated_macos: str | None = None
    trust: bool = False

    def ask(self, prepared: Prepared) -> Answer:
        """Return what one run of the case says.

        Raises:
            UsageError: the suite has no such case.
        """
        place = self.folder / "verify" / prepared.subject
        place.mkdir(parents=True, exist_ok=True)
        simulated = (
            Simulated(release=prepared.subject, macos=self.simulated_macos, official=True)
            if self.simulated_macos
            else None
        )
        request = VerifyRequest(
            python=None if simulated else str(prepared.python),
            device=self.device,
            full=simulated is None,
            only=(self.case,),
            allow_virtual=self.allow_virtual,
            case_seconds=self.seconds,
            suite=self.suite,
            folder=place,
            trust=self.trust,
            simulated=simulated,
        )
        with (place / "console.log").open("a", encoding="utf-8") as file:
            console = Console(rich=RichConsole(file=file, width=200))
            try:
                record = _record_of(request, console)
            except NoSuchCase as error:
                raise UsageError(f"the suite has no case {self.case}", hint=error.hint) from error
            except MpsBuildError as error:
                return Answer(word="skip", reason=_line(error))
        return answer_of(record.cases, limits=[row.id for row in record.known_issues if row.kind == "limit"])


def _record_of(request: VerifyRequest, console: Console) -> Record:
    if request.simulated is None:
        return Verification(request, console, DeviceSuite(request)).run()
    from ..simulated_suites import OfficialSuite  # needs what only a simulation needs

    wheel = f"torch=={request.simulated.release}"
    with OfficialSuite(request, request.simulated, wheel=wheel) as suite:
        return Verification(request, console, suite).run()


def answer_of(cases: Iterable[Case], *, limits: Sequence[str] = ()) -> Answer:
    """Return what the cases' outcomes say: one that is wrong makes it bad, and all skipped says nothing.

    Args:
        limits: known issues that are limits of the simulation: what fails by them, as by another fault of ours, makes
            nothing bad, and leaves the rest without an answer.
    """
    cases = tuple(cases)
    ours = [case for case in cases if case.outcome == "own_fault" or case.known_issue in limits]
    cases = tuple(case for case in cases if case not in ours)
    for outcome in ("failed", "crashed", "known"):
        for case in cases:
            if case.outcome == outcome:
                return Answer(word="bad", reason=f"{outcome}: {case.reason or case.id}"[:300])
    for case in cases:
        if case.outcome == "timeout":
            return Answer(word="timeout", reason=f"{case.id}: {case.reason or 'no answer in time'}")
    if ours:
        return Answer(word="skip", reason=f"a fault of ours: {ours[0].reason or ours[0].id}"[:300])
    if any(case.outcome in ("passed", "unexpected_pass") for case in cases):
        return Answer(word="good")
    return Answer(word="skip", reason=next((case.reason or "skipped" for case in cases), "no case was run"))


def _line(error: MpsBuildError) -> str:
    return f"{error.cause}: {str(error).splitlines()[0] if str(error) else ''}"[:300]


_SKIP = 125
_TICK_SECONDS = 0.05


def split_command(text: str, option: str) -> tuple[str, ...]:
    """Return a command's words.

    Raises:
        UsageError: none, or quotes that do not close.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}", hint="quote it as for a shell") from error
    if not words:
        raise UsageError(f"{option}: is empty", hint=f"for example: {option} 'python check.py'")
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicate:
    """A command that tells good (0) from bad (1 to 124) and from what cannot be tested (125).

    `python` on its PATH is that of the tested version; MPS_BUILD_PYTHON and MPS_BUILD_SUBJECT name it and the subject.
    """

    argv: tuple[str, ...]
    seconds: float
    log: Path
    environ: Mapping[str, str]

    def ask(self, prepared: Prepared) -> Answer:
        """Return what one run says.

        Raises:
            UsageError: the command cannot be run at all (126, 127), or asks to stop (128 and above).
        """
        command = Command(argv=self.argv, cwd=prepared.tree, environ=self._environ(prepared))
        deadline = time.monotonic() + self.seconds
        try:
            with watched(command, log=self.log) as running:
                while (status := running.poll()) is None:
                    if time.monotonic() > deadline:
                        return Answer(word="timeout", reason=f"no answer within {self.seconds:g} s")
                    time.sleep(_TICK_SECONDS)
        except OSError as error:
            raise UsageError(
                f"`{command}` cannot be run: {error}", hint="correct the command; the state is kept"
            ) from error
        return _answer(status, command, self.log)

    def _environ(self, prepared: Prepared) -> dict[str, str]:
        given = within_quota(self.environ)
        environ = {name: value for name, value in given.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        environ["MPS_BUILD_SUBJECT"] = prepared.subject
        if prepared.python is not None:
            environ["MPS_BUILD_PYTHON"] = str(prepared.python)
            environ["VIRTUAL_ENV"] = str(prepared.python.parent.parent)
            environ["PATH"] = os.pathsep.join([str(prepared.python.parent), environ.get("PATH", os.defpath)])
        return environ


def _answer(status: int, command: Command, log: Path) -> Answer:
    if status == 0:
        return Answer(word="good")
    if status == _SKIP:
        return Answer(word="skip", reason="the command answered 125: cannot be tested")
    if status < 0:
        return Answer(word="bad", reason=f"ended by {signal.Signals(-status).name}")
    if status in (126, 127) or status >= 128:
        what = "cannot be run" if status < 128 else "asks to stop"
        raise UsageError(
            f"`{command}` {what} (exit {status}; 0 is good, 1 to 124 bad, 125 cannot be tested); its output: {log}",
            hint="the answers so far are kept: run the same command again to continue",
        )
    return Answer(word="bad", reason=f"exit {status}")
