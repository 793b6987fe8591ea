"""The frame and the parts of a page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path

from .plain_text import plain


def whole_page(title: str, body: str, *, css: str = "", footer: str = "") -> str:
    """Return the HTML document around a body; `page.js` sorts, filters and folds its tables."""
    here = Path(__file__)
    style = here.with_name("page.css").read_text(encoding="utf-8") + css
    script = here.with_name("page.js").read_text(encoding="utf-8")
    foot = f"<footer>{escape(footer)}</footer>\n" if footer else ""
    # Names of strangers: what steers a reader is shown, not sent.
    body, title = plain(body), plain(title)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n{foot}</main>\n"
        f"<script>\n{script}</script>\n</body>\n</html>\n"
    )


def section(title: str, content: str, aside: str = "") -> str:
    """Return a part of a page under its heading; `content` is HTML, the other two are texts."""
    small = f" <small>{escape(aside)}</small>" if aside else ""
    return f"<section><h2>{escape(title)}{small}</h2>{content}</section>"


def table(columns: Sequence[str], rows: Sequence[str], *, name: str = "", numbers: Collection[str] = ()) -> str:
    """Return a table of whole `<tr>` elements under their headings; the columns of `numbers` stand to the right."""
    head = "".join(f"<th{' class=number' if each in numbers else ''}>{escape(each)}</th>" for each in columns)
    identity = f' id="{name}"' if name else ""
    body = "\n".join(rows)
    return f'<div class="wide"><table{identity}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
