"""A log made ready for matching: cleaned lines, and all of them as one text without line ends."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from mps_build.common.logs.file import thin_text
from mps_build.common.logs.text import Line, meant_lines, squeeze

from .literals import may_match

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


@lru_cache(maxsize=1)  # its cause and its category are both asked of one text
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
