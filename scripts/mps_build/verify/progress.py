"""What a person sees of the cases while they run."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mps_build.common.console import Console
from mps_build.common.records.device_record import FAILED, Case

from .pace import Pace
from .suite.run import SuiteRun


class Progress:
    """Says which case ended, how many failed, and how long the rest takes; `earlier` are cases of a resumed run."""

    def __init__(self, console: Console, earlier: Sequence[Case]) -> None:
        self._console = console
        self._began, self._pace = time.monotonic(), Pace(case.id for case in earlier)
        self._before = len(earlier)

    def show(self, run: SuiteRun, case: Case) -> None:
        """Show one case that ended."""
        if case.outcome in FAILED:
            why = f", explained ({case.explained.letter} {case.explained.id})" if case.explained else ""
            self._console.line(f"{case.outcome}{why}: {case.id}: {case.reason or ''}"[:300])
        failed = f"{run.bad} failed" if run.bad else ""
        self._pace.add(case.id, run.files)
        self._console.advanced(
            len(run.cases),
            total=self._before + run.collected or None,
            note=f"{failed}  {case.id}".strip(),
            left=self._pace.seconds_left(time.monotonic() - self._began),
        )
