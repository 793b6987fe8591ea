"""The frame of a page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .plain_text import plain


def whole_page(title: str, body: str, *, css: str = "", footer: str = "") -> str:
    """Return the HTML document around a body; `page.js` filters a table called `cases`, where there is one."""
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
