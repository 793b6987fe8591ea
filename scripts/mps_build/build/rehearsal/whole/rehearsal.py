"""`rehearse --darwin --wheel`: from source to an audited wheel for macOS arm64, compared with the official one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.files import write_whole
from mps_build.common.receipts import Receipt, StepResult, fingerprint
from mps_build.common.wheels.download import fetch_wheel
from mps_build.common.workspace import cache_folder

from ..session import Prepared, Rehearsal
from .cpu_time import counted, read_seconds
from .objects import compile_whole, is_objective, link_whole, make_stand_ins, tree_build
from .parity import whole_parity
from .parity_page import parity_page
from .prepare import packing, prepare_whole, source_list
from .reasons import LEFT_OUT, REASONS
from .source_files import files_state
from .third_party import Wanted
from .wheel import Rehearsed, finish_whole, pack_whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """What a whole rehearsal leaves."""

    made: Rehearsed
    stand_ins: Mapping[str, tuple[str, ...]]
    parity: Mapping[str, Any]
    page: Path
    cpu_seconds: Mapping[str, float]
    objective_files: int

    def document(self) -> dict[str, Any]:
        return {
            "wheel": str(self.made.wheel.path),
            "objective_files": self.objective_files,
            "receipt": str(self.made.receipt),
            "audit": dict(self.made.audit),
            "parity": dict(self.parity),
            "page": str(self.page),
            "whole_cpu_seconds": {**self.cpu_seconds, "all": round(sum(self.cpu_seconds.values()), 1)},
            "stand_ins": {library: len(names) for library, names in self.stand_ins.items()},
        }


def rehearse_whole(rehearsal: Rehearsal, *, mirror: str | None, cache: bool) -> Whole:
    """Run the whole build; each step goes on where an interruption stopped it.

    Raises:
        MpsBuildError: a step failed; the message names its log, and the same command goes on from there.
    """
    with _step(rehearsal, None):
        ready, whole = prepare_whole(rehearsal, mirror=mirror, cache=cache)
    state = files_state(ready.tree.root, source_list(rehearsal))
    with _step(rehearsal, "Compile"):
        units = compile_whole(rehearsal, ready, state=state)
    with _step(rehearsal, "Link"):
        wanted = make_stand_ins(rehearsal, ready, whole, units)
        link_whole(rehearsal, ready)
    with _step(rehearsal, "Pack"):
        pack_ready = packing(rehearsal, ready, whole)
        packed = pack_whole(rehearsal, pack_ready, state=state, libraries=_libraries(tree_build(ready)))
    with _step(rehearsal, "Repair, finish, audit"):
        made = finish_whole(rehearsal, pack_ready, packed, wanted)
    rehearsal.note(
        "wheel",
        f"{made.wheel.path.name}, {made.wheel.size / 1e6:.0f} MB, {made.audit['verdict']} by the strict audit",
        "the pipeline's steps carry this release from source to a whole macOS wheel; not that it loads on a Mac",
        packed,
    )
    with _step(rehearsal, "Parity"):
        receipt = _compare(rehearsal, ready, made, wanted)
    parity = receipt.facts
    for part in parity["parts"][:6]:
        result = f"{part['both']} of {part['official']} of the official wheel's" + (
            "" if part["equal"] else f", {len(part['differences'])} kinds of differences, each in {_page(rehearsal)}"
        )
        rehearsal.note(part["part"], result, "what is compiled in, against what Apple's compiler made of it")
    seconds = read_seconds(_cpu_file(rehearsal))
    return Whole(
        made=made,
        stand_ins=wanted.libraries,
        parity=parity,
        page=_page(rehearsal),
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


def _page(rehearsal: Rehearsal) -> Path:
    return rehearsal.workspace.root / "parity.md"


def _compare(rehearsal: Rehearsal, ready: Prepared, made: Rehearsed, wanted: Wanted) -> Receipt:
    """Return the receipt of the comparison with the official wheel of the same release and Python; writes the page."""
    recipe, page = rehearsal.recipe, _page(rehearsal)
    python = made.wheel.path.name.split("-")[2].removeprefix("cp3")
    official = fetch_wheel(
        f"{recipe.wheel.distribution}=={recipe.version}",
        python=f"3.{python}",
        cache=cache_folder() / "wheels",
        log=rehearsal.log("fetch_wheel"),
        reporter=rehearsal.console,
    ).path
    shaders = {
        path.name: path.read_text(encoding="utf-8")
        for path in sorted((ready.tree.root / "aten/src/ATen/native/mps/kernels").glob("*.metal"))
    }

    def compare() -> StepResult:
        parity = whole_parity(made.wheel.path, official, shaders)
        text = parity_page(
            parity,
            wheel=made.wheel.path.name,
            command=f"nox -s rehearse -- {recipe.name} --darwin --wheel",
            findings=made.audit["findings"],
            stand_ins={library: len(names) for library, names in wanted.libraries.items()},
            missing=LEFT_OUT,
        )
        write_whole(page, text)
        return StepResult(files=(page,), facts=parity.document())

    inputs = {
        "wheel": made.wheel.sha256,
        "official": fingerprint(official)["sha256"],
        "reasons": [asdict(each) for each in REASONS],
        "tool": __version__,
    }
    return rehearsal.ledger.run("parity", version=1, inputs=inputs, action=compare)


def _libraries(build: Path) -> tuple[Path, ...]:
    return tuple(sorted(path for path in build.glob("lib/*.dylib") if not path.is_symlink()))
