"""A bisection over official macOS wheels, which run on Linux: how a release is made ready, and how it is tested there.

What stands in the way of an answer is ours (a wheel that is not imported, a function of macOS that nobody gives, the
time that an emulator takes): such a release is skipped with its cause, and never bad.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mps_build.common.errors import CompileError, OwnFault
from mps_build.common.reporting import Reporter
from mps_build.common.wheels.download import MACOS_PLATFORM, NoSuchWheel
from mps_build.simulation.official import session
from mps_build.simulation.official.interpreter import SUITES
from mps_build.simulation.official.session import Official
from mps_build.simulation.official.wheel import find_official

from ..simulated_suites import BELOW, SLOWER
from .answers import CaseJudge, Predicate
from .request import BisectionRequest
from .runner import Answer, CannotTest, Prepared
from .versions import commit_of

# What a question must not be blamed for: whether the wheel comes up here, and its device computes.
CONTROL = ("python", "-c", "import torch; assert torch.ones(3, device='mps').add(1).sum().item() == 6")

_MOST_BYTES = 1 << 20


@dataclass(slots=True, kw_only=True)
class OfficialReleases:
    """Makes releases ready and tests them, in the place of an environment for each version.

    Args:
        macos: what the device answers as.
        folder: where the records of cases and the output of commands go.
    """

    request: BisectionRequest
    macos: str
    folder: Path
    reporter: Reporter
    _ready: dict[str, Official] = field(default_factory=dict)

    # How pip lists macOS wheels, and for which Pythons, in the order in which the simulation chooses one.
    target = ("--platform", MACOS_PLATFORM, "--implementation", "cp", "--only-binary=:all:")
    pythons = tuple(SUITES)

    def check(self) -> None:
        """Refuse a machine that runs no macOS wheel.

        Raises:
            HostError: it is not Linux on x86-64.
        """
        session.check(session.Request(target="torch"))

    def prepare(self, version: str) -> Prepared:
        """Return a release ready to run; what it needs is fetched and compiled once, and kept in the cache folder.

        Raises:
            CannotTest: there is no such wheel, or it does not come up here.
            MpsBuildError: no release can be had now (network, disk, machine).
        """
        ready = self._prepared(version)
        return Prepared(
            subject=version, python=ready.python, commit=commit_of(ready.wheel.path), wheel=ready.wheel.sha256
        )

    def fetch(self, version: str) -> Path:
        """Return a release's wheel, which is not made ready to run: its kernels are read.

        Raises:
            CannotTest: there is no such wheel.
        """
        try:
            wheel = find_official(
                f"torch=={version}", python=None, reporter=self.reporter, is_trusted=self.request.trust
            )
        except NoSuchWheel as error:
            raise CannotTest(str(error)) from error
        return wheel.path

    def _prepared(self, version: str) -> Official:
        if version not in self._ready:
            wanted = session.Request(target=f"torch=={version}", is_trusted=self.request.trust)
            try:
                self._ready[version] = session.prepare(wanted, self.reporter)
            except (OwnFault, CompileError, NoSuchWheel) as error:
                # The whole of it: what stands in the way is in the last lines.
                raise CannotTest(" ".join(f"{error.cause}: {error}".split())[-300:]) from error
        return self._ready[version]

    def ask(self, prepared: Prepared) -> Answer:
        """Return what one run of the case, or of the command, says of a release that was prepared."""
        if self.request.predicate is None:
            return _here(self._case(prepared))
        answer, output = self._run(self.request.predicate, prepared)
        if answer.word != "bad":
            return _here(answer)
        if said := next((line for line in output.splitlines() if any(text in line for text in BELOW)), None):
            return Answer(word="skip", reason=said.strip()[:300])
        control, output = self._run(CONTROL, prepared)
        if control.word == "good":
            return answer
        why = (output.strip().splitlines() or [control.reason])[-1]
        return Answer(word="skip", reason=f"the wheel does not come up here: {why}"[:300])

    def _case(self, prepared: Prepared) -> Answer:
        return CaseJudge(
            case=self.request.case or "",
            device="mps",
            allow_virtual=False,
            seconds=self.request.seconds,
            folder=self.folder,
            simulated_macos=self.macos,
            trust=self.request.trust,
        ).ask(prepared)

    def _run(self, argv: tuple[str, ...], prepared: Prepared) -> tuple[Answer, str]:
        """Return what a command says of a release, and the end of what it printed."""
        ready, log = self._ready[prepared.subject], self.folder / "predicate.log"
        before = log.stat().st_size if log.is_file() else 0
        environ = session.program_environ(ready, environ=os.environ, macos=self.macos)
        with session.served(ready) as server:
            answer = self._predicate(argv, log, {**environ, **server}).ask(prepared)
        with log.open("rb") as file:
            file.seek(max(before, log.stat().st_size - _MOST_BYTES))
            return answer, file.read(_MOST_BYTES).decode("utf-8", "replace")

    def _predicate(self, argv: tuple[str, ...], log: Path, environ: Mapping[str, str]) -> Predicate:
        return Predicate(argv=argv, seconds=self.request.seconds * SLOWER, log=log, environ=environ)


def _here(answer: Answer) -> Answer:
    """Return an answer as it counts here: how long an emulator takes says nothing of the release."""
    return replace(answer, word="skip") if answer.word == "timeout" else answer
