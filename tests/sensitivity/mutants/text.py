"""Objective-C++ as text, its comments, strings and preprocessor lines masked: enough to find calls, statements."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Iterator, NamedTuple

_OPEN, _CLOSE = "([{", ")]}"
_TOKENS = re.compile(
    r"""//[^\n]*"""
    r"""|/\*.*?\*/"""
    r"""|R"(?P<tag>\w*)\(.*?\)(?P=tag)\""""
    r"""|"(?:\\.|[^"\\\n])*\""""
    r"""|(?<![\w])'(?:\\.|[^'\\\n])+'"""
    r"""|^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


class Span(NamedTuple):
    """A part of a text: from `start` to before `end`."""

    start: int
    end: int


def mask(text: str) -> str:
    """Return the text with blanks for what is not code; the quotes of strings stay, and so does every place.

    >>> mask('f("a,b"); // c')
    'f("   ");     '
    """

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        if whole[0] in "\"'" or whole.startswith("R"):
            return '"' + re.sub(r"[^\n]", " ", whole[1:-1]) + '"'
        return re.sub(r"[^\n]", " ", whole)

    return _TOKENS.sub(blank, text)


@dataclass(frozen=True)
class Text:
    """A host file: its text, and what of it is code."""

    whole: str

    @cached_property
    def code(self) -> str:
        """The masked text."""
        return mask(self.whole)

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """The places of brackets, each to the one that closes or opens it."""
        found: dict[int, int] = {}
        waiting: list[int] = []
        for place, character in enumerate(self.code):
            if character in _OPEN:
                waiting.append(place)
            elif character in _CLOSE and waiting:
                found[place] = waiting.pop()
                found[found[place]] = place
        return found

    def closing(self, place: int) -> int | None:
        """Return where the bracket closes that opens at a place."""
        return self._pairs.get(place)

    def opening(self, place: int) -> int | None:
        """Return where the bracket opens that closes at a place."""
        return self._pairs.get(place)

    def line(self, place: int) -> int:
        """Return the line of a place, from 1."""
        return self.whole.count("\n", 0, place) + 1

    def find(self, pattern: str) -> Iterator[re.Match[str]]:
        """Yield the matches of a pattern in the code."""
        yield from re.finditer(pattern, self.code)

    def parts(self, inside: Span, separator: str) -> list[Span]:
        """Return what a separator divides, without what lies in brackets; blanks at the edges are left out.

        >>> text = Text("f(a, g(b, c), d)")
        >>> [text.whole[one.start : one.end] for one in text.parts(Span(2, 15), ",")]
        ['a', 'g(b, c)', 'd']
        """
        cuts, place = [inside.start - 1], inside.start
        while place < inside.end:
            if self.code[place] in _OPEN and place in self._pairs:
                place = self._pairs[place]
            elif self.code.startswith(separator, place):
                cuts.append(place)
            place += 1
        cuts.append(inside.end)
        return [self._stripped(Span(one + 1, other)) for one, other in zip(cuts, cuts[1:])]

    def arguments(self, opening: int) -> list[Span]:
        """Return the arguments of the call whose bracket opens at a place; none where it is empty or does not close."""
        closing = self.closing(opening)
        if closing is None or not self.code[opening + 1 : closing].strip():
            return []
        return self.parts(Span(opening + 1, closing), ",")

    def message_argument(self, place: int) -> Span | None:
        """Return the argument of a message's keyword, from behind its colon to the next keyword or the end.

        >>> text = Text("[g castTensor:x.y toType:t name:n]")
        >>> text.message_argument(14)
        Span(start=14, end=17)
        """
        at, end = place, len(self.code)
        while at < end:
            character = self.code[at]
            if character in _OPEN and at in self._pairs:
                at = self._pairs[at] + 1
                continue
            if character in _CLOSE or character == ";":
                return self._stripped(Span(place, at)) if character == "]" else None
            if (
                character.isspace()
                and re.match(r"\s+\w+:(?!:)", self.code[at : at + 120])
                and self.code[place:at].strip()
            ):
                return self._stripped(Span(place, at))
            at += 1
        return None

    def receiver_start(self, end: int) -> int | None:
        """Return where the expression begins that ends before a place: names, members, calls, subscripts.

        >>> Text("y = a.b(c)->d[0].to(k)").receiver_start(16)
        4
        """
        place = end
        while place > 0:
            character = self.code[place - 1]
            if character in _CLOSE:
                opened = self._pairs.get(place - 1)
                if opened is None:
                    return None
                place = opened
            elif self.code[place - 2 : place] in ("->", "::"):
                place -= 2
            elif character.isalnum() or character in "_.":
                place -= 1
            else:
                break
        return place if place < end else None

    def statement(self, place: int) -> Span | None:
        """Return the statement that begins at a place, with its semicolon."""
        at = place
        while at < len(self.code):
            if self.code[at] in _OPEN and at in self._pairs:
                at = self._pairs[at]
            elif self.code[at] == ";":
                return Span(place, at + 1)
            elif self.code[at] in _CLOSE:
                return None
            at += 1
        return None

    def starts_statement(self, place: int) -> bool:
        """Say whether what stands at a place is the first word of a statement."""
        before = self.code[:place].rstrip()
        return (bool(before) and before[-1] in ";{}") or bool(re.search(r"\b(else|do)$|^\s*$", before[-8:]))

    def _stripped(self, span: Span) -> Span:
        inside = self.code[span.start : span.end]
        return Span(span.start + len(inside) - len(inside.lstrip()), span.end - len(inside) + len(inside.rstrip()))
