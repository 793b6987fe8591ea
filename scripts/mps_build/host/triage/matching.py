"""Which rows of the table show in a log, and whether what they say was this log's failure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.version import Version

from mps_build.common.logs.text import Line

from . import first_error
from .log import Log, is_quoted
from .rules import Catalogue, Cause, Matcher

_WARNING = re.compile(r"\bwarning: |\bnote: |\bWARNING\b|\b\w{0,60}Warning: |CMake (?:Deprecation )?Warning\b")
# A warning that quotes how an import failed, and the words of what then went wrong for want of it.
_FAILED_IMPORT = re.compile(
    r"(?:[Ff]ailed|[Uu]nable|[Cc]ould ?n[o']t) to (?:import|load)|ImportError\b|dlopen\(|[Ss]ymbol not found"
    r"|Library not loaded"
)
_FOR_WANT_OF_IT = re.compile(
    r"_OpNamespace|has no attribute|No such operator|operator \S{1,80} does not exist|cannot import name"
    r"|(?:is|are) not (?:available|registered|defined|installed)|NoneType|not implemented|No module named|_C\b"
)
# Lines of the failure in which the consequence of a warning is looked for.
_BEFORE_A_MESSAGE, _LENGTH_OF_A_MESSAGE = 3, 30
# Of one pattern; more hits of it in a log prove nothing more.
_MOST_HITS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A log under the table, with where (indices of lines) it failed and where it came to a good end."""

    log: Log
    rows: Catalogue
    failures: tuple[int, ...]
    messages: tuple[int, ...]
    good_ends: tuple[int, ...]

    @classmethod
    def of(cls, log: Log, rows: Catalogue) -> Reading:
        """Return the reading of a log."""
        failures = tuple(i for i, line in enumerate(log.lines) if first_error.is_failure(line.text))
        return cls(
            log=log,
            rows=rows,
            failures=failures,
            messages=tuple(i for i in failures if first_error.says_what_failed(log.lines[i].text)),
            good_ends=tuple(i for i, line in enumerate(log.lines) if first_error.is_a_good_end(line.text)),
        )

    def may_hit(self, pattern: str) -> bool:
        """Whether a pattern of the table can match at all, as far as plain words tell: most rows end here."""
        words = self.rows.first_words[pattern]
        return not words or any(word in self.log.text for word in words)

    def hits(self, pattern: str, *, start: int = 0) -> Iterator[re.Match[str]]:
        """Yield matches of a pattern of the table that no command echo or progress line quotes."""
        first, second = self.rows.parts(pattern)
        return self.log.hits(first, start=start) if second is None else self.log.hits_before(first, second, start=start)

    def holds(self, pattern: str) -> bool:
        """Whether a pattern of the table matches anywhere, in a command echo too."""
        first, second = self.rows.parts(pattern)
        if second is None:
            return self.log.search(first) is not None
        return next(self.log.hits_before(first, second), None) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A row that shows: where its words begin in the log's text, and the line a person is shown."""

    cause: Cause
    position: int
    line: Line
    rival: str | None = None


def find(reading: Reading, release: Version | None) -> list[Found]:
    """Return the rows that show in a log, each with its first place."""
    found = []
    for cause in reading.rows.causes:
        if not cause.fits(release):
            continue
        for matcher in cause.any:
            if not reading.may_hit(matcher.all[0]) or not matcher.fits(release):
                continue
            if (position := _match(reading, matcher)) is not None:
                line = _shown(reading, matcher, position)
                found.append(Found(cause=cause, position=position, line=line, rival=matcher.rival))
                break
    return found


def healed(each: Found, found: list[Found], reading: Reading) -> bool:
    """Whether the log came to a good end after this row's words, and then failed of what is not their effect."""
    here = reading.log.index_at(each.position)
    last = bisect_right(reading.good_ends, here)
    if each.cause.quiet or last == len(reading.good_ends):
        return False
    end = reading.good_ends[-1]
    if not any(index > end for index in reading.messages):
        end = next((e for e in reversed(reading.good_ends[last:]) if any(i > e for i in reading.messages)), -1)
    if end < 0:
        return False
    after = reading.log.starts[end]
    if any(other.cause.id in each.cause.explains and other.position > after for other in found):
        return False
    return not any(next(reading.hits(m.all[0], start=after), None) for m in each.cause.any)


def _match(reading: Reading, matcher: Matcher) -> int | None:
    """Return where the matcher's first pattern hits, if the rest holds too."""
    if not all(reading.holds(pattern) for pattern in matcher.all[1:]):
        return None
    for number, hit in enumerate(reading.hits(matcher.all[0])):
        if number >= _MOST_HITS:
            break
        if _is_borne_out(reading, matcher, hit):
            return None if any(reading.holds(pattern) for pattern in matcher.none) else hit.start()
    return None


def _is_borne_out(reading: Reading, matcher: Matcher, hit: re.Match[str]) -> bool:
    """Whether the failure that followed is this one's: words that only warn are the cause of no other."""
    log = reading.log
    index = log.index_at(hit.start())
    if matcher.then is None:
        return not reading.messages or not _only_warns(log, index) or _broke_an_import(reading, index)
    if matcher.alone and not reading.failures:
        return True
    said = _first_from(reading.messages, index)
    said = _first_from(reading.failures, index) if said is None else said
    if said is None:
        return False
    until = said
    while (
        until + 1 < len(log.lines) and until < said + _LENGTH_OF_A_MESSAGE and not is_quoted(log.lines[until + 1].text)
    ):
        until += 1
    begin = max(hit.end(), log.starts[max(said - _BEFORE_A_MESSAGE, 0)])
    end = log.starts[until] + len(log.lines[until].text)
    return reading.rows.compiled(matcher.then).search(log.text, begin, end) is not None


def _broke_an_import(reading: Reading, index: int) -> bool:
    """Whether a warning tells of an import that failed, and what failed next failed for want of it."""
    if not _FAILED_IMPORT.search(reading.log.lines[index].text):
        return False
    said = _first_from(reading.messages, index + 1)
    return said is not None and bool(_FOR_WANT_OF_IT.search(reading.log.lines[said].text))


def _first_from(indices: tuple[int, ...], start: int) -> int | None:
    place = bisect_right(indices, start - 1)
    return indices[place] if place < len(indices) else None


def _only_warns(log: Log, index: int) -> bool:
    line = log.lines[index].text
    return bool(_WARNING.search(line) or _WARNING.search(first_error.whole_message(log.lines, index).text))


def _shown(reading: Reading, matcher: Matcher, position: int) -> Line:
    better = reading.log.search(reading.rows.compiled(matcher.show)) if matcher.show else None
    return first_error.whole_message(reading.log.lines, reading.log.index_at(better.start() if better else position))
