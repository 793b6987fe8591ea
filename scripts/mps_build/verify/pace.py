"""How long the rest of a run takes: cases left, weighted by what a case of their kind takes beside the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

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
            seconds: what a case that was asked and answered took; None: it says nothing of the machine.
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
