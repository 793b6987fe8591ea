"""The bars of the announcement of 2022, drawn from a record: training and evaluation, times faster than the CPU."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mps_build.common.page import PAPER, Box, Line, Mark, Picture, Words, check_pillow, to_png, to_svg
from mps_build.common.records.benchmark import BenchmarkRecord, Row

from .benchmark_page import ANNOUNCED, ANNOUNCEMENT, TITLES, headline

__all__ = ["check_pillow", "picture", "png", "svg"]

_WIDTH, _MARGIN, _GAP = 960, 48, 76
_TOP, _PLOT = 150, 250
_INK, _SOFT, _GRID, _FAINT, _DOUBT = "#1c1e21", "#5d646d", "#e3e7ec", "#b3bac3", "#9a5b00"
# The names that common/page.css has for the same colours.
COLOURS_OF_PAGES = {_INK: "ink", _SOFT: "soft", _GRID: "line", _DOUBT: "known", PAPER: "paper"}
_COLOURS = {"training": "#0b66c3", "inference": "#6c4ad1"}
_MODERN = {"training": "#7fb2e5", "inference": "#b7a5ea"}
_PANELS = (("training", "Training"), ("inference", "Evaluation"))
_NAMES = (*ANNOUNCED, "decoder")
_SHORT = {**TITLES, "decoder": "Decoder"}


def svg(record: BenchmarkRecord) -> str:
    """Return the picture as SVG."""
    return to_svg(picture(record))


def png(record: BenchmarkRecord) -> bytes:
    """Return the picture as PNG.

    Raises:
        UsageError: Pillow is not installed.
    """
    return to_png(picture(record))


def picture(record: BenchmarkRecord) -> Picture:
    """Return what is drawn: two panels on one scale, a line where the CPU is, and the announcement in words."""
    top = _top_of(record)
    notes = [*_notes(record)]
    wrapped = [line for note in notes for line in textwrap.wrap(note, 140)]
    caveat = _caveat(record)
    lower = 17 * max(0, len(caveat) - 2)  # two lines have room above the panels
    height = lower + _TOP + _PLOT + 112 + 18 * len(wrapped)
    marks: list[Mark] = []
    width = (_WIDTH - 2 * _MARGIN - _GAP) / 2
    for place, (mode, title) in enumerate(_PANELS):
        marks += _panel(record, mode, title, _MARGIN + place * (width + _GAP), width, top)
    below = _TOP + _PLOT + 100
    marks += [
        Words(x=_MARGIN, y=below + 18 * number, text=line, size=12, colour=_SOFT) for number, line in enumerate(wrapped)
    ]
    marks = [*_heading(record, caveat), *(_lowered(mark, lower) for mark in marks)]
    return Picture(width=_WIDTH, height=height, title=_spoken(record), marks=tuple(marks))


def _lowered(mark: Mark, by: float) -> Mark:
    if isinstance(mark, Line):
        return replace(mark, y1=mark.y1 + by, y2=mark.y2 + by)
    return replace(mark, y=mark.y + by)


def _caveat(record: BenchmarkRecord) -> list[str]:
    """Return the lines that say why this is no measurement of MPS, none where it is one."""
    is_whole = not record.partial and not record.selection.get("quick")
    if record.device == "mps" and record.verdict == "measured" and is_whole:
        return []
    return textwrap.wrap(f"{headline(record)}. {record.statement}", 112)


def _heading(record: BenchmarkRecord, caveat: Sequence[str]) -> Iterator[Mark]:
    gpu = record.gpu.get("name") or record.device
    macos = f", macOS {record.host['macos']}" if record.host.get("macos") else ""
    torch = f"torch {record.torch.version}" if record.torch.version else "torch unknown"
    threads = f", {record.cpu['threads']} CPU threads" if record.cpu.get("threads") else ""
    yield Words(x=_MARGIN, y=44, text="Times faster than the CPU", size=25, colour=_INK, bold=True)
    facts = f"{gpu}{macos}, {torch}{threads}, {record.started[:10]}"
    yield Words(x=_MARGIN, y=68, text=facts, size=14, colour=_SOFT)
    for number, line in enumerate(caveat):
        yield Words(x=_MARGIN, y=90 + 17 * number, text=line, size=13, colour=_DOUBT, bold=True)


def _panel(record: BenchmarkRecord, mode: str, title: str, left: float, width: float, top: float) -> Iterator[Mark]:
    base = _TOP + _PLOT

    def at(value: float) -> float:
        return base - _PLOT * min(value, top) / top

    yield Words(x=left, y=_TOP - 18, text=title, size=16, colour=_INK, bold=True)
    for tick in _ticks(top):
        yield Line(x1=left, y1=at(tick), x2=left + width, y2=at(tick), colour=_GRID)
        yield Words(x=left - 8, y=at(tick) + 4, text=f"{tick:g}×", size=12, colour=_SOFT, anchor="end")
    slot = width / len(_NAMES)
    for place, name in enumerate(_NAMES):
        yield from _bar(
            record.row(f"{name}:{mode}"), name, mode, left + slot * (place + 0.5), min(64.0, slot * 0.6), at
        )
    yield Line(x1=left, y1=base, x2=left + width, y2=base, colour=_FAINT)
    yield Line(x1=left, y1=at(1), x2=left + width, y2=at(1), colour=_INK, width=1.5, dashed=True)
    yield Words(x=left + width + 5, y=at(1) + 4, text="CPU", size=11, colour=_INK)


def _bar(row: Row | None, name: str, mode: str, middle: float, width: float, at: object) -> Iterator[Mark]:
    assert callable(at)
    base = at(0.0)
    yield Words(x=middle, y=base + 22, text=_SHORT[name], size=14, colour=_INK, anchor="middle")
    for number, line in enumerate(_under(row)):
        yield Words(x=middle, y=base + 39 + 15 * number, text=line, size=11.5, colour=_SOFT, anchor="middle")
    if row is None or row.ratio is None:
        yield Box(x=middle - width / 2, y=base - 84, width=width, height=84, colour=_FAINT, dashed=True)
        words = ("withheld", row.flags[0].id.replace("_", " ")) if row and row.flags else ("not", "measured")
        for number, text in enumerate(words):
            yield Words(x=middle, y=base - 46 + 15 * number, text=text, size=11, colour=_SOFT, anchor="middle")
        return
    tip, low, high = at(row.ratio.median), at(row.ratio.low), at(row.ratio.high)
    colour = (_MODERN if name == "decoder" else _COLOURS)[mode]
    yield Box(x=middle - width / 2, y=tip, width=width, height=base - tip, colour=colour, radius=3)
    yield Line(x1=middle, y1=high, x2=middle, y2=low, colour=_INK, width=1.5)
    for end in (low, high):
        yield Line(x1=middle - 6, y1=end, x2=middle + 6, y2=end, colour=_INK, width=1.5)
    text = f"{row.ratio.median:.3g}×"
    yield Words(x=middle, y=min(high, tip) - 8, text=text, size=15, colour=_INK, anchor="middle", bold=True)


def _under(row: Row | None) -> list[str]:
    if row is None:
        return []
    size = [f"{name} {number}" for name, number in row.size.items()]
    return [*size, *([row.dtype] if row.dtype not in (None, "float32") else [])]


def _notes(record: BenchmarkRecord) -> Iterator[str]:
    yield "Bars are medians of pairs of blocks, CPU and device in turn; whiskers are 99 % intervals."
    drifting = [row.id for row in record.rows if row.name in _NAMES and any(flag.id == "drift" for flag in row.flags)]
    if drifting or record.flags:
        where = ", ".join(drifting) or "the course of the run"
        yield f"Times drifted in {where}: heat, or other work on the machine."
    lowered = [f"{row.id} ({row.lowered[-1].partition(':')[0]})" for row in record.rows if row.lowered]
    if lowered:
        yield f"Memory was short, so batches were lowered: {', '.join(lowered)}."
    yield ANNOUNCEMENT


def _spoken(record: BenchmarkRecord) -> str:
    parts = [
        f"{_SHORT[name]} {title.lower()} {row.ratio.median:.3g} times"
        for mode, title in _PANELS
        for name in _NAMES
        if (row := record.row(f"{name}:{mode}")) is not None and row.ratio is not None
    ]
    return f"Times faster than the CPU: {', '.join(parts) or 'nothing was measured'}. {record.statement}"


def _top_of(record: BenchmarkRecord) -> float:
    """Return the end of the scale: above every bar; a whisker of double its height is cut there."""
    drawn = [row for row in record.rows if row.name in _NAMES and row.mode != "kernel" and row.ratio is not None]
    highest = max([min(row.ratio.high, 2 * row.ratio.median) for row in drawn if row.ratio], default=1.0)
    return max(highest * 1.12, 2.0)


def _ticks(top: float) -> list[float]:
    """Return round numbers from 0 up.

    >>> _ticks(7.3)
    [0.0, 2.0, 4.0, 6.0]
    """
    rough = top / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(each * power for each in (1, 2, 5, 10) if each * power >= rough * 0.999)
    return [step * number for number in range(int(top / step) + 1)]
