"""Records of several releases -> one table: each known issue, the releases in which it was seen, and what was claimed.

Nothing is run here, and no torch is needed.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from fnmatch import fnmatchcase, translate
from typing import Any, Literal

from packaging.version import Version

from mps_build.common.known_issues import Issue, within
from mps_build.common.records.device_record import FAILED, Case, Record

# wrong, right; the release does not have what is tested; wrong by our fault or in another way, so nothing follows; no
# case of it was run.
Word = Literal["wrong", "right", "absent", "unclear", "not_run"]
Status = Literal["agrees", "differs", "new", "not_seen", "not_here", "not_run"]

# Release -> wrong case -> the ids of the rows that it shows.
Owned = Mapping[str, Mapping[str, Sequence[str]]]

_RIGHT = ("passed", "unexpected_pass")
# A message of the software Metal is mostly a limit of ours.
_OURS = "software Metal:"
# A release that does not have what is tested yet: nothing is wrong, unless a row of that release says so.
_LACKS = re.compile(
    r"NotImplementedError|not (?:currently )?supported on (?:the )?MPS|MPS backend but it does not have support|"
    r"`fused=True` requires|If capturable=True|MPS (?:device )?does not support|"
    r"Adaptive pool MPS: input sizes must be divisible"
)
_FOLDERS = re.compile(r"(?<![\w.:/])/(?:[^\s/:\"']+/)+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One release: the record of its suite, or why there is none."""

    release: str
    record: Record | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One release of the table: the wheel by its hash, how many cases were run, or why none was."""

    release: str
    state: Literal["run", "partial", "not_run"]
    cause: str | None = None
    wheel: str | None = None
    sha256: str | None = None
    commit: str | None = None
    cases: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one release says of one bug; `differs`: something else than was claimed. `case`: the one that shows it."""

    word: Word = "not_run"
    differs: bool = False
    case: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One known issue, or the cases of a regression that no known issue speaks of.

    Attributes:
        claimed: the range of releases that is claimed; None where nothing is.
        first_bad, first_good: of the releases that were run. `first_good` comes after the last wrong one.
        last_good: the one before `first_bad`; None where that is the oldest.
        why: why it was not seen, as far as the row itself says it.
    """

    id: str
    title: str
    kind: str
    link: str | None
    claimed: str | None
    cells: Mapping[str, Cell]
    status: Status
    last_good: str | None = None
    first_bad: str | None = None
    first_good: str | None = None
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """The whole: releases from the oldest to the newest, known issues, then regressions without one."""

    macos: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        rows = [{**asdict(row), "cells": {at: asdict(cell) for at, cell in row.cells.items()}} for row in self.rows]
        return {"macos": self.macos, "releases": [asdict(each) for each in self.columns], "rows": rows}

    def with_status(self, *wanted: Status) -> tuple[Row, ...]:
        """Return the rows of these kinds."""
        return tuple(row for row in self.rows if row.status in wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The cases of each release, which of them it does not have yet, and which rows its wrong cases show."""

    seen: Mapping[str, Mapping[str, Case]]
    lacking: Mapping[str, Collection[str]]
    owned: Owned
    macos: str

    def is_explained(self, at: str, name: str) -> bool:
        return name in self.lacking[at] or bool(self.owned[at][name])


def make_table(issues: Iterable[Issue], runs: Iterable[Run], *, macos: str) -> Table:
    """Return the table of these releases.

    Args:
        macos: what the device answered as: rows of another macOS cannot be seen.
    """
    ordered = sorted(runs, key=lambda run: Version(run.release))
    known = [row for row in issues if "mps" in row.devices and "official" in row.places]
    seen = {run.release: _cases_of(run) for run in ordered}
    lacking = _lacking(seen)
    owned: Owned = {
        at: {
            name: [row.id for row in _owners(case, known, at, macos, name in lacking[at])]
            for name, case in cases.items()
            if _is_wrong(case)
        }
        for at, cases in seen.items()
    }
    found = _Found(seen=seen, lacking=lacking, owned=owned, macos=macos)
    rows = [_known_row(row, known, found) for row in known if row.kind != "limit"]  # a limit is ours
    return Table(
        macos=macos,
        columns=tuple(_column(run) for run in ordered),
        rows=(*rows, *_unknown_rows(known, found)),
    )


# What takes minutes of an emulator, or compilers of its own: left out where nobody chooses the cases.
SLOW = (
    *("issue-95188*", "issue-161905*", "issue-170360*", "issue-174861*", "issue-178497*", "issue-183885*"),
    *("issue-184180*", "issue-191976*", "82707-t5-*"),
)


# `issue-*`, `random-*`: a row that speaks of a whole release names so what it may meet, not what shows it.
_FAMILY = re.compile(r"\w+-\*")


