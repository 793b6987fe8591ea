"""A build's times as the body of a page: the picture first, then what it means."""

from __future__ import annotations

from collections.abc import Sequence

from ...common.page import section, table
from ...common.plain_text import in_html
from .analysis import Times
from .chart import CSS as CHART_CSS
from .chart import chart
from .levers import Lever
from .words import folder_rows, headline, human, lever_rows, phase_rows, sentence, step_rows

CSS = (
    """
td.share { width: 150px; white-space: nowrap; }
td.share i { display: inline-block; height: 9px; border-radius: 4px; background: var(--link);
  margin-right: 6px; }
"""
    + CHART_CSS
)


def page_body(
    named: str,
    times: Times,
    found: Sequence[Lever],
    steps: Sequence[tuple[str, float]],
    notes: Sequence[str],
    cache: str,
) -> str:
    """Return what stands inside the page's main part.

    Args:
        steps: of our receipts: name, seconds.
        cache: what the compiler cache did, in words.
    """
    parts = [
        f'<p class="statement">{in_html(named)}</p>',
        f'<div class="verdict soft"><h1>{in_html(headline(times))}</h1><p>{in_html(sentence(times))}.</p>'
        f'<p class="next">{in_html(cache)}</p></div>',
        section("Every step, by lane", f'<div class="picture">{chart(times, alone=False)}</div>', _lanes(times)),
        _levers(found, times),
        section(
            "By phase", _table(("phase", "steps", "time", "share", "longest"), phase_rows(times.phases, times.busy)), ""
        ),
        _critical(times),
        section(
            "Compile, by folder of the source",
            _table(("folder", "steps", "time", "share", "longest"), folder_rows(times)),
            f"{len(times.folders)} folders",
        )
        if times.folders
        else "",
        section("Slowest steps", _table(("step", "phase", "time"), _slowest(times)), ""),
        _receipts(steps),
        section("Notes", "<ul>" + "".join(f"<li>{in_html(note)}</li>" for note in notes) + "</ul>", "")
        if notes
        else "",
    ]
    return "\n".join(part for part in parts if part)


def _lanes(times: Times) -> str:
    return f"{len(times.placed)} steps; outlined: the critical path" if times.critical else f"{len(times.placed)} steps"


def _levers(found: Sequence[Lever], times: Times) -> str:
    rows = lever_rows(found, times.wall)
    content = _table(("lever", "saves", "share", "how", "the figure is from"), rows) if rows else "<p>None is left.</p>"
    return section("What the next lever would save", content, "of wall time, each alone")


def _critical(times: Times) -> str:
    if times.critical is None:
        return section("Critical path", "<p>Not known: there is no build.ninja beside the log.</p>", "")
    rows = [(step.name, human(step.seconds)) for step in times.critical]
    return section("Critical path", _table(("step", "time"), rows), human(times.critical_seconds or 0.0))


def _slowest(times: Times) -> list[tuple[str, str, str]]:
    return [(each.slowest, each.name, human(each.seconds)) for each in times.slowest]


def _receipts(steps: Sequence[tuple[str, float]]) -> str:
    content = _table(("part", "step", "time"), step_rows(steps))
    return section("Steps of mps-build", content, "from its receipts") if steps else ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    drawn = ["<tr>" + "".join(map(_cell, columns, row)) + "</tr>" for row in rows]
    return table(columns, drawn, numbers=("steps", "time", "saves"))


def _cell(column: str, text: str) -> str:
    if column in ("steps", "time", "saves"):
        return f'<td class="number">{in_html(text)}</td>'
    if column == "share":
        width = min(100, int(text.strip("<%") or 0)) if text else 0
        return f'<td class="share"><i style="width:{width}px"></i>{in_html(text)}</td>'
    if column in ("longest", "how", "the figure is from"):
        return f'<td class="what">{in_html(text)}</td>'
    if column in ("step", "folder"):
        return f"<td><code>{in_html(text)}</code></td>"
    return f"<td>{in_html(text)}</td>"
