"""What the meter makes of numbers, without torch: intervals that hold the truth, and drift that is not a chance."""

from __future__ import annotations

import random
from importlib import import_module
from typing import Any

import pytest

intervals: Any = import_module("device_benchmark.intervals")  # of benchmarks/device, which runs in the venv of a torch


@pytest.mark.parametrize("pairs", [3, 5, 9, 15])
def test_an_interval_holds_the_true_ratio_about_as_often_as_it_says(pairs: int) -> None:
    draw = random.Random(pairs)
    rounds = 40
    held = 0
    for number in range(rounds):
        ratios = [2.0 * draw.lognormvariate(0.0, 0.2) for _ in range(pairs)]
        found = intervals.bootstrap_median(ratios, seed=number)
        held += found.low <= 2.0 <= found.high

    assert held >= rounds - 3


def test_an_interval_of_equal_ratios_is_as_wide_as_the_meter_can_tell() -> None:
    found = intervals.bootstrap_median([3.0] * 9)

    assert (found.median, found.low, found.high) == (
        pytest.approx(3.0),
        pytest.approx(3.0 / 1.02),
        pytest.approx(3.0 * 1.02),
    )


def test_more_pairs_give_a_narrower_interval() -> None:
    draw = random.Random(0)
    ratios = [draw.lognormvariate(0.0, 0.1) for _ in range(15)]
    few, many = intervals.bootstrap_median(ratios[:4]), intervals.bootstrap_median(ratios)

    assert many.high / many.low < few.high / few.low


def test_times_that_only_scatter_seldom_count_as_drift() -> None:
    draw = random.Random(1)
    alarms = sum(intervals.is_drift([draw.lognormvariate(0.0, 0.2) for _ in range(9)]) for _ in range(400))

    assert alarms <= 8


def test_times_that_grow_under_the_same_scatter_count_as_drift() -> None:
    draw = random.Random(2)
    grown = [(1.0 + 0.06 * step) * draw.lognormvariate(0.0, 0.03) for step in range(11)]

    assert intervals.is_drift(grown)
    assert intervals.growth(grown) == pytest.approx(0.6, abs=0.15)


def test_a_growth_of_a_few_percent_is_no_drift_however_steady() -> None:
    assert not intervals.is_drift([1.0 + 0.005 * step for step in range(12)])


def test_the_chance_of_an_order_is_counted_exactly() -> None:
    assert intervals._chance_of(3, 3) == pytest.approx(1 / 6)  # only 1 2 3
    assert intervals._chance_of(1, 3) == pytest.approx(1 / 2)  # and the two with one fall
    assert intervals._chance_of(-3, 3) == pytest.approx(1.0)
