"""The parity report as a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mps_build.common.plain_text import in_code, in_markdown, markdown_table, with_code

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
        "## Stand-ins",
        "",
        "Names of libraries that Debian's tree takes from the system; a call of one of them traps.",
        "",
        *markdown_table(("library", "names"), [(name, str(count)) for name, count in sorted(stand_ins.items())]),
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
    told = "none" if not count else f"{count}, {'all explained' if not open_ones else f'{open_ones} not explained'}"
    return each.part, str(each.ours), str(each.official), str(each.both), told


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
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
