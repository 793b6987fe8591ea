"""What a person sees of the cases while they run: which ended, how long the rest takes, and why a run is slow."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from mps_build.common.console import Console
from mps_build.common.records.device_record import FAILED, Case, Concurrency, Estimate

from .reports.words import estimate_words
from .suite.outcomes import SuiteRun

# A drawn case is a call or a few; a case of the core asks its question several times, some of them train a network.
# For the time left only their ratio counts: how fast this machine is, the cases that are done say.
_DRAWN, _CORE = 1.0, 4.0
_LEAST_SHARE = 0.01
# So many of the last cases say how fast the machine is now; one that compiles or hangs alone is no slow machine.
_LAST = 200
_MOST_TIMES = 100.0


class Pace:
    """The time left of a run, from all its cases and those that are done.

    >>> pace = Pace()
    >>> pace.add("add:layout:1", {"add:layout:1": "", "exp:layout:1": "", "sum:layout:1": ""})
    >>> pace.seconds_left(5.0)
    10.0
    """

    def __init__(self, before: Iterable[str] = ()) -> None:
        """`before`: cases of an earlier run, which this one does not do again."""
        self._before = frozenset(before)
        self._known = 0
        self._whole = self._done = 0.0
        self._expected: float | None = None
        self._last: deque[tuple[float, float]] = deque(maxlen=_LAST)

    def expect(self, seconds: float) -> None:
        """Take in what all cases were estimated to take, in seconds of all processes."""
        self._expected = seconds

    def add(self, case: str, files: Mapping[str, str], *, seconds: float | None = None) -> None:
        """Count a case that is done.

        Args:
            files: case -> file, of all cases of the run.
            seconds: what a case that ran to its end took; None: it says nothing of the machine.
        """
        if len(files) != self._known:
            self._known = len(files)
            self._whole = sum(weight(name) for name in files if name not in self._before)
        if case in files:
            cost = weight(case)
            self._done += cost
            if seconds is not None:
                self._last.append((seconds, cost))

    def seconds_left(self, elapsed: float) -> float | None:
        """Return the seconds that the other cases take; None as long as too little is done to say."""
        if self._done <= 0 or self._done < self._whole * _LEAST_SHARE:
            return None
        return round(elapsed * max(self._whole - self._done, 0.0) / self._done, 3)

    def times_slower(self) -> float | None:
        """Return how many times as long as estimated the last cases took; None where too little is known."""
        if len(self._last) < _LAST or not self._expected or not self._whole:
            return None
        unit = self._expected / self._whole
        taken = sum(min(seconds, cost * unit * _MOST_TIMES) for seconds, cost in self._last)
        return taken / sum(cost * unit for _, cost in self._last)


def weight(case: str) -> float:
    """Return what a case takes beside others: a drawn one has the id OPERATOR:TRANSFORMATION:SEED.

    >>> weight("conv2d:gradient:17"), weight("issue-131750")
    (1.0, 4.0)
    """
    return _DRAWN if case.count(":") == 2 and "::" not in case else _CORE


_LEAST_FREE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the machine does now: processes that want a core, ours too, and the share of memory that is free."""

    running: float
    free_memory: float


def load_now() -> Load:
    """Return the load of the last minute, and the free memory."""
    memory = psutil.virtual_memory()
    return Load(running=os.getloadavg()[0], free_memory=memory.available / memory.total)


def likely_cause(together: Concurrency | None, load: Load) -> str:
    """Return what most likely slows a run down, and what helps.

    >>> likely_cause(Concurrency(cores=16, processes=8, threads=16), Load(running=120, free_memory=0.5))
    '8 processes with 16 threads each on 16 cores: unset OMP_NUM_THREADS and --jobs'
    """
    if together is not None and together.processes * together.threads > together.cores:
        return (
            f"{together.processes} processes with {together.threads} threads each on {together.cores} cores: "
            "unset OMP_NUM_THREADS and --jobs"
        )
    if load.free_memory < _LEAST_FREE:
        return "memory is short: try --jobs 1, or end other programs"
    if together is not None and load.running > 1.5 * together.cores + 1:
        return f"other programs compute too: {load.running:.0f} processes want one of {together.cores} cores"
    return "the machine is slow now (power, heat, a virtual machine), or the device is"


# Not the machine's speed: it did not run, or it was ended from outside.
_UNTIMED = ("skipped", "crashed", "timeout")
_SLOW_TIMES = 10.0
# The machine is looked at anew after so many cases.
_LOOK = 100


class Progress:
    """Says which case ended, how many failed, how long the rest takes, and why the run is slow where it is.

    Args:
        earlier: cases of a resumed run.
        concurrency: tells how the run shares the machine.
    """

    def __init__(
        self,
        console: Console,
        earlier: Sequence[Case],
        concurrency: Callable[[SuiteRun], Concurrency | None] = lambda run: None,
    ) -> None:
        self._console, self._concurrency = console, concurrency
        self._began, self._pace = time.monotonic(), Pace(case.id for case in earlier)
        self._before = self._shown = len(earlier)
        self._slow = ""
        self.slow: str | None = None

    def expect(self, estimate: Estimate) -> None:
        """Say what the run will take, and hold what follows against it."""
        self._console.line(f"estimated: {estimate_words(estimate)}")
        together = self._concurrency(SuiteRun())
        self._pace.expect(estimate.high_seconds * (together.processes if together else 1))

    def show(self, run: SuiteRun, case: Case) -> None:
        """Show one case that ended."""
        if case.outcome in FAILED:
            self._console.line(f"{case.outcome}: {case.id}: {case.reason or ''}"[:300])
        failed = f"{run.bad} failed" if run.bad else ""
        self._pace.add(case.id, run.files, seconds=None if case.outcome in _UNTIMED else case.seconds)
        self._shown += 1
        if self._shown % _LOOK == 0:
            self._look(run)
        self._console.advanced(
            len(run.cases),
            total=self._before + run.collected or None,
            note="  ".join(filter(None, (failed, self._slow, f"last: {case.id}"))),
            left=self._pace.seconds_left(time.monotonic() - self._began),
        )

    def _look(self, run: SuiteRun) -> None:
        """Notice that the last cases took ten times what was estimated; the first time it is a line of its own."""
        times = self._pace.times_slower()
        if times is None or times < _SLOW_TIMES:
            self._slow = ""
            return
        self._slow = f"{times:.0f} times slower than estimated: {likely_cause(self._concurrency(run), load_now())}"
        if self.slow is None:
            self.slow = self._slow
            self._console.warn(self._slow)
