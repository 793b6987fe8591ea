"""Holds documents against what they must keep to: JSON to its schema, pages and pictures to strict parsers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import html5lib
from html5lib.html5parser import ParseError
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

SCHEMAS = Path(__file__).parents[3] / "schemas"


@cache
def _validator(name: str) -> Any:
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")))


def faults(document: Any) -> list[str]:
    """Return what is wrong with a document; it must name its schema and the version that wrote it."""
    named = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(named, str) or not named.startswith("mps-build/") or not document.get("tool_version"):
        return [f"names no schema, or no tool_version: {str(document)[:200]}"]
    if not (SCHEMAS / f"{named.split('/')[1]}.schema.json").is_file():
        return [f"{named} has no file in schemas/"]
    found = _validator(named.split("/")[1]).iter_errors(json.loads(json.dumps(document, default=str)))
    return [f"{named}: {'.'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in found]


# GitHub's Markdown: tables, and HTML as it stands.
_MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# A name that is not here is a slip of ours: parsers take any.
_NAMES = """
html head meta title style body main header footer section h1 h2 h3 h4 p a b i em strong code pre ul ol li dl dt dd
div span table thead tbody tr th td details summary input label select option button br hr small figure figcaption
img script svg g rect line text tspan path circle polyline desc del blockquote time sub sup caption nav link
"""
_ELEMENTS = frozenset(_NAMES.split())


def html_fault(text: str, *, is_part: bool = False) -> str | None:
    """Return what is wrong with a page, or with a part of one; None if nothing is."""
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    try:
        tree = parser.parseFragment(text) if is_part else parser.parse(text)
    except ParseError as error:
        line, column = parser.errors[0][0]
        near = [*text.splitlines(), ""][line - 1][max(column - 60, 0) : column + 20]
        return f"line {line}: {error}: {near!r}"
    names = {str(each.tag).rpartition("}")[2].lower() for each in tree.iter() if isinstance(each.tag, str)}
    strange = names - _ELEMENTS - {"document_fragment", ""}
    return f"no such element: {', '.join(sorted(strange))}" if strange else None


def markdown_fault(text: str) -> str | None:
    """Return what is wrong with a Markdown text: its HTML, or a table that the reader does not see as one."""
    tokens = _MARKDOWN.parse(text)
    # Where the text has no HTML of its own, all of it is the renderer's.
    if any(part.type.startswith("html") for each in tokens for part in (each, *(each.children or []))):
        fault = html_fault(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}), is_part=True)
        if fault is not None:
            return fault
    code = {line for each in tokens if each.type in ("fence", "code_block") and each.map for line in range(*each.map)}
    tables = {line for each in tokens if each.type == "table_open" and each.map for line in range(*each.map)}
    for number, line in enumerate(text.splitlines()):
        if re.fullmatch(r"\|(?: ?:?-+:? ?\|)+", line) and number not in tables | code:
            return f"line {number + 1}: is the head of a table that is not one"
    return None


def rendered(text: str) -> str:
    """Return a Markdown text as HTML."""
    return str(_MARKDOWN.render(text))


def what_acts(html: str, *, is_part: bool = False) -> list[str]:
    """Return what in a page, or in a part of one, does more than to be read.

    That is: a picture, a frame, a form; a handler; a link that is not of the web; a mention outside of code; a script
    or a style sheet that the page's own policy does not name.
    """
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parseFragment(html) if is_part else parser.parse(html)
    found = []
    policy = " ".join(str(each.get("content")) for each in tree.iter("meta") if each.get("http-equiv"))
    for each in tree.iter():
        name = str(each.tag).rpartition("}")[2]
        if name in ("img", "image", "iframe", "object", "embed", "form", "video", "audio", "base", "link"):
            found.append(f"<{name}>")
        if name in ("script", "style") and _digest(each.text or "") not in policy:
            found.append(f"<{name}> {(each.text or '')[:40]!r}")
        for key, value in each.attrib.items():
            is_link = str(key).rpartition("}")[2] in ("href", "src")
            if str(key).startswith("on") or (is_link and not re.match(r"https?://|[\w.%+/-]*(#sha256=\w+)?$", value)):
                found.append(f"{key}={value!r}")
            if key == "style" and _digest(value) not in policy:
                found.append(f"{key}={value!r}")
    if is_part:
        texts = re.sub(r"(?s)<(code|pre)\b.*?</\1>", "", html)
        found += re.findall(r"(?<![\w])@\w+", html5lib_text(texts))
    return found


def html5lib_text(html: str) -> str:
    """Return what a reader sees of a part of a page."""
    return "".join(html5lib.parseFragment(html, namespaceHTMLElements=False).itertext())


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def svg_fault(text: str) -> str | None:
    """Return what is wrong with a picture."""
    try:
        ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        return str(error)
    return None
