"""A build's times as the body of a page: the picture first, then what it means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mps_build.common.page import section, table
from mps_build.common.plain_text import in_html

from .analysis import Group, Lever, Placed, Times

FOLDERS_SHOWN = 15
COLOURS = {
    "configure": "#4aa3a8",
    "codegen": "#8f6fd6",
    "precompiled header": "#d9902f",
    "compile": "#3b82d0",
    "Metal": "#22a06b",
    "link": "#d1495b",
    "install": "#7d8996",
}
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 1040.0, 44.0, 12.0, 26.0, 56.0
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
_LEAST_PIXELS = 0.12
CHART_CSS = """
.build { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; background: var(--paper, #fff); }
.build text { fill: var(--soft, #5d646d); } .build .grid { stroke: var(--line, #dfe3e8); }
.build .critical { stroke: var(--ink, #1c1e21); stroke-width: 1.6; }
.build .run { stroke: var(--soft, #5d646d); stroke-dasharray: 4 3; }
"""
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


# A build's times in words and rows, for a terminal and for a page.


def human(seconds: float) -> str:
    """Return a duration as a person reads it.

    >>> human(4.25), human(754), human(7300)
    ('4.2 s', '12 min 34 s', '2 h 01 min')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def share_of(part: float, whole: float) -> str:
    """Return a share in whole percents; what is less than one is not nothing.

    >>> share_of(30, 60), share_of(0.1, 60), share_of(0, 60), share_of(1, 0)
    ('50%', '<1%', '0%', '')
    """
    if not whole:
        return ""
    return "<1%" if 0 < part < whole / 100 else f"{part / whole:.0%}"


def headline(times: Times) -> str:
    """Return the figure that a person asks for first."""
    runs = f" in {len(times.runs)} runs" if len(times.runs) > 1 else ""
    return f"{human(times.wall)} of ninja{runs}"


def sentence(times: Times) -> str:
    """Return how well the cores were used, and what no number of cores would shorten."""
    parts = [f"{human(times.busy)} of steps, {times.mean_busy:.2f} at once on average, {times.jobs} at most"]
    if times.critical is None:
        parts.append("the critical path is unknown without build.ninja")
    else:
        chain = times.critical_seconds or 0.0
        parts.append(f"the longest chain of steps that wait for each other takes {human(chain)}")
    if times.again:
        parts.append(f"{human(times.again)} was spent on steps that were run again later")
    return "; ".join(parts)


def phase_rows(groups: Sequence[Group], whole: float) -> list[tuple[str, str, str, str, str]]:
    """Return name, steps, seconds, share of all steps, and the longest step."""
    return [
        (
            group.name,
            str(group.steps),
            human(group.seconds),
            share_of(group.seconds, whole),
            f"{short(group.slowest)} {human(group.longest)}",
        )
        for group in groups
    ]


def folder_rows(times: Times) -> list[tuple[str, str, str, str, str]]:
    """Return the folders whose compiles take longest, the rest as one row."""
    shown, rest = times.folders[:FOLDERS_SHOWN], times.folders[FOLDERS_SHOWN:]
    rows = phase_rows(shown, times.busy)
    if rest:
        steps, seconds = sum(group.steps for group in rest), sum(group.seconds for group in rest)
        rows.append((f"{len(rest)} more folders", str(steps), human(seconds), share_of(seconds, times.busy), ""))
    return rows


def lever_rows(found: Sequence[Lever], wall: float) -> list[tuple[str, str, str, str, str]]:
    """Return lever, saving, share of the wall time, how to get it, and where the figure is from."""
    return [
        (
            lever.name,
            "not measured" if lever.saves is None else human(lever.saves),
            "" if lever.saves is None else share_of(lever.saves, wall),
            lever.how,
            lever.source,
        )
        for lever in found
    ]


# Which part of a build each step of ours is, by the name of its receipt.
_AREAS = {
    "fetch_source": "source",
    "apply_patches": "source",
    "create_environment": "environment",
    "build_runtime": "environment",
    "configure": "configure",
    "compile_wheel": "compile",
    "repair_wheel": "packing",
    "finish_wheel": "packing",
    "deliver_wheel": "packing",
    "audit_wheel": "audit",
}


def step_rows(steps: Sequence[tuple[str, float]]) -> list[tuple[str, str, str]]:
    """Return part of the build, step and time, for the steps that our receipts tell."""
    return [(_AREAS.get(name.partition("-")[0], ""), name, human(seconds)) for name, seconds in steps]


def short(output: str) -> str:
    """Return an output's last part, which names it well enough in a table."""
    return output.rstrip("/").rpartition("/")[2]


def document(times: Times, found: Sequence[Lever]) -> dict[str, Any]:
    """Return the figures as JSON."""
    critical = None
    if times.critical is not None:
        critical = {
            "seconds": round(times.critical_seconds or 0.0, 3),
            "steps": [{"output": step.name, "seconds": round(step.seconds, 3)} for step in times.critical],
        }
    return {
        "wall_seconds": round(times.wall, 3),
        "step_seconds": round(times.busy, 3),
        "mean_busy": round(times.mean_busy, 3),
        "most_at_once": times.jobs,
        "runs": [{"wall_seconds": wall, "step_seconds": round(busy, 3), "steps": n} for wall, busy, n in times.runs],
        "phases": [group.document() for group in times.phases],
        "compile_folders": [group.document() for group in times.folders],
        "slowest": [
            {"output": each.slowest, "phase": each.name, "seconds": round(each.seconds, 3)} for each in times.slowest
        ],
        "made_again_seconds": round(times.again, 3),
        "critical_path": critical,
        "scheduled_seconds": {str(jobs): round(wall, 3) for jobs, wall in times.scheduled.items()},
        "levers": [lever.document() for lever in found],
    }


# A build as a picture: one lane a core, time to the right, colours by phase, the critical path outlined. Plain SVG.


def chart(times: Times, *, alone: bool = True) -> str:
    """Return the SVG document; inside a page it takes the page's colours, and its style sheet is the page's to hold."""
    style = f"<style>{CHART_CSS}</style>" if alone else ""
    lanes = max((placed.lane for placed in times.placed), default=0) + 1
    height = max(6.0, min(30.0, 420.0 / lanes))
    total = TOP + lanes * height + BOTTOM
    scale = (WIDTH - LEFT - RIGHT) / times.wall if times.wall else 0.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="build" viewBox="0 0 {WIDTH:g} {total:g}" role="img" '
        f'aria-label="steps of the build by lane and time" width="100%">{style}'
    ]
    parts += _axis(times.wall, scale, lanes * height)
    parts += [_bar(placed, scale, height) for placed in _drawn(times.placed, scale)]
    parts += _runs(times, scale, lanes * height)
    parts += _legend(times, total - 14)
    for lane in range(lanes):
        if lane % max(1, lanes // 8) == 0:
            parts.append(
                f'<text x="{LEFT - 8:g}" y="{TOP + (lane + 0.5) * height + 4:g}" text-anchor="end">{lane + 1}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _drawn(placed: tuple[Placed, ...], scale: float) -> list[Placed]:
    """Return the steps that can be seen, critical ones last, so that no other lies upon them."""
    seen = [each for each in placed if (each.end - each.begin) * scale >= _LEAST_PIXELS or each.is_critical]
    return sorted(seen, key=lambda each: each.is_critical)


def _bar(placed: Placed, scale: float, height: float) -> str:
    width = max((placed.end - placed.begin) * scale - 0.3, _LEAST_PIXELS)
    mark = ' class="critical"' if placed.is_critical else ""
    more = f" and {len(placed.step.outputs) - 1} more" if len(placed.step.outputs) > 1 else ""
    title = f"{placed.step.name}{more}: {placed.phase}, {placed.step.seconds:.1f} s"
    return (
        f'<rect{mark} x="{LEFT + placed.begin * scale:.2f}" y="{TOP + placed.lane * height + 1:g}" width="{width:.2f}" '
        f'height="{height - 2:g}" fill="{COLOURS[placed.phase]}"><title>{in_html(title)}</title></rect>'
    )


def _axis(wall: float, scale: float, height: float) -> list[str]:
    step = next((tick for tick in _TICKS if wall / tick <= 12), _TICKS[-1])
    parts = []
    for number in range(int(wall // step) + 1):
        x = LEFT + number * step * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP:g}" x2="{x:.1f}" y2="{TOP + height:g}"/>')
        parts.append(f'<text x="{x:.1f}" y="{TOP + height + 16:g}" text-anchor="middle">{clock(number * step)}</text>')
    return parts


def _runs(times: Times, scale: float, height: float) -> list[str]:
    """Return a line and a word where each further run begins; words that would cover each other are left out."""
    parts, base, free = [], 0.0, 0.0
    for number, (wall, _, _) in enumerate(times.runs, 1):
        x = LEFT + base * scale
        if len(times.runs) > 1:
            parts.append(f'<line class="run" x1="{x:.1f}" y1="{TOP - 8:g}" x2="{x:.1f}" y2="{TOP + height:g}"/>')
            if x >= free:
                parts.append(f'<text x="{x + 4:.1f}" y="{TOP - 10:g}">run {number}</text>')
                free = x + 44
        base += wall
    return parts


def _legend(times: Times, y: float) -> list[str]:
    """Return a square and a word for each phase that is there."""
    parts, x = [], LEFT
    for phase in [*(group.name for group in times.phases), *(["critical path"] if times.critical else [])]:
        colour = COLOURS.get(phase)
        look = f'fill="{colour}"' if colour else 'class="critical" fill="none"'
        parts.append(f'<rect x="{x:g}" y="{y - 9:g}" width="10" height="10" {look}/>')
        parts.append(f'<text x="{x + 15:g}" y="{y:g}">{phase}</text>')
        x += 15 + 6.4 * len(phase) + 18
    return parts


def clock(seconds: float) -> str:
    """Return a time on the axis.

    >>> clock(45), clock(600), clock(5400)
    ('45 s', '10 min', '1 h 30')
    """
    if seconds < 60:
        return f"{seconds:g} s"
    minutes = seconds / 60
    if minutes < 60:
        return f"{minutes:g} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02d}" if rest else f"{hours} h"
