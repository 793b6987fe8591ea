"""Text of strangers (file names, METADATA, what tools said) as a terminal, a log, Markdown or HTML may have it.

One function for each, which every report uses: `shown`, `in_markdown` (or `in_code`, `code_block`), `in_html`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from urllib.parse import quote

# GitHub takes a line for a command if it begins with `::name` behind blanks, or holds `##[` anywhere.
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|(##)(?=\[)")
_LAYOUT = frozenset("\n\t")
# What makes a text bold or struck through, a link, a picture or a cell; `_` within a word does not.
_ESCAPED = re.compile(r"[\\*\[\]|]|~~|(?<![^\W_])_|_(?![^\W_])")
# What makes a line a heading, a quotation, a list or a rule.
_BLOCK = re.compile(r"^(?:(\d{1,9})(?=[.)](?: |$))|(?=#{1,6}(?: |$)|>|[-+](?: |$)|--|=))")
# `&#64;` would be a mention: GitHub looks for them in the text that a reader sees. What parts them is invisible there.
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])")
_OF_ADDRESSES = "/:?#@!$&'*+,;=%~-._"
_EDGE = re.compile(r"(?<!\\)((?:\\\\)*)\|")


def plain(text: str) -> str:
    """Return the text with characters that show nothing or steer what shows them as escapes; lines and tabs stay.

    That is: escape sequences, C0 and C1 controls, bidirectional marks, invisible characters, separators, surrogates.

    >>> plain("a\\x1b[2Jb\\u202ec")
    'a\\\\x1b[2Jb\\\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in _LAYOUT else ascii(each)[1:-1] for each in text)


def shown(text: str) -> str:
    """Return the text as it may be printed: plain, and no line that GitHub takes for a command of the workflow.

    >>> shown("::set-env name=A::b")
    ': :set-env name=A::b'
    """
    return disarmed(plain(text))


def disarmed(text: str) -> str:
    """Return the text with a blank in whatever GitHub takes for a command of the workflow."""
    return _COMMAND.sub(lambda match: "## " if match[2] else f"{match[1]}: ", text)


def in_html(text: str) -> str:
    """Return the text for HTML or SVG, between tags or in an attribute; secrets are taken out.

    >>> in_html("<b> & 'c'")
    '&lt;b&gt; &amp; &#x27;c&#x27;'
    """
    return escape(plain(_public(text)))


def html_link(address: str, inner: str) -> str:
    """Return HTML as a link, if the address is one of the web; else as it is."""
    return f'<a href="{in_html(address)}">{inner}</a>' if _is_of_the_web(address) else inner


class Markdown(str):
    """A text that is Markdown already, written by the functions below; any other `str` is taken for a text."""

    __slots__ = ()


def in_markdown(text: str) -> Markdown:
    """Return the text for a line or a cell of Markdown; secrets are taken out.

    That is: no tag, no table's edge, no mention, no link or picture, no block, nothing in bold or as code.

    >>> in_markdown("a | <b> @all `c` [d](e) __f__ g_h")
    "a \\\\| &lt;b> @&#8203;all 'c' \\\\[d\\\\](e) \\\\_\\\\_f\\\\_\\\\_ g_h"
    """
    line = _ESCAPED.sub(r"\\\g<0>", _one_line(text))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace("`", "'")
    return Markdown(_BLOCK.sub(r"\g<1>\\", _MENTION.sub("@&#8203;", line), count=1))


def with_code(text: str) -> Markdown:
    """Return a sentence of ours for a line of Markdown: what stands in backquotes stays code, the rest is text.

    >>> with_code("run `a <b>` on <c>")
    'run `a <b>` on &lt;c>'
    """
    parts = _one_line(text).split("`")
    if len(parts) % 2 == 0:
        return in_markdown(text)
    line = "`".join(part if number % 2 else _middle(part) for number, part in enumerate(parts))
    return Markdown(_BLOCK.sub(r"\g<1>\\", line, count=1))


def in_code(text: str) -> Markdown:
    """Return the text as code within a line of Markdown.

    >>> in_code("a`b")
    "`a'b`"
    """
    line = _one_line(text).replace("`", "'")
    return Markdown(f"`{line}`" if line else "")


def code_block(text: str, language: str = "") -> Markdown:
    """Return the text as a block of code, which it cannot close; secrets are taken out.

    >>> code_block("a ``` b").split("\\n")
    ['````', 'a ``` b', '````']
    """
    text = plain(_public(text))
    return Markdown(f"{fence_of(text)}{language}\n{text}\n{fence_of(text)}")


def markdown_link(text: str, address: str) -> Markdown:
    """Return Markdown, or a text, as a link, if the address is one of the web.

    >>> markdown_link("a", "https://example.org/b(c)"), markdown_link("a", "javascript:b()")
    ('[a](https://example.org/b%28c%29)', 'a')
    """
    inner = text if isinstance(text, Markdown) else in_markdown(text)
    if not _is_of_the_web(address):
        return inner
    return Markdown(f"[{inner}]({quote(plain(_public(address)), safe=_OF_ADDRESSES)})")


def fence_of(text: str) -> str:
    """Return a fence for a block of Markdown that the text cannot close.

    >>> fence_of("a ``` b")
    '````'
    """
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table of texts and of Markdown; no cell can end its cell or its row.

    >>> markdown_table(("a", "b"), [("x|y", Markdown("**1**\\n2"))])
    ['| a | b |', '| --- | --- |', '| x\\\\|y | **1** 2 |']
    """
    lines = [columns, [Markdown("---")] * len(columns), *rows]
    return [f"| {' | '.join(map(_cell, cells))} |" for cells in lines]


def _cell(text: str) -> str:
    cell = text if isinstance(text, Markdown) else in_markdown(text)
    return _EDGE.sub(r"\1\|", " ".join(plain(cell).split()))


def _middle(text: str) -> str:
    """Return a text as it stands between two others: with its blanks, and with no block to begin."""
    return in_markdown(f".{text}.")[1:-1] if text else ""


def _one_line(text: str) -> str:
    return " ".join(plain(_public(text)).split())


def _public(text: str) -> str:
    from .scrubbing.scrubber import without_secrets

    public: str = without_secrets(text)
    return public


def _is_of_the_web(address: str) -> bool:
    return address.startswith(("https://", "http://"))
