"""A log made ready for matching: cleaned lines, and all of them as one text without line ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from ..log_text import Line, clean_lines, squeeze

# Beyond this a log is thinned out: its head, its tail and what stands around trouble. Matching stays quick then.
_WHOLE = 6_000_000
_HEAD, _TAIL, _TROUBLE = 500_000, 2_000_000, 3_000_000
_AROUND = 40
_LONGEST_LINE = 20_000
_SIGNS = re.compile(
    r"error|FAILED|fatal|[Kk]illed|Undefined symbols|not found|No such|[Uu]nable|\bassert|Traceback|canceled|"
    r"license|No space|not been|cannot|can't|Cannot|Could not|Symbol|USE_MPS|sdk version|\*\*\*"
)
_STRAIGHT = str.maketrans({"‘": "'", "’": "'", "‛": "'", "“": '"', "”": '"', "`": "'", "´": "'"})
_ECHO = re.compile(r"\s*(?:\+{1,4} |[$%] |[\w.-]+@[\w.-]+[: ]\S* ?[%$#] )")
_PROGRESS = re.compile(
    r"\s*(?:\[ ?\d+(?:/\d+|%)[^\]]*\] (?:Building|Linking|Compiling|Generating|Running|Performing)"
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

    def hits(self, pattern: re.Pattern[str], *, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield matches that no command echo or progress line quotes."""
        for match in pattern.finditer(self.text, start):
            if not is_quoted(self.lines[self.index_at(match.start())].text):
                yield match


def read_log(text: str) -> Log:
    """Return a log ready for matching."""
    shown = thin_out(text) if len(text) > _WHOLE else text
    lines = [line for line in clean_lines(shown) if line.text.strip()]
    parts, starts, position = [], [], 0
    for line in lines:
        part = squeeze(line.text[:_LONGEST_LINE]).translate(_STRAIGHT)
        parts.append(part)
        starts.append(position)
        position += len(part) + 1
    return Log(lines=tuple(lines), text=" ".join(parts), starts=tuple(starts))


def thin_out(text: str) -> str:
    """Return a huge log with the dull stretches emptied; every line keeps its number."""
    lines = text.split("\n")
    keep = bytearray(len(lines))
    _keep(lines, keep, range(len(lines)), _HEAD)
    _keep(lines, keep, range(len(lines) - 1, -1, -1), _TAIL)
    budget = _TROUBLE
    until = -1
    for index, line in enumerate(lines):
        if budget > 0 and _SIGNS.search(line, 0, _LONGEST_LINE):
            for near in range(max(until + 1, index - _AROUND), min(len(lines), index + _AROUND)):
                if not keep[near]:
                    keep[near] = 1
                    budget -= min(len(lines[near]), _LONGEST_LINE)
                until = near
    return "\n".join(line[:_LONGEST_LINE] if keep[index] else "" for index, line in enumerate(lines))


def is_quoted(line: str) -> bool:
    """Whether a line only repeats a command, or counts steps: its words are no message."""
    return bool(_ECHO.match(line) or _PROGRESS.match(line))


def _keep(lines: list[str], keep: bytearray, order: range, budget: int) -> None:
    for index in order:
        if budget <= 0:
            return
        keep[index] = 1
        budget -= min(len(lines[index]), _LONGEST_LINE) + 1
