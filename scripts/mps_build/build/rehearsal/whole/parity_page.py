"""The parity report as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mps_build.common.plain_text import in_code, in_markdown

from .differences import UNEXPLAINED, Compared
from .parity import WholeParity

_MOST = 6
_MOST_LETTERS = 110


def parity_page(
    parity: WholeParity,
    *,
    wheel: str,
    command: str,
    findings: Sequence[Mapping[str, str]],
    stand_ins: Mapping[str, int],
    missing: Sequence[str],
    judged: str = "",
) -> str:
    """Return the report.

    Args:
        command: what made the wheel and this report.
        findings: of the strict audit; `judged` is its verdict in a sentence.
        stand_ins: library -> how many of its names trap when they are called.
        missing: what the configuration leaves out, a line each.
    """
    lines = [
        f"# {wheel} and the official wheel",
        "",
        f"    {command}",
        "",
        "Built whole on Linux, from source to an audited wheel, and compared with "
        f"`{parity.official}`. Nothing on this page shows that it runs: it was never loaded on a Mac.",
        "",
        "| part | ours | official | both | differences |",
        "|---|---|---|---|---|",
        *(_row(each) for each in parity.parts),
        f"| shader sources of the tree, inside libtorch_cpu | {sum(parity.shaders.values())} | | {len(parity.shaders)} "
        "in the tree | |",
        "",
        f"Differences without a reason: {parity.unexplained}.",
        "",
        "## Left out by the configuration",
        "",
        *(f"- {line}" for line in missing),
        "",
        "## Stand-ins",
        "",
        "Names of libraries that Debian's tree takes from the system; a call of one of them traps.",
        "",
        "| library | names |",
        "|---|---|",
        *(f"| {library} | {count} |" for library, count in sorted(stand_ins.items())),
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


def _row(each: Compared) -> str:
    count = sum(map(len, each.differing.values()))
    open_ones = sum(len(names) for (_, text), names in each.differing.items() if text == UNEXPLAINED)
    told = "none" if not count else f"{count}, {'all explained' if not open_ones else f'{open_ones} not explained'}"
    return f"| {each.part} | {each.ours} | {each.official} | {each.both} | {told} |"


def _finding(finding: Mapping[str, str]) -> str:
    where, evidence = (in_markdown(finding[name] or "the wheel") for name in ("member", "evidence"))
    found = f"- {finding['level']} {finding['rule']}, {where}: {evidence}"
    return f"{found} ({why})" if (why := finding.get("explained")) else found


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
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
