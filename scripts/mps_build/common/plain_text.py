"""Text of strangers (file names, METADATA, what tools said) as a terminal, a log or Markdown may have it."""

from __future__ import annotations

import re

# GitHub takes a line for a command if it begins with `::name` behind blanks, or holds `##[` anywhere.
# https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)|(##)(?=\[)")
_LAYOUT = frozenset("\n\t")


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
    return _COMMAND.sub(lambda match: "## " if match[2] else f"{match[1]}: ", plain(text))


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
