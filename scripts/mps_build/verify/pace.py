"""How long the rest of a run takes: cases left, weighted by what a case of their file took on a recorded run."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mps_build.common.console import human_seconds

# Mean seconds of a case by file. For the time left only their ratios count: how fast this machine is, the cases that
# are done say.
_COSTS = Path(__file__).with_name("pace.json")
_LEAST_SHARE = 0.01
# So many of the last cases say how fast the machine is now; one that compiles or hangs alone is no slow machine.
_LAST = 200
_MOST_TIMES = 100.0


class Pace:
    """The time left of a run, from the files of all its cases and the cases that are done.

    >>> pace = Pace()
    >>> pace.add("a", {"a": "test_x.py", "b": "test_x.py", "c": "test_x.py"})
    >>> pace.seconds_left(5.0)
    10.0
    """

    def __init__(self, before: Iterable[str] = (), *, device: str = "mps") -> None:
        """`before`: cases of an earlier run, which this one does not do again."""
        self._device = device
        self._before = frozenset(before)
        self._known = 0
        self._whole = self._done = 0.0
        self._last: deque[tuple[float, float]] = deque(maxlen=_LAST)

    def add(self, case: str, files: Mapping[str, str], *, seconds: float | None = None) -> None:
        """Count a case that is done.

        Args:
            files: case -> file, of all cases of the run.
            seconds: what a case that was asked and answered took; None: it says nothing of the machine.
        """
        if len(files) != self._known:
            self._known = len(files)
            self._whole = sum(weight(file, self._device) for name, file in files.items() if name not in self._before)
        if case in files:
            cost = weight(files[case], self._device)
            self._done += cost
            if seconds is not None:
                self._last.append((min(seconds, cost * _MOST_TIMES), cost))

    def seconds_left(self, elapsed: float) -> float | None:
        """Return the seconds that the other cases take; None as long as too little is done to say."""
        if self._done <= 0 or self._done < self._whole * _LEAST_SHARE:
            return None
        return round(elapsed * max(self._whole - self._done, 0.0) / self._done, 3)

    def times_slower(self) -> float | None:
        """Return how many times as long as recorded the last cases took; None as long as they are too few."""
        if len(self._last) < _LAST:
            return None
        return sum(seconds for seconds, _ in self._last) / sum(cost for _, cost in self._last)


def weight(file: str, device: str = "mps") -> float:
    """Return the recorded seconds of a case of a file: on the CPU itself, or on a GPU beside it."""
    costs = _costs()["cpu" if device == "cpu" else "gpu"]
    return float(costs["files"].get(file, costs["others"]))


def recorded_run(device: str, *, quick: bool) -> str:
    """Return what a whole run took where it was recorded, to be told before one starts.

    >>> recorded_run("mps", quick=False).partition(" took ")[0]
    'some 33,000 cases'
    """
    kind = "cpu" if device == "cpu" else "gpu"
    run = next(each for each in _costs()["runs"] if (each["device"], each["quick"]) == (kind, quick))
    text = (
        f"some {round(run['cases'], -2 if quick else -3):,} cases took {human_seconds(run['seconds'])} on {run['on']}"
    )
    if device == "mps":
        text += "; a Mac compiles a graph for each new operator, dtype and shape first, and none was timed yet"
    return text


@cache
def _costs() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(_COSTS.read_text(encoding="utf-8"))
    return found
