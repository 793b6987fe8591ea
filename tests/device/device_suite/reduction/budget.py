"""How long a reduction may go on."""

from __future__ import annotations

import time

_WAITS = 4  # a device that works while the processor waits may take so many times as long


class Budget:
    """So many seconds of this process's own work: where the machine is busy, the script is none the worse for it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._work = time.process_time() + seconds
        self._wall = time.monotonic() + _WAITS * seconds

    @property
    def is_over(self) -> bool:
        """Say whether nothing more should be tried."""
        return time.process_time() > self._work or time.monotonic() > self._wall

    def rest(self) -> Budget:
        """Return what is left, at least a quarter of the whole."""
        return Budget(max(self._work - time.process_time(), self.seconds / 4))
