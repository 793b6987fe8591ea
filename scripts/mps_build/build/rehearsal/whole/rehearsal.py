"""`rehearse --darwin --wheel`: from source to an audited wheel for macOS arm64, compared with the official one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..session import Rehearsal
from .objects import compile_whole, link_whole, make_stand_ins, tree_build
from .prepare import packing, prepare_whole, source_list
from .source_files import files_state
from .wheel import Rehearsed, finish_whole, pack_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What a whole rehearsal leaves."""

    made: Rehearsed
    stand_ins: Mapping[str, tuple[str, ...]]

    def document(self) -> dict[str, Any]:
        return {
            "wheel": str(self.made.wheel.path),
            "receipt": str(self.made.receipt),
            "audit": dict(self.made.audit),
            "stand_ins": {library: len(names) for library, names in self.stand_ins.items()},
        }


def rehearse_whole(rehearsal: Rehearsal, *, mirror: str | None, cache: bool) -> Whole:
    """Run the whole build; each step goes on where an interruption stopped it.

    Raises:
        MpsBuildError: a step failed; the message names its log, and the same command goes on from there.
    """
    console = rehearsal.console
    ready, whole = prepare_whole(rehearsal, mirror=mirror, cache=cache)
    state = files_state(ready.tree.root, source_list(rehearsal))
    with console.step("Compile"):
        units = compile_whole(rehearsal, ready, state=state)
    with console.step("Link"):
        wanted = make_stand_ins(rehearsal, ready, whole, units)
        link_whole(rehearsal, ready)
    with console.step("Pack"):
        pack_ready = packing(rehearsal, ready, whole)
        packed = pack_whole(rehearsal, pack_ready, state=state, libraries=_libraries(tree_build(ready)))
    with console.step("Repair, finish, audit"):
        made = finish_whole(rehearsal, pack_ready, packed, wanted)
    rehearsal.note(
        "wheel",
        f"{made.wheel.path.name}, {made.wheel.size / 1e6:.0f} MB, {made.audit['verdict']} by the strict audit",
        "the pipeline's steps carry this release from source to a whole macOS wheel; not that it loads on a Mac",
        packed,
    )
    return Whole(made=made, stand_ins=wanted.libraries)


def _libraries(build: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in build.glob("lib/*.dylib") if not path.is_symlink()))