def selection_of(issues: Iterable[Issue]) -> tuple[str, ...]:
    """Return what runs the cases of known issues: ids and patterns, each once.

    Of a row with `shown_by` a pattern that takes in a whole family of cases is left out.
    """
    shown = [
        [*(name for name in row.cases or () if not (row.shown_by and _FAMILY.fullmatch(name))), *row.shown_by]
        for row in issues
        if "mps" in row.devices
    ]
    return tuple(dict.fromkeys(name for names in shown for name in names))


def speaks_of(row: Issue, case: Case) -> bool:
    """Say whether a wrong case is what a row speaks of, whatever the release."""
    if re.search(row.says or "", case.reason or "") is None:
        return False
    # The suite knew the levels of a case that ended the process.
    is_drawn = _fits(case.id, row.drawn) and (case.known_issue == row.id or _levels_fit(row, case))
    return is_drawn or _fits(case.id, row.cases or ())


def _levels_fit(row: Issue, case: Case) -> bool:
    wanted = {**({"dtype": row.dtype} if row.dtype else {}), **(row.levels or {})}
    levels = case.levels or {}
    return all(
        any(_level_fits(level, patterns) for factor, level in levels.items() if _fits(factor, name.split("|")))
        for name, patterns in wanted.items()
    )


def _level_fits(level: str, patterns: Iterable[str]) -> bool:
    """Say whether a level fits one of the patterns; one that begins with `!` fits what the rest does not."""
    return any(fnmatchcase(level, one.lstrip("!")) != one.startswith("!") for one in patterns)


def _fits(text: str, patterns: Iterable[str]) -> bool:
    return _pattern(tuple(patterns)).match(text) is not None


