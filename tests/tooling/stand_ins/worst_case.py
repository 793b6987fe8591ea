"""The worst texts for a regular expression, made from the expression itself: beginnings of a match, again and again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:  # pragma: no cover
    import sre_constants as sre
    import sre_parse as parser

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, *((sre.POSSESSIVE_REPEAT,) if hasattr(sre, "POSSESSIVE_REPEAT") else ()))
_FIRST = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


def attacks(pattern: str, flags: int = 0) -> tuple[str, ...]:
    """Return short texts whose repetition makes an expression work hardest: what comes before each of its repeats,
    with the repeat's own body many times, and the bodies alone.
    """
    found = dict.fromkeys(_attacks(list(parser.parse(pattern, flags)), ""))
    return tuple(text for text in found if text)


def _attacks(items: list[Any], before: str) -> Iterator[str]:
    for operator, argument in items:
        if operator in _REPEATS:
            _, most, body = argument
            once = _least(list(body)) or "a"
            if most > 1:
                yield from (before, before + once * min(most, 60), before + once * min(most, 5000), once)
                yield once * min(most, 5000) + "!"
            yield from _attacks(list(body), before)
        elif operator is sre.SUBPATTERN:
            yield from _attacks(list(argument[-1]), before)
        elif operator is sre.BRANCH:
            for branch in argument[1]:
                yield from _attacks(list(branch), before)
        before += _least([(operator, argument)])
    yield before


def _least(items: list[Any]) -> str:
    """Return a short text that matches, as far as that is easily told."""
    text = ""
    for operator, argument in items:
        if operator is sre.LITERAL:
            text += chr(argument)
        elif operator is sre.NOT_LITERAL:
            text += "a" if argument != ord("a") else "b"
        elif operator is sre.ANY:
            text += "a"
        elif operator is sre.IN:
            text += _one_of(list(argument))
        elif operator in _REPEATS:
            text += _least(list(argument[2])) * max(argument[0], 0)
        elif operator is sre.SUBPATTERN:
            text += _least(list(argument[-1]))
        elif operator is sre.BRANCH:
            text += _least(list(argument[1][0]))
    return text


def _one_of(items: list[Any]) -> str:
    if items and items[0][0] is sre.NEGATE:
        return next(c for c in "a1- /.:x\n" if not _holds(items[1:], c))
    operator, argument = items[0]
    if operator is sre.LITERAL:
        return chr(argument)
    if operator is sre.RANGE:
        return chr(argument[0])
    return _FIRST.get(argument, "a")


def _holds(items: list[Any], character: str) -> bool:
    for operator, argument in items:
        if operator is sre.LITERAL and argument == ord(character):
            return True
        if operator is sre.RANGE and argument[0] <= ord(character) <= argument[1]:
            return True
        if operator is sre.CATEGORY and _FIRST.get(argument) == character:
            return True
    return False
