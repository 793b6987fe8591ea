"""Sixty logs in the dress of collectors: the cause, if one is sure, and the first error are found in each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hostile_logs import COLLECTORS
from mps_build.common import strict_yaml
from mps_build.common.logs.relays import infer_prefix
from mps_build.common.logs.text import meant_lines
from mps_build.host.triage import classify_device_text, explain
from mps_build.host.triage.diagnosis import Triage
from rows import for_each

RECORDED = Path(__file__).parents[2] / "recorded"
ROWS: list[dict[str, Any]] = strict_yaml.unchecked((RECORDED / "triage_collected.yaml").read_text("utf-8"))


EVERY = 3


@cache
def _explained(number: int, every: int) -> dict[str, Triage]:
    """Return what is said of a row in every so-manieth dress, as it is among them."""
    chosen = list(COLLECTORS)[number % every :: every]
    return {dress: explain(COLLECTORS[dress](ROWS[number]["text"])) for dress in ("as it is", *chosen)}


def _shows(row: dict[str, Any], found: Triage) -> bool:
    error = found.first_error
    return error is None if row["shown"] is None else error is not None and row["shown"] in " ".join(error.text.split())


@for_each(range(len(ROWS)), name=lambda number: str(ROWS[number]["what"]))
def test_no_dress_changes_the_cause(number: int) -> None:
    _check_dresses(number, EVERY)


@pytest.mark.slow
@for_each(range(len(ROWS)), name=lambda number: str(ROWS[number]["what"]))
def test_not_one_of_all_dresses_changes_the_cause(number: int) -> None:
    _check_dresses(number, 1)


def _check_dresses(number: int, every: int) -> None:
    named = {dress: found.cause for dress, found in _explained(number, every).items()}

    assert named == dict.fromkeys(named, ROWS[number]["cause"])


def test_the_first_error_is_named_in_99_of_100_logs() -> None:
    seen = [
        (row["what"], dress, _shows(row, found))
        for number, row in enumerate(ROWS)
        for dress, found in _explained(number, EVERY).items()
    ]
    missed = [(what, dress) for what, dress, shown in seen if not shown]

    assert len(seen) > 900
    assert len(missed) <= 0.01 * len(seen), missed


@pytest.mark.parametrize(
    "lines",
    [
        ["[1/9] Building CXX object a.o", "[2/9] Building CXX object b.o", "[3/9] Building CXX object c.o"],
        ["-- Looking for a", "-- Looking for b", "-- Looking for c", "-- Looking for d"],
        ["xcrun: error: no a", "xcrun: error: no b", "xcrun: error: no c", "xcrun: error: no d"],
        ["error: one", "error: two", "error: three", "error: four"],
        ["copying a -> b", "copying c -> d", "copying e -> f", "error: no g"],
        ["+ cd /a", "+ make", "+ make install", "make: *** [x] Error 1"],
        ["shard 1 is read", "shard 2 is read", "shard 3 is read", "shard 4 is broken"],
    ],
)
def test_what_a_build_itself_repeats_is_no_prefix(lines: list[str]) -> None:
    assert infer_prefix(lines) is None


def test_a_prefix_keeps_the_indent_and_the_number_of_its_line() -> None:
    log = "ci-7 | CMake Error at a.txt:1 (message):\nci-7 |\nci-7 |   no such thing\nci-7 | -- done\n"

    assert [(line.number, line.text) for line in meant_lines(log)] == [
        (1, "CMake Error at a.txt:1 (message):"),
        (3, "  no such thing"),
        (4, "-- done"),
    ]


WARNED = """/opt/env/lib/python3.12/torch/nn/functional.py:91: UserWarning: MPS does not support bfloat16 here
ld: warning: ignoring file '/usr/local/lib/libz.dylib': found architecture 'x86_64', required architecture 'arm64'
Undefined symbols are looked up at run time
wrote 12 images
"""


def test_what_a_process_that_ended_with_0_warned_of_is_no_failure() -> None:
    assert classify_device_text(WARNED).category == "unsupported_feature"
    assert classify_device_text(WARNED, exit=1).category == "unsupported_feature"
    assert classify_device_text(WARNED, exit=0).verdict == "noise"
    assert explain(WARNED + "FAILED: a\nmake: *** [a] Error 1\n", exit=1).failed
    assert not explain(WARNED + "FAILED: a\nmake: *** [a] Error 1\n", exit=0).failed
