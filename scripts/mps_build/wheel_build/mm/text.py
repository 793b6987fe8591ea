"""Objective-C++ as text: without comments and literals, as nested blocks, as statements. Pure."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .diagnostics import Said

_SKIP = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s\\"]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
_OPEN, _CLOSE = "([{", ")]}"
_FOR = re.compile(r"\bfor\s*\(")
_IN = re.compile(r"\bin\b")
_NAME = re.compile(r"(?:^|[\s*&>])([A-Za-z_]\w*)\s*$")
_FITS = re.compile(r"requirement '(?:\w+::)*mps_build_fits<(?P<types>.*)>'")
_BAD = re.compile(r"bad receiver type '(?P<type>.*)'")
_OURS = "mps_build_"


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


# `for (T x in collection)`: clang compares T with nothing, so the loop's head is made to ask.
#
# A copy of the file is compiled in the file's name. In it each loop's collection stands in a statement expression that
# also asks whether T and the elements are related (`mps_build_fits`, in the declarations of Foundation): one must
# convert to the other, so that an object of a subclass may be taken out of a collection of its superclass, as on a
# Mac. Pure.


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file's text with questions in its loops; `added` is line -> (column in bytes, from 0; length) of each."""

    text: str
    added: dict[int, list[tuple[int, int]]]

    def said(self, each: Said) -> Said | None:
        """Return what was said of the copy as of the file itself; None for words about our own question."""
        column, is_ours = self._column(each.line, each.column)
        each = replace(each, column=column)
        if not is_ours:
            return each
        if fits := _FITS.search(each.text):
            loop, elements = _two(fits["types"])
            text = f"the loop's variable is '{loop}', the elements of the collection are '{elements}'"
            return replace(each, kind="error", text=text, flag="", notes=())
        if bad := _BAD.search(each.text):
            return replace(each, text=f"'{bad['type']}' is not a collection of Objective-C", notes=())
        return None if _OURS in each.text else each

    def _column(self, line: int, column: int) -> tuple[int, bool]:
        shift = 0
        for at, length in self.added.get(line, ()):
            if column - 1 < at + shift:
                break
            if column - 1 < at + shift + length:
                return at + 1, True
            shift += length
        return column - shift, False


def with_questions(text: str) -> Rewritten | None:
    """Return the text with a question in each loop over a collection; None if it has no such loop.

    >>> with_questions("for (NSString* x in all) {}").text.count("mps_build_fits<NSString*,")
    1
    >>> with_questions("for (int i = 0; i < n; i++) {}") is None
    True
    """
    parts: list[str] = []
    added: dict[int, list[tuple[int, int]]] = {}
    last = 0
    for place, words in sorted(_questions(blanked(text))):
        parts += [text[last:place], words]
        line_start = text.rfind("\n", 0, place) + 1
        column = len(text[line_start:place].encode("utf-8", "surrogateescape"))
        added.setdefault(text.count("\n", 0, place) + 1, []).append((column, len(words)))
        last = place
    return Rewritten("".join([*parts, text[last:]]), added) if parts else None


def _questions(clean: str) -> Iterator[tuple[int, str]]:
    for match in _FOR.finditer(clean):
        start, end = match.end(), closing(clean, match.end() - 1)
        place = _top_level_in(clean, start, end)
        head = clean[start:place].strip() if place else ""
        name = _NAME.search(head)
        if not place or not name or ";" in clean[start:end]:
            continue
        type_ = head[: name.start(1)].strip() or f"decltype({name[1]})"
        if re.search(r"\bauto\b", type_):
            continue
        begin = place + len("in")
        yield begin, " ({ auto mps_build_all = ("
        element = "decltype([mps_build_all mps_build_element])"
        yield end, f'); static_assert(mps_build_fits<{type_}, {element}>, ""); mps_build_all; }})'


def _top_level_in(clean: str, start: int, end: int) -> int | None:
    depth, place = 0, start
    for match in _IN.finditer(clean, start, end):
        part = clean[place : match.start()]
        depth += sum(part.count(sign) for sign in "([{<") - sum(part.count(sign) for sign in ")]}>")
        place = match.start()
        if not depth:
            return match.start() if clean[match.end() : end].strip()[:1] not in ("", ":", "=", ",", ")") else None
    return None


def _two(types: str) -> tuple[str, str]:
    """Return the two template arguments as the compiler printed them.

    >>> _two("NSString *, NSArray<NSNumber *> *")
    ('NSString *', 'NSArray<NSNumber *> *')
    """
    depth = 0
    for place, sign in enumerate(types):
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            return types[:place], types[place + 1 :].strip()
    return types, "?"
