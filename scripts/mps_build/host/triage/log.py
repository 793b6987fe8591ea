"""A log made ready for matching: cleaned lines, and all of them as one text without line ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from mps_build.common.logs.text import Line, clean_line, squeeze

from .literals import may_match

# Beyond this a log is thinned out: its head, its tail and what stands around trouble. Matching stays quick then.
_WHOLE = 3_000_000
_HEAD, _TAIL, _TROUBLE = 300_000, 800_000, 1_500_000
_AROUND = 30
_LONGEST_LINE = 20_000
# Plain words, surest first: they are looked for in 100 MB, where a pattern would take minutes.
_SIGNS = (
    *("FAILED: ", "CMake Error", " error: ", "fatal error", "Traceback (most", "Undefined symbols", "Killed"),
    *("No space left", "ignoring file", "##[error]", "canceled", "Error: ", "ERROR", "failed with", "*** ["),
    *("an SDK that doesn", "SYSROOT", "Symbol not found", "symbol not found", "Library not loaded", "license"),
    *("-- sdk version", "USE_MPS ", "MPSGraph framework", "metal shaders", "ssertion", "unable to", "Unable to"),
    *("not found", "No such", "cannot ", "can't ", "Could not", "error"),
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


def read_log(text: str) -> Log:
    """Return a log ready for matching."""
    lines = []
    for number, raw in _shown(text.replace("\r\n", "\n")):
        cleaned = clean_line(raw)
        if cleaned and not cleaned.isspace():
            lines.append(Line(number=number, text=cleaned))
    parts, starts, position = [], [], 0
    for line in lines:
        part = squeeze(line.text).translate(_STRAIGHT)
        parts.append(part)
        starts.append(position)
        position += len(part) + 1
    return Log(lines=tuple(lines), text=" ".join(parts), starts=tuple(starts))


def is_quoted(line: str) -> bool:
    """Whether a line only repeats a command, or counts steps: its words are no message."""
    return bool(_ECHO.match(line) or _PROGRESS.match(line))


def _shown(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines to look at, each with its number: all of them, unless the log is huge.

    A line redrawn by carriage returns is as many lines of one number.
    """
    flat = text.replace("\r", "\n")
    lines = flat.split("\n")
    keep = None if len(text) <= _WHOLE else _worth_keeping(flat, lines)
    number, position = 1, 0
    for index, line in enumerate(lines):
        if line and (keep is None or keep[index]):
            yield number, line[:_LONGEST_LINE]
        position += len(line) + 1
        number += text[position - 1 : position] == "\n"


def _worth_keeping(text: str, lines: list[str]) -> bytearray:
    keep = bytearray(len(lines))
    _keep(lines, keep, range(len(lines)), _HEAD)
    _keep(lines, keep, range(len(lines) - 1, -1, -1), _TAIL)
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    budget = _TROUBLE
    for sign in _SIGNS:
        position = text.find(sign)
        while position >= 0 and budget > 0:
            index = bisect_right(starts, position) - 1
            around = range(max(index - _AROUND, 0), min(index + _AROUND, len(lines)))
            budget -= _keep(lines, keep, around, budget)
            position = text.find(sign, starts[around[-1] + 1])
    return keep


def _keep(lines: list[str], keep: bytearray, order: range, budget: int) -> int:
    """Mark lines as kept while the budget of characters lasts; return what was spent."""
    spent = 0
    for index in order:
        if spent >= budget:
            break
        if not keep[index]:
            keep[index] = 1
            spent += min(len(lines[index]), _LONGEST_LINE) + 1
    return spent
