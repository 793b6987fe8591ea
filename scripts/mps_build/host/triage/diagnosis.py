"""From a failed log to its known cause, or to the first error: a cause that is not certain is not named."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from packaging.version import Version

from mps_build.common.logs.text import Line

from . import first_error
from .log import Log, is_quoted, read_log
from .rules import Catalogue, Cause, Matcher, load_catalogue

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerUp:
    """What else it may be; its cause is None where that is none of the catalogue."""

    cause: str | None
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What a log tells.

    Attributes:
        cause: id of a known cause; None says that none is sure.
        certainty: `probable` if the words fit another cause too, or another one shows beside it; None: no cause.
        runner_up: that other cause.
        also: ids that show in the log as well: effects of the cause, or its twins.
        first_error: the line to look at, with its number from 1; None if the log holds none.
        failed: the log holds a failure; False for a good log, and for one without any sign.
    """

    cause: str | None
    title: str | None
    explanation: str | None
    fix: str | None
    link: str | None
    certainty: Literal["certain", "probable"] | None
    runner_up: RunnerUp | None
    also: tuple[str, ...]
    notes: tuple[str, ...]
    first_error: Line | None
    failed: bool

    def without_cause(self) -> Triage:
        """Return the same with its cause taken for no more than a likeness (for a text that is not a build's)."""
        if self.cause is None:
            return self
        also = (self.cause, *self.also)
        return replace(
            self,
            cause=None,
            title=None,
            explanation=None,
            fix=None,
            link=None,
            certainty=None,
            runner_up=None,
            also=also,
        )

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        error = self.first_error
        return {
            "cause": self.cause,
            "title": self.title,
            "explanation": self.explanation,
            "fix": self.fix,
            "link": self.link,
            "certainty": self.certainty,
            "runner_up": asdict(self.runner_up) if self.runner_up else None,
            "also": list(self.also),
            "notes": list(self.notes),
            "first_error": {"line": error.number, "text": error.text.strip()} if error else None,
            "failed": self.failed,
        }


def explain(
    log_text: str, *, release: Version | None = None, exit: int | None = None, catalogue: Catalogue | None = None
) -> Triage:
    """Return the known cause of a failed log, if there is one that is sure, or probable and said to be so.

    Args:
        release: of torch; rows that are known from other releases are left out.
        exit: status of the process that wrote the log; what it warned of is not a failure if it is 0, and it failed
            whatever the log says if it is another.
    """
    rows = catalogue or load_catalogue()
    log = read_log(log_text)
    reading = Reading.of(log, rows)
    found = [] if _is_blocked(reading) else find(reading, release)
    is_quiet = any(each.cause.quiet for each in found)
    well = exit == 0 or (exit is None and first_error.ends_well(log.lines, configured_is_well=not is_quiet))
    if well and not (is_quiet and _mps_is_missed(reading)):
        # What sounded like a cause went by: the log goes on to a good end.
        quiet = tuple(f"{each.cause.id}: {each.cause.title}" for each in found if each.cause.quiet)
        return _triage(None, None, (), (*quiet, *_notes(log, rows, None)), None, failed=False)
    candidates = _candidates(found, reading)
    chosen = candidates[0] if candidates else None
    also = tuple(each.cause.id for each in found if chosen and each.cause.id != chosen.cause.id)
    line = chosen.line if chosen else first_error.first_error(log.lines)
    return _triage(
        chosen,
        _runner_up(candidates, rows),
        also,
        _notes(log, rows, chosen),
        line,
        failed=line is not None or bool(reading.failures) or exit not in (None, 0),
    )


def _triage(
    chosen: Found | None,
    runner_up: RunnerUp | None,
    also: tuple[str, ...],
    notes: tuple[str, ...],
    line: Line | None,
    *,
    failed: bool,
) -> Triage:
    cause = chosen.cause if chosen else None
    return Triage(
        cause=cause.id if cause else None,
        title=cause.title if cause else None,
        explanation=cause.cause if cause else None,
        fix=cause.fix if cause else None,
        link=cause.link if cause else None,
        certainty=None if cause is None else "probable" if runner_up else "certain",
        runner_up=runner_up,
        also=also,
        notes=notes,
        first_error=line,
        failed=failed,
    )


def _is_blocked(reading: Reading) -> bool:
    return any(next(reading.hits(pattern), None) for pattern in reading.rows.blockers)


def _mps_is_missed(reading: Reading) -> bool:
    """Whether a program found no MPS in its torch; a build that ended well and yet has none says so only here."""
    return reading.holds("<mps_is_missed>")


def _candidates(found: list[Found], reading: Reading) -> list[Found]:
    """Return the causes among what was found, the best first.

    No effect of another; no mere frame before another; what fits nothing else before what does; then the log's order.
    """
    effects = {name for each in found for name in each.cause.explains}
    causes = [each for each in found if each.cause.id not in effects] or found
    causes = [each for each in causes if not (each.cause.first and _something_failed_before(each, reading))]
    causes = [each for each in causes if not _is_beside_the_point(each, reading)]
    causes = [each for each in causes if not healed(each, found, reading)]
    return sorted(causes, key=lambda each: (each.cause.frame, each.rival is not None, each.position))


def _runner_up(candidates: list[Found], rows: Catalogue) -> RunnerUp | None:
    """Return what the first candidate may be mistaken for: another one that shows, or what its words fit as well."""
    for other in candidates[1:]:
        if not other.cause.frame:
            return RunnerUp(cause=other.cause.id, title=other.cause.title)
    if not candidates or candidates[0].rival is None:
        return None
    rival = candidates[0].rival
    title = rows.title_of(rival)
    return RunnerUp(cause=rival if title != rival else None, title=title)


def _something_failed_before(each: Found, reading: Reading) -> bool:
    return any(reading.log.lines[index].number < each.line.number for index in reading.failures)


def _is_beside_the_point(each: Found, reading: Reading) -> bool:
    """Whether a quiet fault stands in a log that later failed of something else."""
    if not each.cause.quiet or _mps_is_missed(reading):
        return False
    return any(reading.log.lines[index].number > each.line.number for index in reading.failures)


def _notes(log: Log, rows: Catalogue, chosen: Found | None) -> tuple[str, ...]:
    return tuple(
        f"{note.id}: {note.text}"
        for note in rows.notes
        if (chosen is None or note.id != chosen.cause.id) and log.search(rows.compiled(note.pattern))
    )
