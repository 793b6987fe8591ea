"""What a run will take, as its processes say before their first cases."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from mps_build.common.records.device_record import Estimate


class Estimates:
    """Puts together what the processes of a run say, and tells it once the last has spoken."""

    def __init__(self, parts: int, tell: Callable[[Estimate], None]) -> None:
        self._parts, self._tell = parts, tell
        self._found: list[Estimate] = []
        self._lock = threading.Lock()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one process's event; a damaged one is none."""
        try:
            found = Estimate.model_validate({name: event.get(name) for name in Estimate.model_fields})
        except ValueError:
            return
        with self._lock:
            self._found.append(found)
            if len(self._found) == self._parts:
                self._tell(together(self._found))


def together(parts: list[Estimate]) -> Estimate:
    """Return what processes beside each other take: the slowest of them.

    >>> one = Estimate(cases=10, keys=20, low_seconds=1.0, high_seconds=2.0)
    >>> together([one, one.model_copy(update={"high_seconds": 3.0})])
    Estimate(cases=20, keys=40, low_seconds=1.0, high_seconds=3.0)
    """
    return Estimate(
        cases=sum(part.cases for part in parts),
        keys=sum(part.keys for part in parts),
        low_seconds=max(part.low_seconds for part in parts),
        high_seconds=max(part.high_seconds for part in parts),
    )
