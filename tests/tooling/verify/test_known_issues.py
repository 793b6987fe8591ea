"""Known issues: strict data, ranges that hold where they say, and failures that are what a row speaks of."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import Circumstances, Issue, active_issues, as_suite_reads_them, load_issues
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.records.device_record import Case, load_record
from mps_build.verify.record_builder import summed_up, unmet
from mps_build.verify.suite.outcomes import known_death

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
        ({}, {"where": "simulated"}, True),
        ({}, {"where": "official"}, True),
        ({"kind": "apple"}, {}, True),
        ({"kind": "apple"}, {"where": "simulated"}, False),
        ({"kind": "limit"}, {}, False),
        ({"kind": "limit"}, {"where": "official"}, True),
        ({"kind": "limit", "where": ["simulated"]}, {"where": "official"}, False),
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
        ('cases: ["issue-1"]', "says: x", 3, "1: speaks of nothing: give `cases`, or `operators`"),
        ('cases: ["issue-1"]', 'cases: ["issue-1"]\n    dtype: [float16]', 3, "`dtype` is of drawn cases: give `oper"),
        ('cases: ["issue-1"]', 'operators: [add]\n    says: "a("', 9, "says: not a regular expression"),
        ('cases: ["issue-1"]', "operators: [add]\n    levels: {layout0: []}", 9, "levels.layout0"),
        ("link: https://github.com/pytorch/pytorch/issues/1", "kind: bug", 3, "1: a bug needs a `link`, or `lines`"),
        ("link: https://github.com/pytorch/pytorch/issues/1", "lines: [here]", 4, "lines.0"),
        ("outcome: fails", "kind: limit\n    where: [mac]\n    outcome: fails", 3, "take `mac` out of `where`"),
        (
            'cases: ["issue-1"]\n    outcome: fails',
            "operators: [add]\n    dtype: [float16]\n    outcome: crashes",
            3,
            "nobody knows `dtype` or `levels` of a case that ended its process",
        ),
        ('reason: "why"\n', f'reason: "why"\n{ROW}', 2, "more than one row has the id 1"),
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


DRAWN = {
    "id": "layouts",
    "title": "t",
    "lines": ["operations/BinaryOps.mm:12-20"],
    "operators": ["bitwise_*", "sum"],
    "transformation": ["layout", "out"],
    "dtype": ["int*"],
    "levels": {"layout*|producer": ["!dense"]},
    "says": "elements wrong",
    "outcome": "fails",
    "reason": "r",
}


def test_a_row_of_drawn_cases_reaches_the_suite_as_patterns_of_ids_and_levels() -> None:
    (row,) = as_suite_reads_them([Issue.model_validate(DRAWN)])

    assert json.loads(json.dumps(row)) == {
        "id": "layouts",
        "link": None,
        "outcome": "fails",
        "reason": "r",
        "cases": [],
        "drawn": ["bitwise_*:layout:*", "bitwise_*:out:*", "sum:layout:*", "sum:out:*"],
        "dtype": ["int*"],
        "levels": {"layout*|producer": ["!dense"]},
        "says": "elements wrong",
    }


@pytest.fixture(scope="module")
def known() -> Any:
    """The suite's own module: it needs the standard library alone, and its package torch."""
    (path,) = DEVICE_SUITE.glob("*/known.py")
    spec = importlib.util.spec_from_file_location("known_of_the_suite", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _loaded(known: Any, tmp_path: Path, *rows: dict[str, Any]) -> Any:
    file = tmp_path / "known.json"
    file.write_text(json.dumps(as_suite_reads_them([Issue.model_validate(row) for row in rows])))
    return known.load_known(file)


@pytest.mark.parametrize(
    ("case_id", "text", "levels", "expected"),
    [
        ("bitwise_or:layout:3", "12 elements wrong", {}, True),
        ("bitwise_or:layout:4000001", "12 elements wrong", {"layout0": "dense", "layout1": "step"}, True),
        ("bitwise_or:size:3", "12 elements wrong", {}, False),
        ("logical_or:layout:3", "12 elements wrong", {}, False),
        ("bitwise_or:layout:3", "raised RuntimeError", {}, False),
        ("bitwise_or:layout:3", "12 elements wrong", {"dtype": "float32"}, False),
        ("bitwise_or:layout:3", "12 elements wrong", {"layout0": "dense"}, False),
        ("bitwise_or:layout:3", "12 elements wrong", {"layout0": "dense", "producer": "flip"}, True),
    ],
)
def test_a_wrong_answer_of_a_drawn_case_is_known_by_its_operator_its_levels_and_what_is_wrong(
    known: Any, tmp_path: Path, case_id: str, text: str, levels: dict[str, str], expected: bool
) -> None:
    rows = _loaded(known, tmp_path, DRAWN)
    answer = known.Answer(text, {"dtype": "int64", "layout0": "transposed", **levels})

    assert (known.explaining(rows, case_id, [answer]) is not None) is expected


def test_levels_narrow_drawn_cases_alone(known: Any, tmp_path: Path) -> None:
    (row,) = _loaded(known, tmp_path, {**DRAWN, "dtype": ["!float16"], "cases": ["issue-7"]})

    assert row.explains("issue-7", known.Answer("1 elements wrong"))
    assert not row.explains("sum:layout:7", known.Answer("1 elements wrong"))


def test_a_second_fault_does_not_hide_behind_a_known_one(known: Any, tmp_path: Path) -> None:
    rows = _loaded(known, tmp_path, {**DRAWN, "levels": None, "dtype": None})
    answers = [known.Answer("1 of 6 elements wrong"), known.Answer("raised RuntimeError")]

    assert known.explaining(rows, "sum:out:1", answers[:1]).id == "layouts"
    assert known.explaining(rows, "sum:out:1", answers) is None


def test_a_drawn_case_that_passes_is_no_unexpected_pass(known: Any, tmp_path: Path) -> None:
    (row,) = _loaded(known, tmp_path, {**DRAWN, "cases": ["issue-7"]})

    assert (row.expects("sum:out:1"), row.expects("issue-7")) == (False, True)


def test_what_a_row_says_is_checked_by_the_suite_too(known: Any, tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    file.write_text(json.dumps([{"id": "1", "cases": [], "outcome": "fails", "says": "a("}]))

    with pytest.raises(known.KnownIssuesError, match=r"known\.json: .*unterminated"):
        known.load_known(file)


@pytest.mark.parametrize(
    ("changed", "reason", "expected"),
    [
        ({}, "the process died with SIGSEGV", False),
        ({"outcome": "crashes"}, "the process died with SIGSEGV", True),
        ({"outcome": "flaky"}, "the process died with SIGSEGV", True),
        ({"outcome": "crashes"}, "ended by the watchdog: no output within the time limit", False),
        ({"outcome": "crashes", "operators": ["mean"]}, "the process died with SIGSEGV", False),
        ({"outcome": "flaky", "dtype": ["float16"]}, "the process died with SIGSEGV", False),
    ],
)
def test_a_case_that_ends_its_process_is_known_by_a_row_that_expects_that(
    changed: dict[str, Any], reason: str, expected: bool
) -> None:
    row = {**DRAWN, "dtype": None, "levels": None, "says": "SIGSEGV", **changed}

    found = known_death("sum:out:17", reason, as_suite_reads_them([Issue.model_validate(row)]))

    assert (found is not None) is expected


def test_a_row_whose_cases_were_run_and_none_failed_so_is_unmet() -> None:
    rows = [
        Issue.model_validate({**DRAWN, "id": "met"}),
        Issue.model_validate({**DRAWN, "id": "unmet"}),
        Issue.model_validate({**DRAWN, "id": "flaky", "outcome": "flaky"}),
        Issue.model_validate({**DRAWN, "id": "elsewhere", "operators": ["mean"]}),
        Issue.model_validate({**DRAWN, "id": "edge", "kind": "limit"}),
    ]
    cases = [
        Case(id="sum:out:1", layer="drawn", outcome="known", known_issue="met"),
        Case(id="sum:out:2", layer="drawn", outcome="known", known_issue="edge"),
        Case(id="sum:out:3", layer="drawn", outcome="failed"),
        Case(id="mean:out:3", layer="drawn", outcome="skipped"),
    ]

    assert unmet(cases, rows) == ("unmet",)
    assert summed_up(cases, rows).model_dump() == {"bug": 1, "limit": 1, "unexplained": 1}


def test_a_record_of_0_2_whose_failures_are_explained_is_read_as_known_issues(tmp_path: Path) -> None:
    why = {"id": "order", "letter": "bug", "link": "https://a.example/9", "reason": "the result is taken to be dense"}
    cases = [
        {"id": "a", "layer": "l", "outcome": "failed", "explained": why},
        {"id": "b", "layer": "l", "outcome": "crashed", "explained": None},
    ]
    head = {"tool": "mps-build 0.2.0", "statement": "s", "verdict": "regressed", "exit_code": 10, "partial": False}
    more = {"device": "mps", "target": {}, "started": "2026-11-01T00:00:00+00:00", "seconds": 1.0}
    document = {"schema": "mps-build/record/1", **head, **more, "cases": cases, "known_issues": []}
    document["counts"] = {"failed": 1, "crashed": 1}
    file = tmp_path / "record.json"
    file.write_text(json.dumps(document))

    record = load_record(file)

    assert [(case.outcome, case.known_issue, case.is_new) for case in record.cases] == [
        ("known", "order", False),
        ("crashed", None, True),
    ]
    assert [(row.id, row.kind, row.link) for row in record.known_issues] == [("order", "bug", "https://a.example/9")]
    assert {word: number for word, number in record.counts.items() if number} == {"known": 1, "crashed": 1}


def _alike(rows: Iterable[Issue]) -> list[list[str]]:
    """Rows that hold in the same place for the same levels: what may be one row, if the mechanism is one."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        own = {"id", "title", "link", "lines", "since", "cases", "operators", "says", "shown_by", "reason", "fixed_by"}
        alike.setdefault(row.model_dump_json(exclude=own), []).append(row.id)
    return [ids for ids in alike.values() if len(ids) > 1]


def test_the_table_is_one_that_a_person_can_hold() -> None:
    rows = load_issues(SHIPPED)

    assert len(rows) > 50
    assert len(rows) <= 200, f'docs/verify/known_issues.md, "The table is full"; rows that agree: {_alike(rows)}'
    assert SHIPPED.stat().st_size <= 150_000


def test_every_patch_that_a_row_names_is_there() -> None:
    named = [row.fixed_by for row in load_issues(SHIPPED) if row.fixed_by]

    assert [name for name in named if not (patches_root().parent / name).is_file()] == []


def test_every_issue_that_a_row_names_stands_in_the_suite() -> None:
    sources = "".join(path.read_text() for path in sorted(DEVICE_SUITE.glob("**/*.py")))
    cases = [case for row in load_issues(SHIPPED) for case in row.cases or ()]
    named = {case.split("-")[1].rstrip("*") for case in cases if case.startswith("issue-")}

    assert len(named) > 50
    assert sorted(number for number in named if number not in sources) == []


def test_a_newest_release_on_a_newest_mac_has_few_known_issues() -> None:
    here = Circumstances(device="mps", torch="2.15.0", macos="26.1", chip="Apple M4", virtual=False)

    assert len(active_issues(load_issues(SHIPPED), here)) <= 32


def test_a_rehearsal_on_a_newer_cpu_has_no_known_issue() -> None:
    assert active_issues(load_issues(SHIPPED), Circumstances(device="cpu", torch="2.13.0")) == ()


SUITE = Path(__file__).parents[2] / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
ROWS = load_issues(SUITE / "known_issues.yaml")
# What the suite has, as the torch of PYTHON sees it: names, and of each operator its dtypes and factors.
LIST = """
import importlib.util, json, pathlib, sys
sys.path.insert(0, sys.argv[1])
import operators, transforms
cases = []
for path in sorted(pathlib.Path(sys.argv[1]).rglob("test_*.py")):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    cases += [case.id for case in module.cases.listed(full=True)]
every, ways = operators.described(), transforms.known()
def factors(one):
    found = [name for name, _ in one.factors]
    found += [name for way in ways.values() if way.applies(one) for name, _ in way.factors(one)]
    return [f"{name}=" if f"@{name}" in found else name.lstrip("@") for name in found]
print(json.dumps({"cases": cases, "transformations": list(ways), "operators": {
    name: {"dtypes": [str(dtype)[6:] for dtype in one.kinds], "factors": factors(one)}
    for name, one in every.items()}}))
"""


@pytest.fixture(scope="module")
def suite() -> dict[str, Any]:
    if not PYTHON:
        pytest.skip("needs a Python with torch: nox -s tests -- --tier torch")
    done = subprocess.run(
        (PYTHON, "-W", "ignore", "-c", LIST, str(SUITE)), check=True, capture_output=True, text=True, timeout=600
    )
    names: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return names


def _unknown(patterns: tuple[str, ...] | None, names: list[str]) -> list[str]:
    return [one for one in patterns or () if not any(fnmatchcase(name, one.lstrip("!")) for name in names)]


def _faults(row: Issue, suite: dict[str, Any]) -> list[str]:
    mine = [
        one for name, one in suite["operators"].items() if any(fnmatchcase(name, each) for each in row.operators or ())
    ]
    factors = [factor for one in mine for factor in one["factors"]]
    named = tuple(factor for names in row.levels or () for factor in names.split("|"))
    return [
        *_unknown(row.cases, suite["cases"]),
        *_unknown(row.operators, list(suite["operators"])),
        *_unknown(row.transformation, suite["transformations"]),
        *_unknown(row.dtype, [dtype for one in mine for dtype in one["dtypes"]]),
        *_unknown(named, factors),
    ]


def test_what_a_row_names_is_there(suite: dict[str, Any]) -> None:
    assert len(suite["operators"]) > 500 and len(suite["cases"]) > 500
    assert {row.id: found for row in ROWS if (found := _faults(row, suite))} == {}


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"cases": ["issue-0-*"]}, "issue-0-*"),
        ({"operators": ["soft_max"]}, "soft_max"),
        ({"operators": ["softmax"], "transformation": ["layouts"]}, "layouts"),
        ({"operators": ["softmax"], "dtype": ["float33"]}, "float33"),
        ({"operators": ["softmax"], "levels": {"layout*|no_such": ["!dense"]}}, "no_such"),
    ],
)
def test_a_name_that_is_not_there_is_found(changed: dict[str, Any], fault: str, suite: dict[str, Any]) -> None:
    row = {"id": "1", "title": "t", "lines": ["a.mm"], "outcome": "fails", "reason": "r", **changed}

    assert _faults(Issue.model_validate(row), suite) == [fault]


# What is wrong in my release.


@pytest.mark.parametrize(
    ("torch", "release", "gone"),
    [
        (">=2.8,<2.10", "2.8.0", "2.10"),
        ("<2.4", "2.3.1", "2.4"),
        (">=2.8", "2.9.0", None),
        ("==2.6.0", "2.6.0", None),
        (None, "2.6.0", None),
        ("<2.5,!=2.0.*,!=2.1.*", "1.13.1", "2.0"),
        ("<2.5,!=2.0.*,!=2.1.*", "2.4.1", "2.5"),
    ],
)
def test_the_next_release_that_a_range_leaves_out_is_without_the_bug(
    torch: str | None, release: str, gone: str | None
) -> None:
    assert issue(torch=torch).gone_after(release) == gone


KNOWN_ROWS = (
    ROW
    + """\
  - {id: "2", link: "https://a.example/2", title: old macOS, torch: ">=2.0", macos: "<15", chips: [M1], virtual: true,
     cases: [c], outcome: fails, reason: r, fixed_by: patches/two.patch}
  - {id: "3", kind: apple, link: "https://a.example/3", title: "Apple's", cases: [c], outcome: flaky, reason: r}
  - {id: "4", kind: limit, title: ours, cases: [c], outcome: fails, reason: r}
  - {id: "5", lines: [Copy.mm], where: [simulated], title: elsewhere, cases: [c], outcome: fails, reason: r}
  - {id: "6", lines: [Copy.mm], devices: [cpu], title: the CPU, cases: [c], outcome: fails, reason: r}
"""
)


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        (["torch==2.8.0"], ["1", "2", "3"]),
        (["torch == 2.8.0", "--macos", "15.2"], ["1", "3"]),
        (["torch==2.8.0", "--macos=14"], ["1", "2", "3"]),
        (["v2.9.1"], ["2", "3"]),
        (["torch==1.12.1"], ["3"]),
    ],
)
def test_the_known_issues_of_a_release_are_listed(
    arguments: list[str], ids: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, answer = write(tmp_path, KNOWN_ROWS), tmp_path / "answer.json"

    status = main("verify_mps", ["--known", *arguments, "--known-issues", str(path), "--json", str(answer)])

    document, printed = json.loads(answer.read_text()), capsys.readouterr().out
    assert status == document["exit_code"] == 0
    assert [row["id"] for row in document["known_issues"]] == ids
    assert f"{len(ids)} known issues of MPS in torch {document['release']}" in printed
    for name, words in {
        "1": ("one", "2.9", "https://github.com/pytorch/pytorch/issues/1"),
        "2": ("old macOS", "macOS <15; M1; a virtual Mac", "patches/two.patch"),
    }.items():
        assert all(word in printed for word in words) == (name in ids)


def test_every_release_has_a_list_of_the_shipped_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("verify_mps", ["--known", "torch==2.10.0", "--macos", "15.2"]) == 0
    assert "https://github.com/pytorch/pytorch/issues/175189" in capsys.readouterr().out


def test_of_many_lines_of_host_code_a_terminal_shows_the_first_and_the_document_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [f"aten/src/ATen/native/mps/operations/ReduceOps.mm:{number}" for number in (569, 1198, 1441)]
    row = f'  - {{id: "1", lines: [{", ".join(lines)}], title: t, cases: [c], outcome: fails, reason: r}}\n'
    path, answer = write(tmp_path, row), tmp_path / "answer.json"

    main("verify_mps", ["--known", "torch==2.8.0", "--known-issues", str(path), "--json", str(answer)])

    printed = capsys.readouterr().out
    assert "ReduceOps.mm:569 and 2 more" in printed
    assert "aten/src" not in printed
    assert json.loads(answer.read_text())["known_issues"][0]["lines"] == lines


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--known takes a release"),
        (["torch>=2"], "torch>=2: --known takes one release"),
        (["torch"], "torch: --known takes one release"),
        (["torch==1.11.0"], "torch 1.11.0 has no MPS"),
        (["none.whl"], "none.whl: "),
        (["v7.7.7"], "v7.7.7"),
        (["torch==2.8.0", "--macos", "ventura"], "--macos ventura: is not a version of macOS"),
        (["torch==2.8.0", "--quick", "--python=3.12"], "--quick, --python: not beside --known, which runs nothing"),
        (["torch==2.8.0", "--known-issues", "none.yaml"], "none.yaml"),
    ],
)
def test_what_has_no_list_is_refused(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert main("verify_mps", ["--known", *arguments, "--json", "answer.json"]) == 2
    assert words in json.loads(Path("answer.json").read_text())["error"]
