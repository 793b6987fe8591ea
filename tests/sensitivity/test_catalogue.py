"""Every bug of the catalogue that a CPU can imitate is planted, and the suite's own cases of that issue must notice it.

python -m pytest -c tests/device/pytest.ini --rootdir tests/sensitivity tests/sensitivity
"""

from __future__ import annotations

import pytest

from catalogue import CATALOGUE, ENTRIES, MUST, SAMPLES, WAITING, cases_of, load_plots, plant_of, plants_of
from suite_in_process import Suite

PLOTS = load_plots()
PLANTED = sorted(issue for issue in MUST if plant_of(issue) in PLOTS)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return Suite()


def test_every_entry_of_tier_a_and_b_is_planted_or_says_why_not() -> None:
    excused = CATALOGUE["not_imitable"]

    assert sorted(MUST - set(PLANTED) - set(excused)) == []
    assert sorted(set(excused) & set(PLANTED)) == []
    assert all(len(reason) > 20 for reason in excused.values())


def test_every_plant_has_an_entry_that_names_its_sample() -> None:
    entered = {plant_of(row["issue"]): row.get("sample") for row in ENTRIES}

    assert sorted(name for name in PLOTS if entered.get(name) not in SAMPLES) == []
    assert sorted(name for name, sample in entered.items() if sample and name not in PLOTS) == []


def test_every_plant_says_what_goes_wrong() -> None:
    assert sorted(name for name, plot in PLOTS.items() if len(plot.told[name]) < 20) == []


def test_plants_are_chosen_by_sample_and_by_how_they_were_written() -> None:
    blind = {name for name, sample in SAMPLES.items() if sample["blind"]}
    one = min(blind)

    assert blind and blind != set(SAMPLES)
    assert plants_of([one]) < plants_of(blind=True) == plants_of(blind) < set(PLOTS)
    with pytest.raises(ValueError, match="no such sample: latest; there are "):
        plants_of(["latest"])


def test_every_entry_of_the_catalogue_has_a_case() -> None:
    every = Suite(full=True).cases

    assert sorted(row["issue"] for row in ENTRIES if not cases_of(row["issue"], every)) == sorted(WAITING)


def test_what_waits_for_a_case_is_a_plant_of_a_blind_sample_and_says_what_it_lacks() -> None:
    blind = plants_of(blind=True)

    assert sorted(issue for issue in WAITING if plant_of(issue) not in blind) == []
    assert sorted(issue for issue, lack in WAITING.items() if len(lack) < 20) == []


@pytest.mark.parametrize("issue", PLANTED)
def test_the_suite_fails_with_the_bug_and_passes_without(issue: str, suite: Suite) -> None:
    plot, name = PLOTS[plant_of(issue)], plant_of(issue)
    cases = cases_of(issue, suite.cases)
    caught = suite.first_failure(cases, plot.makers[name])
    healthy = suite.ask(caught.case).failure if caught else None

    assert healthy is None
    assert plot.hits[name] > 0, "not exercised"
    assert caught is not None, f"missed by {[case.id for case in cases]}"
