"""Pages and pictures that need nothing else: HTML without a network, and drawings as SVG or, with Pillow, as PNG."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from .errors import UsageError
from .interpreters import line_that_adds
from .plain_text import in_html, plain

# Lengths of bars and their colours are attributes; what else an attribute could style is not let through.
_STYLE = re.compile(r'style="((?:(?:left|width|flex|background):#?[\w.]+%?;?)+)"')


def whole_page(title: str, body: str, *, css: str = "", script: str = "", footer: str = "") -> str:
    """Return the HTML document around a body; `page.js` sorts, filters and folds its tables.

    Its policy lets the browser use this style sheet and these scripts, and nothing else that the body might hold.

    Args:
        script: what runs besides, before `page.js`.
    """
    here = Path(__file__)
    style = "\n" + here.with_name("page.css").read_text(encoding="utf-8") + css
    scripts = ["\n" + each for each in (script, here.with_name("page.js").read_text(encoding="utf-8")) if each]
    foot = f"<footer>{in_html(footer)}</footer>\n" if footer else ""
    # Names of strangers: what steers a reader is shown, not sent.
    body = plain(body)
    policy = content_policy(styles=[style, *dict.fromkeys(_STYLE.findall(body))], scripts=scripts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{policy}\n'
        f"<title>{in_html(title)}</title>\n"
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n{foot}</main>\n"
        + "".join(f"<script>{each}</script>\n" for each in scripts)
        + "</body>\n</html>\n"
    )


def content_policy(*, styles: Iterable[str] = (), scripts: Iterable[str] = ()) -> str:
    """Return the element that forbids a page all but these style sheets, style attributes and scripts.

    https://developer.mozilla.org/en-US/docs/Web/HTTP/Guides/CSP
    """
    sheets, programs = (" ".join(map(_source, each)) for each in (styles, scripts))
    parts = ["default-src 'none'", "base-uri 'none'", "form-action 'none'"]
    parts += [f"style-src 'unsafe-hashes' {sheets}"] if sheets else []
    parts += [f"script-src {programs}"] if programs else []
    return f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(parts)}">'


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def section(title: str, content: str, aside: str = "") -> str:
    """Return a part of a page under its heading; `content` is HTML, the other two are texts."""
    small = f" <small>{in_html(aside)}</small>" if aside else ""
    return f"<section><h2>{in_html(title)}{small}</h2>{content}</section>"


def table(
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    name: str = "",
    numbers: Collection[str] = (),
    marks: Collection[str] = (),
) -> str:
    """Return a table of whole `<tr>` elements under their headings.

    Args:
        numbers: the columns that stand to the right. marks: those of a character or two, as wide as that.
    """
    kinds = {**dict.fromkeys(numbers, "number"), **dict.fromkeys(marks, "mark")}
    head = "".join(f"<th{f' class={kinds[each]}' if each in kinds else ''}>{in_html(each)}</th>" for each in columns)
    identity = f' id="{name}"' if name else ""
    body = "\n".join(rows)
    return f'<div class="wide"><table{identity}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


FONT = "system-ui, -apple-system, 'Helvetica Neue', Arial, sans-serif"
PAPER = "#ffffff"
_SCALE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A filled rectangle; with `dashed`, only its outline."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    radius: float = 0.0
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Text on its baseline."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    anchor: Literal["start", "middle", "end"] = "start"
    bold: bool = False


Mark = Box | Line | Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn, in order, on white; `title` is said by screen readers."""

    width: int
    height: int
    title: str
    marks: Sequence[Mark]


def to_svg(picture: Picture) -> str:
    """Return the picture as an SVG document that needs nothing else."""
    marks = "\n".join(_svg_mark(mark) for mark in picture.marks)
    size = f'width="{picture.width}" height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">\n'
        f"<title>{in_html(picture.title)}</title>\n"
        f'<rect width="{picture.width}" height="{picture.height}" fill="{PAPER}"/>\n{marks}\n</svg>\n'
    )


