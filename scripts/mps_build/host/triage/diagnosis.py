"""From a failed log to its known cause, or to the first error: a cause that is not certain is not named."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from packaging.version import Version

from mps_build.common.logs.text import Line

from . import first_error
from .log import Log, read_log
from .matching import Found, Reading, find, healed
from .rules import Catalogue, load_catalogue


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
