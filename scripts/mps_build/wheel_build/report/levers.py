"""What the next lever would save: from this log's own steps, or from a ratio that was measured and is on record.

Nothing here is guessed: a lever whose ratio has no row in benchmarks/results.json is named as unmeasured, without a
figure. Ratios of CPU seconds become wall seconds by the cores that this build kept busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.json_text import read_json

from .analysis import Times, has_precompiled_header
from .phases import COMPILE, HEADER

# Rows of benchmarks/results.json that say what share of the compile seconds is left, and the command that gets it.
_RATIOS = {
    "compile.develop_ratio": ("the develop profile, same -O level", "build_wheel --profile develop"),
    "compile.develop_O0_ratio": ("the develop profile at -O0", "docs/build/faster_builds.md"),
    "compile.release_ratio": ("the release profile", "build_wheel --profile release"),
    "cache.warm_ratio": ("a warm compiler cache", "build_wheel --cache ccache, the second time"),
}
_LEAST_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lever:
    """One thing to change: wall seconds it would save (None: never measured), and where that figure is from."""

    name: str
    saves: float | None
    source: str
    how: str = ""

    def document(self) -> dict[str, Any]:
        """Return the lever as JSON; `saves_seconds` is null if it was never measured."""
        saves = None if self.saves is None else round(self.saves, 1)
        return {"name": self.name, "saves_seconds": saves, "from": self.source, "how": self.how}


def read_results(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the measured rows by name; none where the file is not there (an installed tool has no benchmarks)."""
    try:
        rows = read_json(path)
        return {row["name"]: row for row in rows if isinstance(row.get("median"), (int, float))}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def levers(times: Times, results: Mapping[str, Mapping[str, Any]], *, cache_used: bool = False) -> tuple[Lever, ...]:
    """Return what there is to change, the largest saving first, those without a figure last."""
    found = [*_by_schedule(times), *_by_ratio(times, results, cache_used), *_by_repeats(times)]
    worth = [lever for lever in found if lever.saves is None or lever.saves >= _LEAST_SECONDS]
    return tuple(sorted(worth, key=lambda lever: -(lever.saves if lever.saves is not None else -1.0)))


def _by_schedule(times: Times) -> list[Lever]:
    """Return what order and cores would give, by running this log's steps again on paper."""
    if times.as_ordered is None:
        return []
    now = times.as_ordered
    found = []
    for jobs, wall in times.scheduled.items():
        if jobs == times.jobs:
            name, how = "longest chain of steps first", "ninja 1.12 or newer does so by itself, from its last log"
        else:
            name, how = f"{jobs} jobs in place of {times.jobs}", "as many cores, and 2 GB of memory for each"
        source = "this log's steps and graph, scheduled anew; each step as long as it was"
        found.append(Lever(name=name, saves=now - wall, source=source, how=how))
    return found


def _by_ratio(times: Times, results: Mapping[str, Mapping[str, Any]], cache_used: bool) -> list[Lever]:
    found: list[Lever] = []
    seconds = times.seconds_of(COMPILE, HEADER)
    if not times.is_pytorch:  # the ratios were measured on PyTorch's files, and say nothing of others
        return found
    for row, (name, how) in _RATIOS.items():
        if seconds == 0 or (cache_used and row.startswith("cache.")):
            continue
        if has_precompiled_header(times) and row.startswith("compile."):
            continue  # its own seconds are not stock's, which the ratio is against
        if row not in results:
            found.append(Lever(name=name, saves=None, source=f"{row} has not been measured yet", how=how))
            continue
        ratio = float(results[row]["median"])
        saves = seconds * (1 - ratio) / times.mean_busy if times.mean_busy else 0.0
        source = f"{row} = {ratio:g} in benchmarks/results.json ({results[row].get('machine', '?')})"
        found.append(Lever(name=name, saves=saves, source=source, how=how))
    return found


def _by_repeats(times: Times) -> list[Lever]:
    if not times.again or not times.mean_busy:
        return []
    source, how = "this log: steps whose outputs a later step made again", "`ninja -d explain` says why it does so"
    return [Lever(name="compile nothing twice", saves=times.again / times.mean_busy, source=source, how=how)]