def _svg_mark(mark: Mark) -> str:
    if isinstance(mark, Box):
        place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" width="{mark.width:.1f}" height="{mark.height:.1f}"'
        paint = (
            f'fill="none" stroke="{mark.colour}" stroke-width="1.5" stroke-dasharray="5 4"'
            if mark.dashed
            else f'fill="{mark.colour}"'
        )
        return f'<rect {place} rx="{mark.radius:g}" {paint}/>'
    if isinstance(mark, Line):
        ends = f'x1="{mark.x1:.1f}" y1="{mark.y1:.1f}" x2="{mark.x2:.1f}" y2="{mark.y2:.1f}"'
        dashes = ' stroke-dasharray="5 4"' if mark.dashed else ""
        return f'<line {ends} stroke="{mark.colour}" stroke-width="{mark.width:g}"{dashes}/>'
    weight = ' font-weight="600"' if mark.bold else ""
    place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" font-size="{mark.size:g}" text-anchor="{mark.anchor}"'
    return f'<text {place} fill="{mark.colour}"{weight}>{in_html(mark.text)}</text>'


def check_pillow() -> None:
    """Refuse a PNG where nothing can draw it.

    Raises:
        UsageError: Pillow is not installed.
    """
    if find_spec("PIL") is None:
        raise UsageError(
            "--png needs Pillow, which is not installed",
            hint=f"{line_that_adds('pillow>=10.1')}, or take --svg",
        )


def to_png(picture: Picture) -> bytes:
    """Return the picture as PNG, two times as many pixels as its size says.

    Raises:
        UsageError: Pillow is not installed.
    """
    check_pillow()
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (picture.width * _SCALE, picture.height * _SCALE), PAPER)
    draw = ImageDraw.Draw(image)
    for mark in picture.marks:
        if isinstance(mark, Box):
            _png_box(draw, mark)
        elif isinstance(mark, Line):
            _png_line(draw, mark.x1, mark.y1, mark.x2, mark.y2, mark.colour, mark.width, dashed=mark.dashed)
        else:
            _png_words(draw, mark)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


def _png_box(draw: Any, box: Box) -> None:
    left, top = box.x, box.y
    right, bottom = box.x + box.width, box.y + box.height
    if not box.dashed:
        corners = [value * _SCALE for value in (left, top, right, bottom)]
        draw.rounded_rectangle(corners, radius=min(box.radius, box.height / 2) * _SCALE, fill=box.colour)
        return
    for ends in ((left, top, right, top), (right, top, right, bottom), (right, bottom, left, bottom)):
        _png_line(draw, *ends, box.colour, 1.5, dashed=True)
    _png_line(draw, left, bottom, left, top, box.colour, 1.5, dashed=True)


def _png_line(
    draw: Any, x1: float, y1: float, x2: float, y2: float, colour: str, width: float, *, dashed: bool
) -> None:
    length = max(abs(x2 - x1), abs(y2 - y1), 1e-9)
    dash, gap = (5.0, 4.0) if dashed else (length, 1.0)
    begin = 0.0
    while begin < length:
        end = min(begin + dash, length)
        ends = [
            (_SCALE * (x1 + (x2 - x1) * share), _SCALE * (y1 + (y2 - y1) * share))
            for share in (begin / length, end / length)
        ]
        draw.line(ends, fill=colour, width=max(1, round(width * _SCALE)))
        begin = end + gap


def _png_words(draw: Any, words: Words) -> None:
    from PIL import ImageFont

    font = ImageFont.load_default(size=words.size * _SCALE)  # the one that Pillow carries: no machine lacks it
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[words.anchor]
    stroke = 0.6 if words.bold else 0
    draw.text(
        (words.x * _SCALE, words.y * _SCALE),
        words.text.replace("×", "x"),  # Pillow's own font has no times sign
        fill=words.colour,
        font=font,
        anchor=anchor,
        stroke_width=stroke,
        stroke_fill=words.colour,
    )
