"""What was made here, held against the official wheel: libtorch_cpu as soon as it is linked, then the whole wheel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from .... import __version__
from ....common.files import write_whole
from ....common.receipts import Receipt, StepResult, fingerprint
from ....common.wheels.download import fetch_wheel
from ....common.workspace import cache_folder
from ..session import Prepared, Rehearsal
from .parity import WholeParity, library_parity, whole_parity
from .parity_page import parity_page
from .reasons import LEFT_OUT, REASONS
from .third_party import Wanted
from .wheel import EXPLAINED, Rehearsed


def parity_file(rehearsal: Rehearsal) -> Path:
    """Return where the page of the comparison lies."""
    return rehearsal.workspace.root / "parity.md"


def official_wheel(rehearsal: Rehearsal, *, python: str) -> Path:
    """Return the official wheel of the same release and Python, fetched once.

    Raises:
        SourceError, UsageError: it is not to be had.
    """
    recipe = rehearsal.recipe
    return fetch_wheel(
        f"{recipe.wheel.distribution}=={recipe.version}",
        python=python,
        cache=cache_folder() / "wheels",
        log=rehearsal.log("fetch_wheel"),
        reporter=rehearsal.console,
    ).path


def compare_library(rehearsal: Rehearsal, ready: Prepared, library: Path, official: Path, wanted: Wanted) -> Receipt:
    """Return the receipt of libtorch_cpu's comparison: what MPS is, before the bindings are compiled."""
    page = parity_file(rehearsal)

    def compare() -> StepResult:
        parity = library_parity(library, official, _shaders(ready))
        write_whole(page, _page(rehearsal, parity, f"{library.name} (the bindings are not compiled yet)", (), wanted))
        return StepResult(facts=parity.document())

    inputs = _inputs(library, official)
    return rehearsal.ledger.run("parity_library", version=1, inputs=inputs, action=compare)


def compare_wheel(rehearsal: Rehearsal, ready: Prepared, made: Rehearsed, official: Path, wanted: Wanted) -> Receipt:
    """Return the receipt of the whole wheel's comparison; writes the page."""
    page = parity_file(rehearsal)

    def compare() -> StepResult:
        parity = whole_parity(made.wheel.path, official, _shaders(ready))
        findings = [{**each, "explained": EXPLAINED.get(each["rule"], "")} for each in made.audit["findings"]]
        write_whole(page, _page(rehearsal, parity, made.wheel.path.name, findings, wanted, judged=made.judged))
        return StepResult(files=(page,), facts=parity.document())

    inputs = _inputs(made.wheel.path, official)
    receipt = rehearsal.ledger.run("parity", version=3, inputs=inputs, action=compare)
    _note(rehearsal, receipt)
    return receipt


def _inputs(ours: Path, official: Path) -> dict[str, object]:
    return {
        "ours": fingerprint(ours)["sha256"],
        "official": fingerprint(official)["sha256"],
        "reasons": [asdict(each) for each in REASONS],
        "tool": __version__,
    }


def _page(
    rehearsal: Rehearsal,
    parity: WholeParity,
    what: str,
    findings: Sequence[Mapping[str, str]],
    wanted: Wanted,
    *,
    judged: str = "",
) -> str:
    return parity_page(
        parity,
        wheel=what,
        command=f"nox -s rehearse -- {rehearsal.recipe.name} --darwin --wheel",
        findings=findings,
        stand_ins={library: len(names) for library, names in wanted.libraries.items()},
        missing=LEFT_OUT,
        judged=judged,
    )


def _shaders(ready: Prepared) -> dict[str, str]:
    """Return the tree's Metal sources that CMake embeds, by name."""
    folder = ready.tree.root / "aten/src/ATen/native/mps/kernels"
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.metal"))}


def _note(rehearsal: Rehearsal, receipt: Receipt) -> None:
    """Say the most telling parts in the closing table."""
    for part in receipt.facts["parts"][:5]:
        result = f"{part['both']} of {part['official']} of the official library's"
        if not part["equal"]:
            result += "; the differences, each with its reason, are in " + parity_file(rehearsal).name
        rehearsal.note(part["part"], result, "our compiler's output for this release, compared with Apple's")
