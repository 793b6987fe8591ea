"""From a failed log to its known cause, or to the first error: the cause that cannot be told surely is not named."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from mps_build.common.logs.text import Line

from . import first_error
from .log import Log, read_log
from .rules import Catalogue, Cause, Matcher, load_catalogue

# A build that ended well and yet has no MPS says so only here.
_MPS_IS_MISSED = re.compile(r"not compiled with MPS|mps\.is_built\(\)\)?[\"' :)]*False|MPS built\?: False")


@dataclass(frozen=True, slots=True, kw_only=True)
class Triage:
    """What a log tells.

    Attributes:
        cause: id of a known cause; None says that none is sure.
        also: ids that show in the log as well: effects of the cause, or its twins.
        first_error: the line to look at, with its number from 1; None if the log holds none.
        failed: the log holds a failure; False for a good log, and for one without any sign.
    """

    cause: str | None
    title: str | None
    explanation: str | None
    fix: str | None
    link: str | None
    also: tuple[str, ...]
    notes: tuple[str, ...]
    first_error: Line | None
    failed: bool

    def without_cause(self) -> Triage:
        """Return the same with its cause taken for no more than a likeness (for a text that is no build's)."""
        if self.cause is None:
            return self
        also = (self.cause, *self.also)
        return replace(self, cause=None, title=None, explanation=None, fix=None, link=None, also=also)

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        error = self.first_error
        return {
            "cause": self.cause,
            "title": self.title,
            "explanation": self.explanation,
            "fix": self.fix,
            "link": self.link,
            "also": list(self.also),
            "notes": list(self.notes),
            "first_error": {"line": error.number, "text": error.text.strip()} if error else None,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    cause: Cause
    position: int
    line: Line


def explain(log_text: str, *, release: Version | None = None, catalogue: Catalogue | None = None) -> Triage:
    """Return the known cause of a failed log, if there is one that is sure.

    Args:
        release: of torch; rows that are known from other releases are left out.
    """
    rows = catalogue or load_catalogue()
    log = read_log(log_text)
    found = [] if _is_blocked(log, rows) else _found(log, rows, release)
    is_quiet = any(each.cause.quiet for each in found)
    well = first_error.ends_well(log.lines, configured_is_well=not is_quiet)
    if well and not (is_quiet and _MPS_IS_MISSED.search(log.text)):
        # What sounded like a cause went by: the log goes on to a good end.
        quiet = tuple(f"{each.cause.id}: {each.cause.title}" for each in found if each.cause.quiet)
        return _triage(None, (), (*quiet, *_notes(log, rows, None)), None, failed=False)
    chosen = _choose(found, log)
    also = tuple(each.cause.id for each in found if chosen and each.cause.id != chosen.cause.id)
    line = chosen.line if chosen else first_error.first_error(log.lines)
    return _triage(
        chosen.cause if chosen else None,
        also,
        _notes(log, rows, chosen),
        line,
        failed=line is not None or _anything_failed(log),
    )


def _triage(
    cause: Cause | None, also: tuple[str, ...], notes: tuple[str, ...], line: Line | None, *, failed: bool
) -> Triage:
    return Triage(
        cause=cause.id if cause else None,
        title=cause.title if cause else None,
        explanation=cause.cause if cause else None,
        fix=cause.fix if cause else None,
        link=cause.link if cause else None,
        also=also,
        notes=notes,
        first_error=line,
        failed=failed,
    )


def _is_blocked(log: Log, rows: Catalogue) -> bool:
    return any(next(log.hits(rows.compiled(pattern)), None) for pattern in rows.blockers)


def _found(log: Log, rows: Catalogue, release: Version | None) -> list[_Found]:
    found = []
    for cause in rows.causes:
        if not cause.fits(release):
            continue
        for matcher in cause.any:
            if matcher.fits(release) and (position := _match(log, rows, matcher)) is not None:
                found.append(_Found(cause=cause, position=position, line=_shown(log, rows, matcher, position)))
                break
    return found


def _match(log: Log, rows: Catalogue, matcher: Matcher) -> int | None:
    """Return where the matcher's first pattern hits, if the rest holds too."""
    if any(log.search(rows.compiled(pattern)) is None for pattern in matcher.all[1:]):
        return None
    for hit in log.hits(rows.compiled(matcher.all[0])):
        comes = matcher.then is None or next(log.hits(rows.compiled(matcher.then), start=hit.end()), None) is not None
        if not comes and not (matcher.alone and not _anything_failed(log)):
            return None
        if any(log.search(rows.compiled(pattern)) for pattern in matcher.none):
            return None
        return hit.start()
    return None


def _anything_failed(log: Log) -> bool:
    return any(first_error.is_failure(line.text) for line in log.lines)


def _shown(log: Log, rows: Catalogue, matcher: Matcher, position: int) -> Line:
    better = log.search(rows.compiled(matcher.show)) if matcher.show else None
    return first_error.whole_message(log.lines, log.index_at(better.start() if better else position))


def _choose(found: list[_Found], log: Log) -> _Found | None:
    """Return the cause among what was found: no effect of another, no mere frame, then the first in the log."""
    effects = {name for each in found for name in each.cause.explains}
    causes = [each for each in found if each.cause.id not in effects] or found
    causes = [each for each in causes if not (each.cause.first and _something_failed_before(each, log))]
    causes = [each for each in causes if not _is_beside_the_point(each, log)]
    return min(causes, key=lambda each: (each.cause.frame, each.position), default=None)


def _something_failed_before(each: _Found, log: Log) -> bool:
    return any(first_error.is_failure(line.text) for line in log.lines if line.number < each.line.number)


def _is_beside_the_point(each: _Found, log: Log) -> bool:
    """Whether a quiet fault stands in a log that later failed of something else."""
    if not each.cause.quiet or _MPS_IS_MISSED.search(log.text):
        return False
    later = [line for line in log.lines if line.number > each.line.number]
    return any(first_error.is_failure(line.text) for line in later)


def _notes(log: Log, rows: Catalogue, chosen: _Found | None) -> tuple[str, ...]:
    return tuple(
        f"{note.id}: {note.text}"
        for note in rows.notes
        if (chosen is None or note.id != chosen.cause.id) and log.search(rows.compiled(note.pattern))
    )
