"""Known issues: strict data, ranges that hold where they say, and no row that speaks of nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import Circumstances, Issue, active_issues, as_suite_reads_them, load_issues
from mps_build.common.recipe.catalogue import patches_root

DEVICE_SUITE = Path(__file__).parents[2] / "device"
SHIPPED = DEVICE_SUITE / "known_issues.yaml"

ROW = """\
  - id: "1"
    link: https://github.com/pytorch/pytorch/issues/1
    title: "one"
    since: "2.8"
    torch: ">=2.8,<2.9"
    cases: ["issue-1"]
    outcome: fails
    reason: "why"
"""


def write(tmp_path: Path, rows: str) -> Path:
    path = tmp_path / "known_issues.yaml"
    path.write_text(f"schema_version: 1\nissues:\n{rows}")
    return path


def issue(**fields: object) -> Issue:
    base = {"id": "1", "link": "https://a.example/1", "title": "t", "since": "2.8", "cases": ["c"], "outcome": "fails"}
    return Issue.model_validate({**base, "reason": "r", **fields})


def holds(row: Issue, **facts: object) -> bool:
    here = {"device": "mps", "torch": "2.8.0", "macos": "26.5.2", "chip": "Apple M1 Pro", "virtual": False, **facts}
    return bool(active_issues([row], Circumstances(**here)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        ("2.8.0", True),
        ("2.8.0+cpu", True),
        ("2.8.1.dev20250801", True),
        ("2.9.0.dev20250801", False),
        ("2.9.0a0+git1234", False),
        ("2.9.0", False),
        ("2.7.1", False),
        (None, False),
        ("unknown", False),
    ],
)
def test_a_row_holds_for_the_release_part_of_the_version(torch: str | None, expected: bool) -> None:
    assert holds(issue(torch=">=2.8,<2.9"), torch=torch) is expected


def test_a_nightly_counts_as_the_release_it_leads_to() -> None:
    assert holds(issue(torch=">=2.16"), torch="2.16.0.dev20261101")


@pytest.mark.parametrize(
    ("narrowed", "facts", "expected"),
    [
        ({"macos": "<15"}, {"macos": "14.7"}, True),
        ({"macos": "<15"}, {"macos": "15.0"}, False),
        ({"macos": ">=26"}, {"macos": "26"}, True),
        ({"macos": ">=26"}, {"macos": None}, False),
        ({"chips": ["M1"]}, {}, True),
        ({"chips": ["M1 Pro"]}, {}, True),
        ({"chips": ["M1 Max", "M2"]}, {}, False),
        ({"chips": ["M1"]}, {"chip": None}, False),
        ({"virtual": True}, {}, False),
        ({"virtual": True}, {"virtual": True}, True),
        ({"virtual": True}, {"virtual": None}, False),
        ({}, {"device": "cpu"}, False),
        ({"devices": ["cpu", "cuda"]}, {"device": "cuda"}, True),
    ],
)
def test_a_row_holds_only_where_it_says(narrowed: dict[str, object], facts: dict[str, object], expected: bool) -> None:
    assert holds(issue(**narrowed), **facts) is expected


@pytest.mark.parametrize(
    ("old", "new", "line", "word"),
    [
        ('torch: ">=2.8,<2.9"', "torch: 2.10", 7, "must be text"),
        ('torch: ">=2.8,<2.9"', 'torch: "2.8 to 2.9"', 7, "not a version range"),
        ("outcome: fails", "outcome: breaks", 9, "outcome"),
        ('reason: "why"', "because: x", 10, "unknown key"),
        ('cases: ["issue-1"]', "cases: []", 8, "cases"),
        ("link: https://github.com/pytorch/pytorch/issues/1", "link: 82707", 4, "link"),
        ('title: "one"', 'title: "one"\n    title: "two"', 6, "duplicate key"),
        ("  - id", "  - id: [", 3, ""),
    ],
)
def test_a_corrupt_file_is_refused_with_its_line(tmp_path: Path, old: str, new: str, line: int, word: str) -> None:
    with pytest.raises(UsageError, match=rf"known_issues\.yaml:{line}\b.*{word}|{word}") as caught:
        load_issues(write(tmp_path, ROW.replace(old, new)))

    assert f"known_issues.yaml:{line}" in str(caught.value)


def test_the_suite_gets_rows_without_ranges(tmp_path: Path) -> None:
    rows = as_suite_reads_them(load_issues(write(tmp_path, ROW)))

    assert json.loads(json.dumps(rows)) == [
        {
            "id": "1",
            "link": "https://github.com/pytorch/pytorch/issues/1",
            "outcome": "fails",
            "reason": "why",
            "cases": ["issue-1"],
        }
    ]


def test_no_two_rows_share_an_id() -> None:
    ids = [row.id for row in load_issues(SHIPPED)]

    assert len(ids) == len(set(ids)) > 50


def test_every_patch_that_a_row_names_is_there() -> None:
    named = [row.fixed_by for row in load_issues(SHIPPED) if row.fixed_by]

    assert [name for name in named if not (patches_root().parent / name).is_file()] == []


def test_every_issue_that_a_row_names_stands_in_the_suite() -> None:
    sources = "".join(path.read_text() for path in sorted(DEVICE_SUITE.glob("**/*.py")))
    cases = [case for row in load_issues(SHIPPED) for case in row.cases]
    named = {case.split("-")[1].rstrip("*") for case in cases if case.startswith("issue-")}

    assert len(named) > 50
    assert sorted(number for number in named if number not in sources) == []


def test_a_newest_release_on_a_newest_mac_has_few_known_issues() -> None:
    here = Circumstances(device="mps", torch="2.15.0", macos="26.1", chip="Apple M4", virtual=False)

    assert len(active_issues(load_issues(SHIPPED), here)) < 20


def test_a_rehearsal_has_no_known_issue_in_the_default_layers_but_what_mkl_gets_wrong_with_several_threads() -> None:
    rows = active_issues(load_issues(SHIPPED), Circumstances(device="cpu", torch="2.13.0"))

    rest = [row for row in rows if not all(case.startswith("opinfo-") for case in row.cases)]
    assert [(row.id, row.outcome) for row in rest] == [("142815", "flaky")]
