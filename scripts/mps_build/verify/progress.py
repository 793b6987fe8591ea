"""What a person sees of the cases while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from mps_build.common.console import Console
from mps_build.common.records.device_record import FAILED, Case, Concurrency, Estimate

from .pace import Pace
from .reports.words import estimate_words
from .slowness import likely_cause, load_now
from .suite.run import SuiteRun

# Not the machine's speed: it was not asked, or it was ended from outside.
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
            note="  ".join(filter(None, (failed, self._slow, case.id))),
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