@functools.cache
def _pattern(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")  # of none nothing fits


def fails_below(case: Case) -> bool:
    """Say whether nothing follows for the release: an emulator is slow, and what the software Metal lacks is ours."""
    return case.outcome == "timeout" or _OURS in (case.reason or "")


def judged_cases(run: Run) -> set[str]:
    """Return the ids of the cases that say anything of a release: not skipped, and no fault of ours."""
    return {name for name, case in _cases_of(run).items() if case.outcome != "skipped" and not fails_below(case)}


def _cases_of(run: Run) -> dict[str, Case]:
    return {case.id: case for case in run.record.cases if not case.is_event} if run.record else {}


def _column(run: Run) -> Column:
    record = run.record
    if record is None:
        return Column(release=run.release, state="not_run", cause=run.cause or "was not run")
    wheel = record.torch.wheel
    return Column(
        release=run.release,
        state="partial" if record.partial else "run",
        cause=run.cause,
        wheel=wheel.file if wheel else None,
        sha256=wheel.sha256 if wheel else None,
        commit=record.torch.commit,
        cases=sum(case.outcome != "skipped" for case in record.cases),
        seconds=record.seconds,
    )


def _is_wrong(case: Case) -> bool:
    return case.outcome in (*FAILED, "known")


def _lacking(seen: Mapping[str, Mapping[str, Case]]) -> dict[str, frozenset[str]]:
    """Return the cases that each release does not have yet: it says so, and no older one passed them."""
    found, passed = {}, set[str]()
    for at, cases in seen.items():
        refused = {name for name, case in cases.items() if _is_wrong(case) and _LACKS.search(case.reason or "")}
        found[at] = frozenset(refused - passed)
        passed |= {name for name, case in cases.items() if case.outcome in _RIGHT}
    return found


def _owners(case: Case, known: Sequence[Issue], at: str, macos: str, is_lacking: bool) -> list[Issue]:
    """Return the rows that a wrong case of one release shows; none: it is a bug without a row.

    Rows that hold here; where none of them speaks of it, those that name it, a drawn case by its id. Operators of a
    row that holds for another release fit much, and say nothing here.
    """
    those = [row for row in known if speaks_of(row, case)]
    here = [row for row in those if _why_not_here(row, macos) is None and within(at, row.torch)]
    if _LACKS.search(case.reason or ""):  # a row without words would speak of whatever a case answers
        those, here = [row for row in those if row.says], [row for row in here if row.says]
    if is_lacking:
        return here
    named = [row for row in those if case.id in (*row.shown_by, *(row.cases or ()))]
    return here or named or [row for row in those if _fits(case.id, row.cases or ())]


def _known_row(row: Issue, known: Sequence[Issue], found: _Found) -> Row:
    why = _why_not_here(row, found.macos)
    limits = [each for each in known if each.kind == "limit" and each is not row]
    wrong = {
        at: [cases[name] for name, rows in found.owned[at].items() if row.id in rows]
        for at, cases in found.seen.items()
    }
    # Cases that show it: those that it names, and drawn ones that were wrong so in some release.
    shown_by = {*row.shown_by, *(case.id for cases in wrong.values() for case in cases)}
    cells = {}
    for at, cases in found.seen.items():
        claimed = why is None and within(at, row.torch)
        cell = _cell(
            [case for case in cases.values() if case.id in shown_by or _fits(case.id, row.cases or ())],
            wrong[at],
            limits,
            found.lacking[at],
            row,
        )
        cells[at] = replace(cell, differs=cell.word == ("right" if claimed else "wrong"))
    is_seen = any(cell.word == "wrong" for cell in cells.values())
    if not is_seen:  # its cases show nothing here: that they are right contradicts nobody
        cells = {at: replace(cell, differs=False) for at, cell in cells.items()}
    made = Row(
        id=row.id,
        title=row.title,
        kind=row.kind,
        link=row.link,
        claimed=row.torch,
        cells=cells,
        status=_status(row, cells, why),
        why=why if not is_seen else None,
    )
    return _with_ends(made)


def _status(row: Issue, cells: Mapping[str, Cell], why: str | None) -> Status:
    words = {cell.word for cell in cells.values()}
    if "wrong" in words:
        return "differs" if any(cell.differs for cell in cells.values()) else "agrees"
    if words & {"right"} and any(cell.word == "right" and within(at, row.torch) for at, cell in cells.items()):
        return "not_here" if why is not None else "not_seen"
    return "not_run"


def _cell(
    cases: Sequence[Case],
    wrong: Sequence[Case],
    limits: Sequence[Issue],
    lacking: Collection[str],
    row: Issue | None = None,
) -> Cell:
    """Return what one release says, given its cases that show the bug, and those that were wrong as it says."""
    ours = [
        case
        for case in cases
        if case.outcome == "own_fault" or (_is_wrong(case) and _is_ours(case, limits, row if case in wrong else None))
    ]
    found: tuple[tuple[Word, list[Case]], ...] = (
        ("wrong", [case for case in wrong if case not in ours]),
        ("unclear", [case for case in cases if case in ours or (_is_wrong(case) and case.id not in lacking)]),
        ("right", [case for case in cases if case.outcome in _RIGHT]),
        ("absent", [case for case in cases if case.outcome == "skipped" or case.id in lacking]),
    )
    for word, those in found:
        if those:
            return Cell(word=word, case=those[0].id, reason=short(those[0].reason))
    return Cell()


def _is_ours(case: Case, limits: Sequence[Issue], row: Issue | None = None) -> bool:
    is_limit = any(speaks_of(each, case) for each in limits)
    return is_limit or (fails_below(case) and not (row and _is_its_refusal(row, case)))


def _is_its_refusal(row: Issue, case: Case) -> bool:
    """Say whether a row speaks of what the software Metal refuses here: sizes or types that Apple's refuses too."""
    refused = (case.reason or "").partition(_OURS)[2]
    return case.outcome != "timeout" and bool(row.says and refused and re.search(row.says, refused))


def short(reason: str | None) -> str | None:
    """Return a reason in a line, its files without their folders: a table is published."""
    return _FOLDERS.sub("", " ".join(reason.split()))[:200] if reason else None


def _why_not_here(row: Issue, macos: str) -> str | None:
    """Return why a bug cannot show itself here, as its row says; None where nothing speaks against it."""
    if not within(macos, row.macos):
        return f"macOS {row.macos}, and the device answers as {macos}"
    if row.chips:
        return f"only on {', '.join(row.chips)}"
    return "only on a virtual Mac" if row.virtual else None


def _with_ends(row: Row) -> Row:
    """Return a row with its first and last releases as they were seen."""
    order = [at for at in row.cells if row.cells[at].word in ("wrong", "right")]
    bad = [place for place, at in enumerate(order) if row.cells[at].word == "wrong"]
    if not bad:
        return row
    after = bad[-1] + 1
    return replace(
        row,
        last_good=order[bad[0] - 1] if bad[0] else None,
        first_bad=order[bad[0]],
        first_good=order[after] if after < len(order) else None,
    )


def _unknown_rows(known: Sequence[Issue], found: _Found) -> list[Row]:
    """Return a row for each issue, or case, that is wrong somewhere and that no known issue speaks of there."""
    limits = [row for row in known if row.kind == "limit"]
    groups: dict[str, dict[str, None]] = {}
    for at, cases in found.seen.items():
        for case in cases.values():
            if _is_wrong(case) and not (_is_ours(case, limits) or found.is_explained(at, case.id)):
                groups.setdefault(", ".join(case.issue) or case.id, {})[case.id] = None
    rows = []
    for name, ids in groups.items():
        cells = {}
        for at, cases in found.seen.items():
            ours = [cases[each] for each in ids if each in cases]
            new = [case for case in ours if _is_wrong(case) and not found.is_explained(at, case.id)]
            cell = _cell(ours, new, limits, found.lacking[at])
            cells[at] = replace(cell, differs=cell.word == "wrong")
        link = f"https://github.com/pytorch/pytorch/issues/{name}" if name.isdecimal() else None
        shown = ", ".join(list(ids)[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
        row = Row(id=name, title=shown, kind="new", link=link, claimed=None, cells=cells, status="new")
        rows.append(_with_ends(row))
    return rows
