"""Text of strangers (file names, METADATA, what tools said) as a terminal, a log or Markdown may have it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# GitHub takes a line for a command if it begins with `::name` behind blanks, or holds `##[` anywhere.
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|(##)(?=\[)")
_LAYOUT = frozenset("\n\t")
_EDGE = re.compile(r"(?<!\\)((?:\\\\)*)\|")


def plain(text: str) -> str:
    """Return the text with every letter that shows nothing or steers what shows it as an escape; lines and tabs stay.

    That is: escape sequences, C0 and C1 controls, bidirectional marks, invisible letters, separators, surrogates.

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


def fence_of(text: str) -> str:
    """Return a fence for a block of Markdown that the text cannot close.

    >>> fence_of("a ``` b")
    '````'
    """
    return "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))


def in_markdown(text: str) -> str:
    """Return the text for a line or a cell of Markdown: no tag, no table's edge, no mention, no block of code.

    >>> in_markdown("a | <b> @all `c`")
    "a \\\\| &lt;b> &#64;all 'c'"
    """
    line = " ".join(plain(text).split())
    return line.replace("&", "&amp;").replace("<", "&lt;").replace("@", "&#64;").replace("|", "\\|").replace("`", "'")


def with_code(text: str) -> str:
    """Return a sentence of ours for a line of Markdown: what stands in backquotes stays code, the rest is text.

    >>> with_code("run `a <b>` on <c>")
    'run `a <b>` on &lt;c>'
    """
    parts = " ".join(plain(text).split()).split("`")
    if len(parts) % 2 == 0:
        return in_markdown(text)
    return "`".join(part if number % 2 else in_markdown(f".{part}.")[1:-1] for number, part in enumerate(parts))


def in_code(text: str) -> str:
    """Return the text as code within a line of Markdown.

    >>> in_code("a`b")
    "`a'b`"
    """
    return f"`{' '.join(plain(text).split()).replace('`', chr(39))}`"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown; none of them can end its cell or its row.

    >>> markdown_table(("a", "b"), [("x|y", "1\\n2")])
    ['| a | b |', '| --- | --- |', '| x\\\\|y | 1 2 |']
    """
    lines = [columns, ("---",) * len(columns), *rows]
    return [f"| {' | '.join(map(_cell, cells))} |" for cells in lines]


def _cell(text: str) -> str:
    return _EDGE.sub(r"\1\|", " ".join(plain(text).split()))
