"""A log made ready for matching; and the plain words that a pattern needs, found a hundred times faster."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mps_build.common.logs.file import thin_text
from mps_build.common.logs.text import Line, meant_lines, squeeze

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


_FAR = 4000
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‛": "'", "“": '"', "”": '"', "`": "'", "´": "'"})
_ECHO = re.compile(r"\s*(?:\+{1,4} |[$%] |[\w.-]+@[\w.-]+[: ]\S* ?[%$#] )")
_PROGRESS = re.compile(
    r"\s*(?:\[ ?\d{1,9}(?:/\d{1,9}|%)[^\]]{0,80}\] (?:Building|Linking|Compiling|Generating|Running|Performing)"
    r"|-- Performing Test )"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """Cleaned lines, their squeezed text, and where in it each of them begins."""

    lines: tuple[Line, ...]
    text: str
    starts: tuple[int, ...]

    def index_at(self, position: int) -> int:
        """Return which line (an index into `lines`) holds a position of `text`."""
        return max(bisect_right(self.starts, position) - 1, 0)

    def search(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return the first match, wherever it stands."""
        return pattern.search(self.text) if may_match(pattern.pattern, self.text) else None

    def hits(self, pattern: re.Pattern[str], *, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield matches that no command echo or progress line quotes."""
        if not may_match(pattern.pattern, self.text):
            return
        for match in pattern.finditer(self.text, start):
            if not is_quoted(self.lines[self.index_at(match.start())].text):
                yield match

    def hits_before(
        self, pattern: re.Pattern[str], second: re.Pattern[str], *, start: int = 0
    ) -> Iterator[re.Match[str]]:
        """Yield the same of those that another pattern follows within 4,000 characters; each is searched once."""
        if not may_match(second.pattern, self.text):
            return
        ends = [match.start() for match in second.finditer(self.text, start)]
        for match in self.hits(pattern, start=start) if ends else ():
            place = bisect_left(ends, match.end())
            if place < len(ends) and ends[place] - match.end() <= _FAR:
                yield match


@lru_cache(maxsize=1)  # its cause and its category are both requested of one text
def read_log(text: str) -> Log:
    """Return a log ready for matching; of a huge one what stands at its ends and around trouble."""
    lines = meant_lines(thin_text(text))
    parts, starts, position = [], [], 0
    for line in lines:
        part = squeeze(line.text).translate(_STRAIGHT)
        parts.append(part)
        starts.append(position)
        position += len(part) + 1
    return Log(lines=lines, text=" ".join(parts), starts=tuple(starts))


def is_quoted(line: str) -> bool:
    """Whether a line only repeats a command, or counts steps: its words are not a message."""
    return bool(_ECHO.match(line) or _PROGRESS.match(line))
