"""The time left of a run of the device suite: it does not jump where slow cases come first."""

from __future__ import annotations

import re

import pytest
from mps_build.common.console import progress_line
from mps_build.verify.pace import Pace, recorded_run, weight

SLOW, FAST = "test_transformers_finetune.py", "test_opinfo_float32.py"


def test_the_time_left_stays_true_from_the_slow_cases_to_the_fast_ones() -> None:
    files = {f"slow{n}": SLOW for n in range(10)} | {f"fast{n}": FAST for n in range(3000)}
    seconds = {case: weight(file) * 3 for case, file in files.items()}  # a machine three times as slow
    whole, elapsed, pace = sum(seconds.values()), 0.0, Pace()

    for number, case in enumerate(files):
        elapsed += seconds[case]
        pace.add(case, files)
        left = pace.seconds_left(elapsed)
        if left is not None:
            assert abs(left - (whole - elapsed)) < 1, number

    assert left == 0


def test_a_resumed_run_counts_only_what_it_does_itself() -> None:
    files = dict.fromkeys("abcd", FAST)
    pace = Pace(before=["a", "b"])

    pace.add("c", files)

    assert pace.seconds_left(7.0) == 7.0


def test_too_little_says_nothing_and_an_event_of_the_run_is_no_case() -> None:
    files = {f"c{n}": FAST for n in range(1000)}
    pace = Pace()

    pace.add("suite::outside", files)
    assert pace.seconds_left(3.0) is None
    pace.add("c0", files)
    assert pace.seconds_left(3.0) is None


def test_a_better_figure_replaces_the_rate_in_the_line_of_progress() -> None:
    assert progress_line("Cases", 50, 200, "cases", 100.0, left=12.0) == "Cases  50/200 cases  0.5/s  12.0s left"


@pytest.mark.parametrize("device", ["mps", "cpu", "cuda"])
@pytest.mark.parametrize("quick", [False, True])
def test_how_long_a_whole_run_took_is_said_before_one_starts(device: str, quick: bool) -> None:
    said = recorded_run(device, quick=quick)

    assert re.match(r"some [\d,]+ cases took (\d+m)?\d+s on ", said)
    assert ("none was timed yet" in said) == (device == "mps")
