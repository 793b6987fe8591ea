"""The figures on record: their page is in step with them, and says what is met."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import public_bugs
import pytest
import small_records
import threads
from mps_build.common.records.device_record import write_record
from rows import for_each
from shared import page, record

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
ROWS = json.loads((BENCHMARKS / "results.json").read_text(encoding="utf-8"))


def test_the_page_is_in_step_with_the_figures() -> None:
    text = (BENCHMARKS / "README.md").read_text(encoding="utf-8")

    assert text == page.render(ROWS), "nox -s benchmark -- readme"


@for_each(ROWS, name=lambda row: str(row["name"]))
def test_every_figure_has_its_meaning_command_machine_date_and_spread(row: dict[str, Any]) -> None:
    assert page.MEANINGS.get(row["name"])
    assert {"name", "median", "low", "high", "unit", "command", "machine", "date", "target"} <= row.keys()
    assert row["low"] <= row["median"] <= row["high"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"])
    assert row["command"]
    assert row["machine"]


@for_each(ROWS, name=lambda row: str(row["name"]))
def test_a_figures_command_is_one_that_is_there(row: dict[str, Any]) -> None:
    if script := re.match(r"python (\S+\.py)", row["command"]):
        assert (BENCHMARKS.parent / script[1]).is_file()
    elif benchmark := re.match(r"nox -s benchmark -- (\w+)", row["command"]):
        assert [*BENCHMARKS.glob(f"{benchmark[1]}.py"), *BENCHMARKS.glob(f"*/{benchmark[1]}.py")]


@pytest.mark.parametrize(
    ("median", "target", "verdict"),
    [
        (0.08, "<= 0.08", "yes"),
        (0.0801, "<= 0.08", "**no**"),
        (0.99, ">= 0.99", "yes"),
        (0.98, ">= 0.99", "**no**"),
        (0.47, "<= 0.40 over >= 150 files", "**no**"),
        (1.0, "printed beside", "-"),
        (1.0, "", "-"),
    ],
)
def test_a_target_is_met_or_not(median: float, target: str, verdict: str) -> None:
    assert page.met(median, target) == verdict


def test_a_new_row_takes_the_old_ones_place_and_the_page_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "RESULTS", tmp_path / "results.json")
    monkeypatch.setattr(record, "README", tmp_path / "README.md")
    for value in (3.0, 1.0):
        record.record("b.s", [value], unit="s", command="python x.py", target="<= 2", versions="clang 19")
    record.record("a.s", [1.0, 2.0, 4.0], unit="s", command="python x.py", target="<= 3")

    rows = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert [(row["name"], row["median"]) for row in rows] == [("a.s", 2.0), ("b.s", 1.0)]
    assert (tmp_path / "README.md").read_text(encoding="utf-8") == page.render(rows)
    assert "| b.s |  | 1 s | - | <= 2 | yes | clang 19 |" in page.render(rows)


def test_the_default_is_held_against_settings_of_which_none_exceeds_the_cores() -> None:
    for cores in (1, 2, 3, 8, 16, 64):
        found = threads.settings(cores)

        assert threads.Setting(cores, 1) in found
        assert all((each.processes or 0) * (each.threads or 0) <= cores for each in found)


def test_the_ratio_is_the_default_s_rate_over_the_best_and_what_was_not_run_is_named() -> None:
    document = {
        "concurrency": {"cores": 16, "processes": 8, "threads": 2},
        "cases": [{"outcome": outcome} for outcome in ("passed", "failed", "skipped")],
        "torch": {"version": "2.11.0"},
    }
    default = threads.run_of(document, threads.Setting(), seconds=4.0)
    best = threads.run_of(document, threads.Setting(16, 1), seconds=3.0)
    given = argparse.Namespace(device="cuda", layers="neural")

    row = threads.row_of([default, best], [threads.Setting(4, 1)], given)

    assert default.tested == 2
    assert (row["name"], row["values"]) == ("threads.cuda_rate_ratio", [0.75])
    assert "by default (8 x 2) 0.5; processes x threads 16 x 1 0.7; not run for want of time: 4 x 1" in row["versions"]
    assert threads.row_of([default], [], given)["values"] == [1.0]


def test_each_public_bug_is_declared_once_and_has_its_answers() -> None:
    declared = public_bugs.declared()
    answers = json.loads(public_bugs.ANSWERS.read_text(encoding="utf-8"))

    texts = [path.read_text(encoding="utf-8") for path in (BENCHMARKS / "bugs").glob("*.py")]
    assert len(declared) == sum(text.count("\n@bug(") for text in texts) >= 60
    assert answers.keys() == declared.keys()
    assert {word for words in answers.values() for word in words.values()} <= {"wrong", "right", "absent", "unclear"}


def test_public_bugs_are_judged_by_records_of_whole_runs_alone(tmp_path: Path) -> None:
    for release, is_partial in (("2.6.0", False), ("2.13.0", True)):
        (tmp_path / release).mkdir()
        kept = small_records.record(small_records.case("abs:common:0", "passed")).model_copy(
            update={"partial": is_partial}
        )
        write_record(kept, tmp_path / release / "record.json")

    assert set(public_bugs.records_in(tmp_path)) == {"2.6.0"}
    with pytest.raises(SystemExit, match="no record of a whole run"):
        public_bugs.records_in(tmp_path / "2.6.0")


def test_a_public_bug_is_found_by_a_case_of_it_that_is_wrong_on_the_bad_release_and_right_on_the_good_one() -> None:
    bad = small_records.record(
        small_records.case("add:common:1", "failed"),
        small_records.case("cumsum:common:1", "failed"),
        small_records.case("cumsum:out:2", "failed"),
        small_records.case("cumsum:out:3", "timeout"),
        small_records.case("issue-96614", "known").model_copy(update={"issue": ("96614",)}),
    )
    good = small_records.record(
        small_records.case("add:common:1", "passed"),
        small_records.case("cumsum:common:1", "failed"),
        small_records.case("cumsum:out:2", "passed"),
        small_records.case("cumsum:out:3", "passed"),
        small_records.case("issue-96614", "passed"),
    )

    def found(number: str, operators: str, says: str) -> str | None:
        case = public_bugs.found_by(number, operators, says, bad, good)
        return case.id if case else None

    assert found("1", "cumsum", "") == found("1", "cumsum:out cumprod", "^off") == "cumsum:out:2"
    assert found("1", "cumsum", "NaN") is found("1", "cumprod cumsum:common", "") is None
    assert found("96614", "cumprod", "") == "issue-96614"
    assert public_bugs.found_by("96614", "cumsum", "", good, bad) is None
    assert public_bugs.bad_and_good({"2.10.0": "right", "2.9.1": "wrong", "2.8.0": "right"}) == ("2.9.1", "2.10.0")
