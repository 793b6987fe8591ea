"""What a text must hold for a pattern to match at all: plain words, found a hundred times faster than patterns."""

from __future__ import annotations

import re
from functools import lru_cache

_QUANTIFIER = re.compile(r"[*+?]|\{\d*,?\d*\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_SHORTEST = 4
# Groups whose words stand in the text as they are: no look-around, no flags.
_PLAIN_GROUP = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")


@lru_cache(maxsize=4096)
def required_literals(pattern: str) -> tuple[str, ...]:
    r"""Return words of which a match holds at least one; nothing if no word is sure.

    >>> required_literals(r"ld: (?:multiple errors: )?duplicate LC_RPATH|file not (found|there)")
    ('duplicate LC_RPATH', 'file not ')
    >>> required_literals(r"\d (?:no such file|not found) in (?:x|y)")
    ('no such file', 'not found')
    >>> required_literals(r"(?i:pch)")
    ()
    """
    found: list[str] = []
    for runs in _branches(pattern):
        best = max(runs, key=lambda words: min(map(len, words)))
        if min(map(len, best)) < _SHORTEST:
            return ()
        found += best
    return tuple(dict.fromkeys(found))


def alternates(pattern: str) -> bool:
    """Whether a pattern has an alternative outside of any group: as a part of another one it would split that.

    >>> alternates("a|b"), alternates("(?:a|b)c[|]")
    (True, False)
    """
    return len(_branches(pattern)) > 1


def _branches(pattern: str) -> list[list[tuple[str, ...]]]:
    """Return, for each alternative, what it must hold: runs of plain words, and of each group one of its words."""
    branches: list[list[tuple[str, ...]]] = [[("",)]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "|":
            branches.append([("",)])
            position += 1
            continue
        literal: str | None = None
        group: tuple[str, ...] = ()
        if character == "(":
            end = _end_of_group(pattern, position)
            if opening := _PLAIN_GROUP.match(pattern, position):
                group = required_literals(pattern[opening.end() : end - 1])
            position = end
        elif character == "[" and (match := _CLASS.match(pattern, position)):
            position = match.end()
        elif character == "\\":
            literal = pattern[position + 1] if not pattern[position + 1].isalnum() else None
            position += 2
        else:
            literal = None if character in ".^$" else character
            position += 1
        quantifier = _QUANTIFIER.match(pattern, position)
        runs = branches[-1]
        if literal is not None and not quantifier:
            runs[-1] = (runs[-1][0] + literal,)
        else:
            if group and not quantifier:
                runs.append(group)
            runs.append(("",))
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
