"""How `--quick` is chosen: what comes before all others, and what still joins it."""

from __future__ import annotations

from choose_quick import QUICK, Measured, choose, host_code_cases
from device_suite.selection import load_quick
from suite_in_process import Suite

MEASURED = Measured(
    {"a": 0.1, "b": 0.1, "c": 0.2, "dear": 0.9},
    {"a": {("issue", "1")}, "b": {("issue", "1")}, "c": {("issue", "2")}, "dear": {("issue", "3")}},
)


def test_what_comes_first_is_chosen_whatever_it_costs_and_counts() -> None:
    assert choose(MEASURED, 0.0, {}, 0.0, ["dear"]) == ["dear"]
    assert choose(MEASURED, 9.0, {}, 0.0, ["b"]) == ["b", "c", "dear"]
    assert choose(MEASURED, 9.0, {}, 0.0) == ["a", "c", "dear"]


def test_quick_has_the_cases_of_the_host_code_and_they_are_cases() -> None:
    quick = load_quick(QUICK)

    assert len(host_code_cases()) > 180
    assert set(host_code_cases()) <= quick <= set(Suite().file_of)
