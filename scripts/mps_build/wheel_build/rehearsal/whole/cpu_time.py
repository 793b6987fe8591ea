"""CPU seconds of a build that may be interrupted and go on: kept by step, over all its runs."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json


@contextmanager
def counted(path: Path, step: str) -> Iterator[None]:
    """Add what programs of ours use inside the block to `step`'s seconds in `path`, also where the block fails."""
    before = _used()
    try:
        yield
    finally:
        seconds = read_seconds(path)
        seconds[step] = round(seconds.get(step, 0.0) + _used() - before, 1)
        write_whole(path, json.dumps(seconds, indent=1) + "\n")


def read_seconds(path: Path) -> dict[str, float]:
    """Return step -> CPU seconds; nothing where nothing was counted yet."""
    try:
        found = read_json(path)
    except (OSError, ValueError):
        return {}
    return {str(step): float(seconds) for step, seconds in found.items()}


def _used() -> float:
    whole = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        used = resource.getrusage(who)
        whole += used.ru_utime + used.ru_stime
    return whole
