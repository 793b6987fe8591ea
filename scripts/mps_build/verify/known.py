"""What a run says of the known issues: how many cases are wrong by which kind, and which rows nothing met."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from mps_build.common.known_issues import Issue
from mps_build.common.records.device_record import Case, Explanations


def summed_up(cases: Iterable[Case], rows: Iterable[Issue]) -> Explanations:
    """Return how many cases are wrong by bugs, by limits of the simulation, and by nothing that is known."""
    every = tuple(cases)
    limits = {row.id for row in rows if row.kind == "limit"}
    kinds = Counter("limit" if case.known_issue in limits else "bug" for case in every if case.outcome == "known")
    return Explanations(bug=kinds["bug"], limit=kinds["limit"], unexplained=sum(case.is_new for case in every))


def unmet(cases: Sequence[Case], rows: Iterable[Issue]) -> tuple[str, ...]:
    """Return the rows of whose cases some ran, and none was wrong as the row says; one that is flaky may be unmet."""
    met = {case.known_issue for case in cases if case.outcome == "known"}
    ran = [case.id for case in cases if case.outcome != "skipped"]
    return tuple(row.id for row in rows if row.outcome != "flaky" and row.id not in met and _is_asked(row, ran))


def _is_asked(row: Issue, ran: Iterable[str]) -> bool:
    patterns = [*(row.cases or ()), *row.drawn]
    return any(fnmatchcase(case_id, pattern) for case_id in ran for pattern in patterns)
