"""The frame and the parts of a page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

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


def table(columns: Sequence[str], rows: Sequence[str], *, name: str = "", numbers: Collection[str] = ()) -> str:
    """Return a table of whole `<tr>` elements under their headings; the columns of `numbers` stand to the right."""
    head = "".join(f"<th{' class=number' if each in numbers else ''}>{in_html(each)}</th>" for each in columns)
    identity = f' id="{name}"' if name else ""
    body = "\n".join(rows)
    return f'<div class="wide"><table{identity}><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'
