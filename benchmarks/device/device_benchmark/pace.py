"""How long rows may take: with --quick all of them together, else each for itself."""

from __future__ import annotations

import time
from dataclasses import dataclass

# Full and --quick: at least, at most. Drift shows from 6 pairs on (intervals.py); a row of slow steps has fewer.
_PAIRS = {False: (5, 15), True: (3, 11)}
_BLOCK_SECONDS = {False: 0.4, True: 0.08}
_ROW_SECONDS = 20.0


@dataclass(frozen=True)
class RowLimit:
    """What one row may take: pairs of blocks, the length of a block, and the moments to stop at."""

    block_seconds: float
    least_pairs: int
    most_pairs: int
    enough_at: float
    stop_at: float | None

    def is_over(self, pairs: int) -> bool:
        """True when a row has its pairs, or no more time."""
        now = time.monotonic()
        if self.stop_at is not None and now > self.stop_at:
            return True
        return now > self.enough_at and pairs >= self.least_pairs


class Pace:
    """Deals out time. `total` is for all rows (None: no limit); a row's weight is its share of what is left."""

    def __init__(self, *, quick: bool, weights: float, total: float | None) -> None:
        self._quick, self._weights = quick, weights
        self._stop = time.monotonic() + total if total is not None else None

    @property
    def is_spent(self) -> bool:
        """True when no time is left for a further row."""
        return self._stop is not None and time.monotonic() > self._stop

    def row(self, weight: float) -> RowLimit:
        """Return the limit of the row that begins to be timed now."""
        now = time.monotonic()
        seconds = _ROW_SECONDS * weight
        if self._stop is not None:
            seconds = max(0.0, self._stop - now) * weight / max(self._weights, weight)
        least, most = _PAIRS[self._quick]
        return RowLimit(
            block_seconds=_BLOCK_SECONDS[self._quick],
            least_pairs=least,
            most_pairs=most,
            enough_at=now + seconds,
            stop_at=self._stop,
        )

    def passed(self, weight: float) -> None:
        """Take a row's weight out of what is to come."""
        self._weights -= weight
