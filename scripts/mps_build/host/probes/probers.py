"""Who answers probes (this machine, a recorded one, this machine while it is recorded), and each answer as facts.

What leaves this machine as a recording names nobody.
"""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from mps_build import __version__
from mps_build.common.process import Captured, Command, capture, neutral_environ
from mps_build.common.scrubbing.identifiers import MACHINE, Identity
from mps_build.common.scrubbing.scrubber import Scrubber
from mps_build.common.scrubbing.secrets import take_out

from ..macos.answers import Call, calls_of
from ..macos.parsers import parse_probe
from .recording import Recording, load_recording, recording_document
from .table import Probe, argv_key, probes_for

# What a program answered, and the variables that were set for it alone.
Answered = tuple[Captured, Mapping[str, str]]


class Prober(Protocol):
    """Answers probes; one that it cannot answer is left out, and is then *not recorded*."""

    @property
    def recorded_on(self) -> str | None:
        """When a recorded host was recorded; None for a live one."""

    def system(self) -> str | None:
        """`Darwin` or `Linux` where that is known without asking."""

    def standard(self) -> tuple[Probe, ...]:
        """What every look at this host begins with."""

    def ask(self, probes: Sequence[Probe]) -> None:
        """Have these answered, if that is possible."""

    def answers(self) -> tuple[Answered, ...]:
        """Return every answer there is so far."""


class LiveProber:
    """Asks this machine: each probe once, many at a time."""

    recorded_on: str | None = None
    # Probes wait for other programs; more at a time than cores is right.
    threads = 16
    # A tool's first start after an update takes many times the usual (`metal --version`: 11 s seen).
    patience, least_again = 6.0, 30.0

    def __init__(self) -> None:
        self._answers: dict[tuple[str, ...], Captured] = {}
        self._environ = neutral_environ()
        # `python3` is to be the Python that runs us, however we were started.
        self._environ["PATH"] = os.pathsep.join(
            [str(Path(sys.executable).parent), self._environ.get("PATH", os.defpath)]
        )

    def system(self) -> str | None:
        """This system's name: Darwin, Linux."""
        return platform.system()

    def standard(self) -> tuple[Probe, ...]:
        """Return the probes that the doctor needs on this system."""
        return probes_for(platform.system())

    def ask(self, probes: Sequence[Probe]) -> None:
        """Run the probes that were not run yet, side by side, and keep their answers."""
        new = [probe for probe in probes if argv_key(probe.argv) not in self._answers]
        with ThreadPoolExecutor(max_workers=self.threads) as pool:
            for probe, answer in zip(new, pool.map(self._capture, new), strict=True):
                self._answers[argv_key(probe.argv)] = answer

    def answers(self) -> tuple[Answered, ...]:
        """Return all answers so far, in the order in which they were queried."""
        return tuple((answer, {}) for answer in self._answers.values())

    def _capture(self, probe: Probe) -> Captured:
        command = Command(argv=probe.argv, environ=self._environ)
        answer = capture(command, timeout_seconds=probe.seconds)
        if answer.timed_out:
            answer = capture(command, timeout_seconds=max(probe.seconds * self.patience, self.least_again))
        if answer.exit is None and not answer.timed_out:
            # As a shell says it: a program that is not there is an answer, and replays as one.
            return Captured(argv=probe.argv, stdout="", stderr=f"{probe.argv[0]}: command not found\n", exit=127)
        return answer


class RecordingProber(LiveProber):
    """Asks this machine everything, for a recording."""

    def standard(self) -> tuple[Probe, ...]:
        """Return every probe for this system, also those that only a recording needs."""
        return probes_for(platform.system(), everything=True)


class RecordedProber:
    """Answers from a recording: what was not queried then stays not recorded."""

    def __init__(self, recording: Recording | Path) -> None:
        self.recording = load_recording(recording) if isinstance(recording, Path) else recording

    @property
    def recorded_on(self) -> str | None:
        """The day of the recording, or "an unknown day"."""
        return self.recording.recorded_on or "an unknown day"

    def system(self) -> str | None:
        """None: the recorded answers say which system it was."""
        return None

    def standard(self) -> tuple[Probe, ...]:
        """Return nothing: a recording answers only what it holds."""
        return ()

    def ask(self, probes: Iterable[Probe]) -> None:
        """Nothing more can be requested of a recording."""

    def answers(self) -> tuple[Answered, ...]:
        """Return the recorded answers, with the facts that the recording states itself."""
        return tuple(
            (
                Captured(
                    argv=probe.argv,
                    stdout=probe.stdout,
                    stderr=probe.stderr,
                    exit=probe.exit,
                    timed_out=probe.timed_out,
                ),
                probe.env,
            )
            for probe in self.recording.probes
        )


Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One probe's answer as facts, with the text it came from; without an answer in time there is no fact."""

    argv: tuple[str, ...]
    facts: Facts
    text: str
    calls: tuple[Call, ...]


def observations(prober: Prober) -> tuple[Observation, ...]:
    """Return every answer that a prober has, as facts."""
    rows = []
    for answer, env in prober.answers():
        if answer.timed_out:
            facts: Facts = {"timed_out": True}
        else:
            facts = parse_probe(answer.argv, answer.stdout, answer.stderr, answer.exit, env)
        words = [f"{name}={value}" for name, value in env.items()] + list(answer.argv)
        text = "\n".join(part.strip() for part in (answer.stdout, answer.stderr) if part.strip())
        rows.append(Observation(argv=answer.argv, facts=facts, text=text, calls=calls_of(words)))
    return tuple(rows)


def values(rows: tuple[Observation, ...], key: str, *programs: str) -> Iterator[Any]:
    """Yield each value that an answer gives for a key, of certain programs if named."""
    for row in rows:
        requested = not programs or any(call.program in programs for call in row.calls)
        if requested and row.facts.get(key) is not None:
            yield row.facts[key]


def scrub(document: Mapping[str, Any], identity: Identity) -> tuple[dict[str, Any], Counter[str]]:
    """Return a recording's document without what names anybody, and how often each kind was taken out."""
    secrets = Scrubber()
    removed: Counter[str] = secrets.removed

    def clean(text: str) -> str:
        return take_out(identity.take_out(secrets.text(text), removed), MACHINE, removed)

    probes = [
        {**probe, "argv": [clean(word) for word in secrets.value(list(probe["argv"]))]}
        | {key: clean(probe.get(key) or "") for key in ("stdout", "stderr")}
        for probe in document["probes"]
    ]
    return {**document, "probes": probes}, +removed


def recorded(prober: Prober, *, identity: Identity | None = None) -> tuple[dict[str, Any], Counter[str]]:
    """Return all that a prober's host answered, scrubbed, as a recording's document, and what was taken out."""
    document = recording_document(
        (answer for answer, _ in prober.answers()),
        recorded_on=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        tool=f"mps-build {__version__}",
    )
    return scrub(document, identity or Identity.of_this_machine())
