"""Known history: which reports hold for a release, what the device says of each, and the reasons of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mps_build.common.known_issues import Issue, load_issues
from mps_build.common.records.device_record import Case
from mps_build.verify.history import (
    HistoryReasons,
    Report,
    answers,
    faults,
    history,
    load_reasons,
    reports,
    share_shown,
)
from mps_build.verify.reports.history_page import history_page

TESTS = Path(__file__).parents[2]
REASONS: dict[str, Any] = {
    "schema_version": 1,
    "not_shown": {"3": {"cause": "host", "why": "the case waits too soon for it"}},
    "other": {"5": "its case fails by an operator that is missing"},
}


def _issue(name: str, *, torch: str, devices: tuple[str, ...] = ("mps",)) -> Issue:
    link = f"https://github.com/pytorch/pytorch/issues/{name}"
    row = {
        "id": name,
        "link": link,
        "title": f"title {name}",
        "since": "2.0",
        "torch": torch,
        "cases": [f"case-{name}-*"],
    }
    return Issue.model_validate({**row, "devices": devices, "outcome": "fails", "reason": "wrong"})


def _case(name: str, outcome: str, *issue: str) -> Case:
    return Case.model_validate({"id": name, "layer": "regressions", "outcome": outcome, "issue": issue})


def _found() -> tuple[Report, ...]:
    issues = [_issue("1", torch="<2.7"), _issue("2", torch=">=2.7"), _issue("3", torch=">=2.0")]
    issues.append(_issue("cuda", torch=">=2.0", devices=("cuda",)))
    entries = [{"issue": name, "title": f"title {name}"} for name in ("1", "4", "5", "6")]
    return reports(issues, entries, release="2.6.0")


_SAID = {
    "14.4": {"1": "shown", "3": "passed", "4": "shown", "5": "shown", "6": "passed"},
    "15.2": {"1": "passed", "3": "passed", "4": "passed", "5": "shown", "6": "passed"},
}


def test_a_report_holds_that_is_listed_for_mps_or_stands_in_the_catalogue_alone() -> None:
    assert [(one.id, one.is_listed) for one in _found()] == [
        *(("1", True), ("3", True)),
        *(("4", False), ("5", False), ("6", False)),
    ]


def test_one_case_that_fails_shows_a_report_and_a_skipped_one_says_nothing() -> None:
    cases = [
        _case("case-1-a", "passed"),
        _case("case-1-b", "known"),
        _case("x", "crashed", "4"),
        _case("y", "skipped", "5"),
    ]

    assert answers(_found(), [*cases, _case("case-3-a", "passed")]) == {"1": "shown", "3": "passed", "4": "shown"}


def test_what_is_shown_by_one_macos_is_shown_and_another_fault_shows_nothing() -> None:
    lines = history(_found(), _SAID, HistoryReasons.model_validate(REASONS))

    assert [(line.report.id, line.is_shown) for line in lines] == [("1", True), ("3", False), ("4", True)]
    assert share_shown(lines) == (1, 2)  # 4 is shown, and nobody lists it


def test_each_reason_stands_where_a_report_is_not_shown_and_nowhere_else() -> None:
    why = {"cause": "gpu", "why": "a race on the GPU, by the report"}
    reasons = HistoryReasons.model_validate({"schema_version": 1, "not_shown": {"1": why, "9": why}})

    found = faults(history(_found(), _SAID, reasons), reasons)

    assert [fault.partition(":")[0] for fault in found] == ["3", "1", "9"]


def test_the_page_has_a_row_for_each_and_counts_what_passes() -> None:
    reasons = HistoryReasons.model_validate(REASONS)

    page = history_page(history(_found(), _SAID, reasons), _found(), _SAID, reasons, release="2.6.0")

    assert "**1 of 2** known issues whose cause lies in host code" in page
    assert "| 3 | title 3 | passed | passed | host code or kernels | the case waits too soon for it |" in page
    assert "1 of them are shown, and 1 have cases of their own that pass" in page


def test_our_own_reasons_fit_what_was_answered() -> None:
    said = json.loads((TESTS / "sensitivity" / "history.json").read_text(encoding="utf-8"))
    entries = json.loads((TESTS / "sensitivity" / "catalogue.json").read_text(encoding="utf-8"))["entries"]
    reasons = load_reasons(TESTS / "sensitivity" / "history.yaml")
    found = reports(load_issues(TESTS / "device" / "known_issues.yaml"), entries, release=said["release"])
    lines = history(found, said["answers"], reasons)

    assert sorted(said["answers"]) == ["14.4", "15.2"]
    assert faults(lines, reasons) == []
    shown, whole = share_shown(lines)
    assert shown / whole >= 0.6
