"""Every bug of the catalogue that a CPU can imitate is planted, and the suite's own cases of that issue must notice it.

python -m pytest -c tests/device/pytest.ini --rootdir tests/sensitivity tests/sensitivity
"""

from __future__ import annotations

import fnmatch
import importlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from device_suite.cases import Case
from suite_in_process import Suite

FILES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("plants_*.py")))
CATALOGUE = json.loads((Path(__file__).parent / "catalogue.json").read_text(encoding="utf-8"))
SHOWN_BY = {row["issue"]: tuple(row.get("cases", ())) for row in CATALOGUE["entries"]}
MUST = {row["issue"] for row in CATALOGUE["entries"] if row["tier"] in ("A", "B")}


def _name(issue: str) -> str:
    return "issue_" + issue.replace("-", "_")


def _plots() -> dict[str, Any]:
    return {
        name: importlib.import_module(file).plot for file in FILES for name in importlib.import_module(file).plot.makers
    }


PLOTS = _plots()
PLANTED = sorted(issue for issue in MUST if _name(issue) in PLOTS)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite()


def _cases_of(issue: str, cases: Iterable[Case]) -> list[Case]:
    """Return the cases that name the issue, and those of the conditions that its entry names."""
    patterns = SHOWN_BY[issue]
    return [
        case for case in cases if issue in case.issues or any(fnmatch.fnmatchcase(case.id, one) for one in patterns)
    ]


def test_every_entry_of_tier_a_and_b_is_planted_or_says_why_not() -> None:
    excused = CATALOGUE["not_imitable"]

    assert sorted(MUST - set(PLANTED) - set(excused)) == []
    assert sorted(set(excused) & set(PLANTED)) == []
    assert all(len(reason) > 20 for reason in excused.values())


def test_every_entry_of_the_catalogue_has_a_case() -> None:
    every = Suite(full=True).cases

    assert [row["issue"] for row in CATALOGUE["entries"] if not _cases_of(row["issue"], every)] == []


@pytest.mark.parametrize("issue", PLANTED)
def test_the_suite_fails_with_the_bug_and_passes_without(issue: str, suite: Suite) -> None:
    plot, name = PLOTS[_name(issue)], _name(issue)
    cases = _cases_of(issue, suite.cases)
    caught = suite.first_failure(cases, plot.makers[name])
    healthy = suite.ask(caught.case).failure if caught else None

    assert healthy is None
    assert plot.hits[name] > 0, "not exercised"
    assert caught is not None, f"missed by {[case.id for case in cases]}"
