"""Objective-C++ as text: without comments and literals, as nested blocks, as statements. Pure."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass

_SKIP = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\"]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Block:
    """What stands between two braces; `start` is that of the opening one, `head` begins the statement it belongs to."""

    head: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Source:
    """A file's text with comments and literals blanked, character by character, and its blocks, outermost first."""

    text: str
    blocks: tuple[Block, ...]
    line_starts: tuple[int, ...]

    def offset(self, line: int, column: int) -> int:
        """Return the place of a line and column, both from 1."""
        return self.line_starts[min(line, len(self.line_starts)) - 1] + column - 1

    def line(self, offset: int) -> int:
        """Return the line, from 1, of an offset into the text."""
        return bisect.bisect_right(self.line_starts, offset)

    def around(self, offset: int) -> list[Block]:
        """Return the blocks that a place lies in, innermost first."""
        return [block for block in reversed(self.blocks) if block.start < offset < block.end]


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def blanked(text: str) -> str:
    """Return the text with comments, literals and preprocessor lines as blanks of the same length.

    >>> blanked('a /* { */ = "}";')
    'a         =    ;'
    """

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    return _DIRECTIVE.sub(blank, _SKIP.sub(blank, text))


def read_source(text: str) -> Source:
    """Return the structure of a file's text."""
    clean = blanked(text)
    opened: list[int] = []
    blocks = []
    for place, sign in enumerate(clean):
        if sign == "{":
            opened.append(place)
        elif sign == "}" and opened:
            start = opened.pop()
            blocks.append(Block(_head(clean, start), start, place))
    starts = (0, *(match.end() for match in re.finditer("\n", text)))
    return Source(clean, tuple(sorted(blocks, key=lambda block: block.start)), starts)


def _head(text: str, brace: int) -> int:
    """Return where the statement of a block begins: behind the last `;`, `{` or `}` outside of parentheses."""
    depth, place = 0, brace - 1
    while place >= 0:
        sign = text[place]
        if sign in ")]":
            depth += 1
        elif sign in "([":
            if not depth:
                return place + 1
            depth -= 1
        elif sign in ";{}" and not depth:
            return place + 1
        place -= 1
    return 0


def closing(text: str, start: int) -> int:
    """Return the place of the sign that closes the parenthesis at `start`, or the text's end."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] in _OPEN:
            depth += 1
        elif text[place] in _CLOSE:
            depth -= 1
            if not depth:
                return place
    return len(text)


def split(text: str, separator: str) -> list[str]:
    """Return the parts between a separator that stands outside of all parentheses.

    >>> split("f(a, b), c", ",")
    ['f(a, b)', ' c']
    """
    parts, depth, last = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in _OPEN) - (sign in _CLOSE)
        if not depth and text.startswith(separator, place) and place >= last:
            parts.append(text[last:place])
            last = place + len(separator)
    return [*parts, text[last:]]


def statements(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the statements between two places of one block, each with its own blocks, as (start, end)."""
    found, begin, place = [], start, start
    while place < end:
        sign = text[place]
        if sign in "([":
            place = closing(text, place)
        elif sign == "{":
            place = closing(text, place)
            after = text[place + 1 : end].lstrip()[:1]
            if after not in (";", ",", ")", ".", "(") and text[begin:place].strip():
                found.append((begin, place + 1))
                begin = place + 1
        elif sign == ";":
            found.append((begin, place + 1))
            begin = place + 1
        place += 1
    return [(one, two) for one, two in found if text[one:two].strip()]
