"""Two records side by side: what changed is named, and what only one of them ran is not a change."""

from __future__ import annotations

import json
from pathlib import Path

from mps_build.cli import main
from mps_build.common.records.device_record import load_record, write_record
from mps_build.verify.reports.side_by_side import compare_records
from small_records import case, record


def test_new_failures_and_new_passes_are_named() -> None:
    before = record(
        case("a", "passed"), case("b", "failed"), case("c", "known"), case("d", "crashed"), case("e", "skipped")
    )
    after = record(
        case("a", "crashed"), case("b", "passed"), case("c", "passed"), case("d", "timeout"), case("e", "failed")
    )

    found = compare_records(before, after)

    assert [(change.id, change.before, change.after) for change in found.newly_failing] == [
        ("a", "passed", "crashed"),
        ("e", "skipped", "failed"),
    ]
    assert [(change.id, change.reason) for change in found.newly_passing] == [("b", "off"), ("c", None)]


def test_what_one_record_did_not_run_is_no_change() -> None:
    found = compare_records(
        record(case("a", "failed"), case("b", "passed")), record(case("b", "passed"), case("c", "failed"))
    )

    assert (found.newly_failing, found.newly_passing) == ((), ())
    assert (found.only_before, found.only_after) == (("a",), ("c",))


def test_a_grown_error_is_named_though_both_pass_and_small_ones_are_not() -> None:
    before = record(case("grew", "passed", 0.2), case("same", "passed", 0.6), case("tiny", "passed", 0.001))
    after = record(case("grew", "passed", 0.9), case("same", "passed", 0.7), case("tiny", "passed", 0.05))

    found = compare_records(before, after)

    assert [(change.id, change.before, change.after) for change in found.error_growth] == [("grew", "0.2", "0.9")]


def test_a_slower_case_is_named_and_the_noise_of_short_ones_is_not() -> None:
    before = record(case("slow", "passed", seconds=1.0), case("short", "passed", seconds=0.01))
    after = record(case("slow", "passed", seconds=4.0), case("short", "passed", seconds=0.4))

    assert [change.id for change in compare_records(before, after).slower] == ["slow"]


def test_other_circumstances_are_said_and_the_document_is_json() -> None:
    found = compare_records(record(torch="2.12.0"), record(torch="2.13.0", partial=True))

    assert not found.same_circumstances
    assert found.differences["torch"] == ("2.12.0", "2.13.0")
    assert json.loads(json.dumps(found.document()))["partial"] == [False, True]
    assert compare_records(record(), record()).same_circumstances


def test_the_command_takes_records_or_their_folders_and_refuses_a_mixture(tmp_path: Path) -> None:
    for name, outcome in (("before", "passed"), ("after", "failed")):
        write_record(record(case("a", outcome)), tmp_path / name / "record.json")
    answer = tmp_path / "answer.json"

    status = main("compare", [str(tmp_path / "before"), str(tmp_path / "after" / "record.json"), "--json", str(answer)])

    assert status == 0
    assert [change["id"] for change in json.loads(answer.read_text())["newly_failing"]] == ["a"]
    assert main("compare", [str(tmp_path / "before"), "torch==2.13.0"]) == 2


def test_a_record_with_a_bound_that_is_infinite_can_be_read_again(tmp_path: Path) -> None:
    """Met with a case whose bound was infinite: the record held a number that JSON has not, and repro refused it."""
    path = tmp_path / "record.json"
    given = case("a", "failed").model_copy(update={"bound": float("inf"), "error": {"bound": float("nan")}})
    write_record(record(given), path)

    (found,) = load_record(path).cases
    assert (found.outcome, found.bound, found.error) == ("failed", None, {"bound": None})
