"""A build as a picture: one lane a core, time to the right, colours by phase, the critical path outlined. Plain SVG."""

from __future__ import annotations

from ...common.plain_text import in_html
from .analysis import Placed, Times

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
CSS = """
.build { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; background: var(--paper, #fff); }
.build text { fill: var(--soft, #5d646d); } .build .grid { stroke: var(--line, #dfe3e8); }
.build .critical { stroke: var(--ink, #1c1e21); stroke-width: 1.6; }
.build .run { stroke: var(--soft, #5d646d); stroke-dasharray: 4 3; }
"""


def chart(times: Times, *, alone: bool = True) -> str:
    """Return the SVG document; inside a page it takes the page's colours, and its style sheet is the page's to hold."""
    style = f"<style>{CSS}</style>" if alone else ""
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
