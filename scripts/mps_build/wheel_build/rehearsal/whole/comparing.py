"""What was made here, held against the official wheel: libtorch_cpu as soon as it is linked, then the whole wheel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from mps_build import __version__
from mps_build.common.files import write_whole
from mps_build.common.plain_text import in_code, in_markdown, markdown_table, with_code
from mps_build.common.receipts import Receipt, StepResult, fingerprint
from mps_build.common.wheels.download import fetch_wheel
from mps_build.common.workspace import cache_folder

from ..session import Prepared, Rehearsal
from .objects import Wanted
from .parity import LEFT_OUT, REASONS, UNEXPLAINED, Compared, WholeParity, library_parity, whole_parity
from .wheel import EXPLAINED, Rehearsed

_MOST = 6
_MOST_CHARACTERS = 110


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
        fakes={library: len(names) for library, names in wanted.libraries.items()},
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


# The parity report as a page of Markdown.


def parity_page(
    parity: WholeParity,
    *,
    wheel: str,
    command: str,
    findings: Sequence[Mapping[str, str]],
    fakes: Mapping[str, int],
    missing: Sequence[str],
    judged: str = "",
) -> str:
    """Return the report.

    Args:
        command: what made the wheel and this report.
        findings: of the strict audit; `judged` is its verdict in a sentence.
        fakes: library -> how many of its names trap when they are called.
        missing: what the configuration leaves out, a line each.
    """
    lines = [
        f"# {in_markdown(wheel)} and the official wheel",
        "",
        f"    {command}",
        "",
        "Built whole on Linux, from source to an audited wheel, and compared with "
        f"{in_code(parity.official)}. Nothing on this page shows that it runs: it was never loaded on a Mac.",
        "",
        *markdown_table(
            ("part", "ours", "official", "both", "differences"),
            [
                *map(_row, parity.parts),
                (
                    "shader sources of the tree, inside libtorch_cpu",
                    str(sum(parity.shaders.values())),
                    "",
                    f"{len(parity.shaders)} in the tree",
                    "",
                ),
            ],
        ),
        "",
        f"Differences without a reason: {parity.unexplained}.",
        "",
        "## Left out by the configuration",
        "",
        *(f"- {with_code(line)}" for line in missing),
        "",
        "## Fakes",
        "",
        "Names of libraries that Debian's tree takes from the system; a call of one of them traps.",
        "",
        *markdown_table(("library", "names"), [(name, str(count)) for name, count in sorted(fakes.items())]),
        "",
        "## The strict audit",
        "",
        *([f"{judged[0].upper()}{judged[1:]}.", ""] if judged else []),
        *(_finding(each) for each in findings),
        *([] if findings else ["No finding."]),
        "",
        "## Differences, by reason",
        "",
        *(line for each in parity.parts for line in _differences(each)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _row(each: Compared) -> tuple[str, ...]:
    count = sum(map(len, each.differing.values()))
    open_ones = sum(len(names) for (_, text), names in each.differing.items() if text == UNEXPLAINED)
    differing = (
        "none" if not count else f"{count}, {'all explained' if not open_ones else f'{open_ones} not explained'}"
    )
    return each.part, str(each.ours), str(each.official), str(each.both), differing


def _finding(finding: Mapping[str, str]) -> str:
    found = f"{finding['level']} {finding['rule']}, {finding['member'] or 'the wheel'}: {finding['evidence']}"
    return f"- {in_markdown(found)}" + (f" ({with_code(why)})" if (why := finding.get("explained")) else "")


def _differences(each: Compared) -> list[str]:
    if each.is_equal:
        return []
    lines = [f"### {each.part}", ""]
    for (side, reason), names in sorted(each.differing.items()):
        shown = ", ".join(in_code(_cut(name)) for name in names[:_MOST])
        more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
        lines.append(f"- only {side}, {len(names)}: {reason}. {shown}{more}")
    return [*lines, ""]


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_CHARACTERS else f"{name[: _MOST_CHARACTERS - 1]}…"
