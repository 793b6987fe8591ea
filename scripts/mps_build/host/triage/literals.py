"""What a text must hold for a pattern to match at all: plain words, found a hundred times faster than patterns."""

from __future__ import annotations

import re
from functools import lru_cache

_QUANTIFIER = re.compile(r"[*+?]|\{\d*,?\d*\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_SHORTEST = 4


@lru_cache(maxsize=2048)
def required_literals(pattern: str) -> tuple[str, ...]:
    r"""Return words of which a match holds at least one; nothing if no word is sure.

    >>> required_literals(r"ld: (?:multiple errors: )?duplicate LC_RPATH|file not (found|there)")
    ('duplicate LC_RPATH', 'file not ')
    >>> required_literals(r"(?i:pch)")
    ()
    """
    longest = tuple(max(runs, key=len) for runs in _branches(pattern))
    return longest if all(len(word) >= _SHORTEST for word in longest) else ()


def alternates(pattern: str) -> bool:
    """Whether a pattern has an alternative outside of any group: as a part of another one it would split that.

    >>> alternates("a|b"), alternates("(?:a|b)c[|]")
    (True, False)
    """
    return len(_branches(pattern)) > 1


def _branches(pattern: str) -> list[list[str]]:
    """Return the runs of plain words of each alternative."""
    branches: list[list[str]] = [[""]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "|":
            branches.append([""])
            position += 1
            continue
        if character == "(":
            position = _end_of_group(pattern, position)
            literal = None
        elif character == "[" and (match := _CLASS.match(pattern, position)):
            position = match.end()
            literal = None
        elif character == "\\":
            literal = pattern[position + 1] if not pattern[position + 1].isalnum() else None
            position += 2
        else:
            literal = None if character in ".^$" else character
            position += 1
        quantifier = _QUANTIFIER.match(pattern, position)
        runs = branches[-1]
        if literal is not None and not quantifier:
            runs[-1] += literal
        else:
            runs.append("")
        if quantifier:
            position = quantifier.end() + (pattern[quantifier.end() : quantifier.end() + 1] == "?")
    return branches


def may_match(pattern: str, text: str) -> bool:
    """Whether a pattern can match at all, as far as plain words tell."""
    words = required_literals(pattern)
    return not words or any(word in text for word in words)


def _end_of_group(pattern: str, start: int) -> int:
    depth = 0
    position = start
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
        elif character == "[" and (match := _CLASS.match(pattern, position)):
            position = match.end() - 1
        elif character == "(":
            depth += 1
        elif character == ")":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return position
