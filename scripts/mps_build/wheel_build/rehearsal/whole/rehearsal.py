"""`rehearse --darwin --wheel`: from source to an audited wheel for macOS arm64, compared with the official one."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json

from ..session import Rehearsal
from .comparing import compare_library, compare_wheel, official_wheel, parity_file
from .objects import CPU_LIBRARY, PYTHON_LIBRARY, compile_whole, is_objective, link_whole, make_fakes, tree_build
from .prepare import files_state, packing, prepare_whole, source_list
from .wheel import Rehearsed, finish_whole, pack_whole, python_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What a whole rehearsal leaves."""

    made: Rehearsed
    fakes: Mapping[str, tuple[str, ...]]
    parity: Mapping[str, Any]
    page: Path
    cpu_seconds: Mapping[str, float]
    objective_files: int

    def document(self) -> dict[str, Any]:
        """Return the rehearsal's document for `--json`."""
        fakes = {library: len(names) for library, names in self.fakes.items()}
        return {
            "wheel": str(self.made.wheel.path),
            "objective_files": self.objective_files,
            "receipt": str(self.made.receipt),
            "audit": self.made.document(),
            "parity": dict(self.parity),
            "page": str(self.page),
            "whole_cpu_seconds": {**self.cpu_seconds, "all": round(sum(self.cpu_seconds.values()), 1)},
            "fakes": fakes,
            "stand_ins": fakes,  # its name until 2026-11, kept for one release
        }


def rehearse_whole(rehearsal: Rehearsal, *, mirror: str | None, cache: bool) -> Whole:
    """Run the whole build; each step goes on where an interruption stopped it.

    Raises:
        MpsBuildError: a step failed; the message names its log, and the same command goes on from there.
    """
    with _step(rehearsal, None):
        ready, whole = prepare_whole(rehearsal, mirror=mirror, cache=cache)
    state = files_state(ready.tree.root, source_list(rehearsal))
    with _step(rehearsal, "Compile libtorch"):
        compile_whole(rehearsal, ready, state=state, bindings=False)
    if not (tree_build(ready) / PYTHON_LIBRARY).is_file():  # after an edit the whole wheel is near
        with _step(rehearsal, "Link libtorch"):
            wanted = make_fakes(rehearsal, ready, whole, bindings=False)
            link_whole(rehearsal, ready, CPU_LIBRARY)
            official = official_wheel(rehearsal, python=python_of(ready))
            compare_library(rehearsal, ready, tree_build(ready) / CPU_LIBRARY, official, wanted)
    with _step(rehearsal, "Compile the bindings"):
        units = compile_whole(rehearsal, ready, state=state, bindings=True)
    with _step(rehearsal, "Link"):
        wanted = make_fakes(rehearsal, ready, whole, bindings=True)
        link_whole(rehearsal, ready)
    with _step(rehearsal, "Pack"):
        pack_ready = packing(rehearsal, ready, whole)
        packed = pack_whole(rehearsal, pack_ready, state=state, libraries=_libraries(tree_build(ready)))
    with _step(rehearsal, "Repair, finish, audit"):
        made = finish_whole(rehearsal, pack_ready, packed, wanted)
    rehearsal.note(
        "wheel",
        f"{made.wheel.path.name}, {made.wheel.size / 1e6:.0f} MB; {made.judged}",
        "the pipeline's steps carry this release from source to a whole macOS wheel; not that it loads on a Mac",
        packed,
    )
    with _step(rehearsal, "Parity"):
        official = official_wheel(rehearsal, python=python_of(ready))
        parity = compare_wheel(rehearsal, ready, made, official, wanted).facts
    seconds = read_seconds(_cpu_file(rehearsal))
    return Whole(
        made=made,
        fakes=wanted.libraries,
        parity=parity,
        page=parity_file(rehearsal),
        cpu_seconds=seconds,
        objective_files=sum(is_objective(unit) for unit in units),
    )


@contextmanager
def _step(rehearsal: Rehearsal, title: str | None) -> Iterator[None]:
    """Show a step and count its CPU time; without a title, what is inside shows steps of its own."""
    shown = rehearsal.console.step(title) if title else nullcontext()
    with shown, counted(_cpu_file(rehearsal), title or "Prepare"):
        yield


def _cpu_file(rehearsal: Rehearsal) -> Path:
    return rehearsal.workspace.root / "cpu-seconds.json"


def _libraries(build: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in build.glob("lib/*.dylib") if not path.is_symlink()))


# CPU seconds of a build that may be interrupted and go on: kept by step, over all its runs.


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
