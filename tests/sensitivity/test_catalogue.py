"""Every bug of the catalogue that a CPU can imitate is planted, and the suite's own cases of that issue must notice it.

python -m pytest -c tests/device/pytest.ini --rootdir tests/sensitivity tests/sensitivity
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from suite_in_process import Suite

FILES = ("plants_attention", "plants_layers", "plants_linear", "plants_numbers", "plants_tensors", "plants_training")
CATALOGUE = json.loads((Path(__file__).parent / "catalogue.json").read_text(encoding="utf-8"))
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
    return Suite(("regressions",))


def test_every_entry_of_tier_a_and_b_is_planted_or_says_why_not() -> None:
    excused = CATALOGUE["not_imitable"]

    assert sorted(MUST - set(PLANTED) - set(excused)) == []
    assert sorted(set(excused) & set(PLANTED)) == []
    assert all(len(reason) > 20 for reason in excused.values())


def test_every_entry_of_the_catalogue_has_a_case() -> None:
    shown = {issue for case in Suite(("regressions",), full=True).cases for issue in case.issues}

    assert sorted({row["issue"] for row in CATALOGUE["entries"]} - shown) == []


@pytest.mark.parametrize("issue", PLANTED)
def test_the_suite_fails_with_the_bug_and_passes_without(issue: str, suite: Suite) -> None:
    plot, name = PLOTS[_name(issue)], _name(issue)
    cases = [case for case in suite.cases if issue in case.issues]
    healthy = [asked.failure for case in cases if (asked := suite.ask(case)).failure]
    caught = suite.first_failure(cases, plot.makers[name])

    assert healthy == []
    assert plot.hits[name] > 0, "not exercised"
    assert caught is not None, f"missed by {[case.id for case in cases]}"
