"""Records of several releases as one table: what was seen beside what was claimed; damaged records say nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.known_issues import Issue
from mps_build.common.records.device_record import Case, Record, Torch, WheelFile
from mps_build.verify.releases import page
from mps_build.verify.releases.sweep import chosen
from mps_build.verify.releases.table import SLOW, Run, Table, make_table, selection_of
from packaging.version import Version
from small_records import record

REGRESSIONS = Path(__file__).parents[3] / "device" / "regressions"
LAYER_NORM = {"id": "131750", "torch": ">=2.4,<2.6", "cases": ["issue-131750"], "outcome": "flaky"}


def issue(**fields: Any) -> Issue:
    link = f"https://github.com/pytorch/pytorch/issues/{fields['id']}"
    return Issue.model_validate({"link": link, "title": "t", "outcome": "fails", "reason": "r", **fields})


def run(release: str, *cases: Case, **fields: Any) -> Run:
    torch = Torch(version=release, wheel=WheelFile(file=f"torch-{release}.whl", sha256=release * 8))
    return Run(release=release, record=record(*cases).model_copy(update={"torch": torch, **fields}))


def case(name: str, outcome: str, reason: str | None = None, **fields: Any) -> Case:
    return Case.model_validate(
        {"id": name, "layer": "regressions", "issue": ["131750"], "outcome": outcome, "reason": reason, **fields}
    )


def table(issues: list[Issue], *runs: Run) -> Table:
    return make_table(issues, runs, macos="15.2")


def words(found: Table, at: int = 0) -> dict[str, str]:
    """Return a row's marks by release."""
    return {release: page.mark(cell) for release, cell in found.rows[at].cells.items()}


def test_a_bug_that_is_seen_where_it_is_claimed_agrees_and_has_its_ends() -> None:
    outcomes = {"2.10.0": "passed", "2.4.1": "known", "2.3.1": "passed", "2.5.1": "failed", "2.6.0": "unexpected_pass"}

    found = table(
        [issue(**LAYER_NORM)],
        *(run(release, case("issue-131750", outcome, "off by 3")) for release, outcome in outcomes.items()),
    )

    row = found.rows[0]
    assert [each.release for each in found.columns] == ["2.3.1", "2.4.1", "2.5.1", "2.6.0", "2.10.0"]
    assert words(found) == {"2.3.1": "o", "2.4.1": "x", "2.5.1": "x", "2.6.0": "o", "2.10.0": "o"}
    assert (row.status, row.last_good, row.first_bad, row.first_good) == ("agrees", "2.3.1", "2.4.1", "2.6.0")
    assert row.cells["2.5.1"].case == "issue-131750"


def test_what_is_seen_elsewhere_is_marked_and_the_oldest_release_is_no_first_one() -> None:
    outcomes = {"2.3.1": "failed", "2.4.1": "failed", "2.5.1": "passed"}

    found = table([issue(**LAYER_NORM)], *(run(at, case("issue-131750", word)) for at, word in outcomes.items()))

    assert words(found) == {"2.3.1": "x!", "2.4.1": "x", "2.5.1": "o!"}
    assert found.rows[0].status == "differs"
    assert page.ends(found.rows[0]) == ("2.3.1 or before", "2.5.1")


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (case("issue-131750", "failed", "raised RuntimeError: software Metal: no such selector"), "?"),
        (case("issue-131750", "timeout", "no answer in time"), "?"),
        (case("issue-131750", "own_fault", "which cannot be had in a simulation"), "?"),
        (case("issue-131750", "failed", "as a limit says"), "?"),
        (case("issue-131750", "failed", "another fault"), "?"),
        (case("issue-131750", "skipped", "needs torch 2.5"), "–"),
        (case("issue-131750", "known", "raised TypeError: BFloat16 is not supported on MPS"), "–"),
        (case("issue-0", "passed"), ""),
        (case("issue-131750", "crashed", "off: ended by SIGABRT"), "x"),
    ],
)
def test_what_is_ours_or_not_there_is_never_wrong(wrong: Case, expected: str) -> None:
    limit = issue(id="l", kind="limit", cases=["issue-*"], says="as a limit says")

    found = table([issue(**LAYER_NORM, says="off"), limit], run("2.4.1", wrong))

    assert words(found)["2.4.1"] == expected


def test_a_case_that_another_bug_explains_in_that_release_is_not_this_one() -> None:
    other = issue(id="165267", torch="<2.4", cases=["issue-1317*"])

    found = table(
        [issue(**LAYER_NORM), other],
        *(run(release, case("issue-131750", "failed")) for release in ("2.3.1", "2.4.1")),
    )

    assert words(found) == {"2.3.1": "?", "2.4.1": "x"}
    assert words(found, 1) == {"2.3.1": "x", "2.4.1": "?"}
    assert [row.status for row in found.rows] == ["agrees", "agrees"]


def test_what_no_row_of_a_release_explains_is_the_bug_of_the_row_that_names_the_case() -> None:
    rows = [
        issue(id="views", torch="<2.0", operators=["*"], shown_by=["mul:out:1"]),
        issue(id="old-macos", torch="<2.10", macos="<15", operators=["addbmm"]),
        issue(id="nothing", torch="<2.0", operators=["*"], shown_by=["addbmm:option:3"]),
    ]

    drawn = [
        case(name, "known", "off by 3", issue=[], known_issue="views") for name in ("addbmm:option:3", "sub:out:2")
    ]
    found = table(rows, run("2.6.0", *drawn))

    assert [row.cells["2.6.0"].word for row in found.rows] == ["not_run", "not_run", "wrong", "wrong"]
    assert [(row.id, row.status) for row in found.rows[2:]] == [("nothing", "differs"), ("sub:out:2", "new")]


def test_drawn_cases_are_right_only_where_one_of_them_shows_it_elsewhere() -> None:
    row = issue(id="nan", operators=["max_*"], dtype=["float16"], torch="<2.6", shown_by=["max_all:common:7"])
    half, single = {"dtype": "float16"}, {"dtype": "float32"}

    found = table(
        [row],
        run("2.5.1", case("max_all:common:3", "known", levels=half), case("max_all:common:4", "failed", levels=single)),
        run("2.6.0", case("max_all:common:3", "passed"), case("max_all:common:9", "passed")),
        run("2.7.1", case("max_all:common:9", "passed")),
        run("2.8.0", case("max_all:common:7", "passed")),
    )

    assert words(found) == {"2.5.1": "x", "2.6.0": "o", "2.7.1": "", "2.8.0": "o"}
    assert [(row.id, row.status) for row in found.rows] == [("nan", "agrees"), ("131750", "new")]


def test_what_never_shows_itself_says_why_as_far_as_it_is_known() -> None:
    issues = [
        issue(id="1", cases=["issue-1"], macos="<15"),
        issue(id="2", cases=["issue-2"]),
        issue(id="3", cases=["issue-3"], torch="<2.0"),
        issue(id="4", cases=["issue-4"], kind="apple"),
        issue(id="5", cases=["issue-5"], devices=["cuda"]),
    ]

    found = table(issues, run("2.4.1", *(case(f"issue-{number}", "passed") for number in range(1, 6))))

    assert {row.id: (row.status, row.why) for row in found.rows} == {
        "1": ("not_here", "macOS <15, and the device answers as 15.2"),
        "2": ("not_seen", None),
        "3": ("not_run", None),
    }
    assert words(found, 1) == {"2.4.1": "o"}, "nothing is contradicted by a case that shows nothing here"


def test_a_release_that_does_not_run_here_says_nothing_and_its_cause_is_shown() -> None:
    found = table(
        [issue(**LAYER_NORM)],
        Run(release="2.4.1", cause="own_fault: torch 2.4.1 | could not be imported"),
        run("2.5.1", case("issue-131750", "failed"), partial=True),
    )

    assert words(found) == {"2.4.1": "", "2.5.1": "x"}
    assert [each.state for each in found.columns] == ["not_run", "partial"]
    text = page.markdown(found, command="nox -s x")
    assert "| 2.4.1 |  |  |  | not run: own_fault: torch 2.4.1 \\| could not be imported |" in text
    assert "2.5.1" * 8 in text, "a release is named by its wheel's hash"


def test_what_no_row_names_is_a_row_of_its_own() -> None:
    found = table(
        [],
        run("2.4.1", case("issue-9-a", "failed", issue=["9"]), case("issue-9-b", "crashed", issue=["9"])),
        run("2.5.1", case("issue-9-a", "passed", issue=["9"]), case("file::x", "failed"), case("q", "passed")),
    )

    assert [(row.id, row.title, row.status) for row in found.rows] == [("9", "issue-9-a, issue-9-b", "new")]
    assert words(found) == {"2.4.1": "x!", "2.5.1": "o"}
    assert found.rows[0].link == "https://github.com/pytorch/pytorch/issues/9"


def test_what_a_row_says_of_a_refusal_by_the_software_metal_is_its_bug_and_not_ours() -> None:
    refused = (
        "raised RuntimeError: software Metal: aten::var: MPSGraph multiplication: the types of its operands differ"
    )
    named = {**LAYER_NORM, "says": "the types of its operands differ"}

    outcomes = {"2.4.1": "known", "2.5.1": "timeout"}
    runs = [run(release, case("issue-131750", outcome, refused)) for release, outcome in outcomes.items()]

    assert words(table([issue(**named)], *runs)) == {"2.4.1": "x", "2.5.1": "?"}
    assert words(table([issue(**LAYER_NORM)], *runs)) == {"2.4.1": "?", "2.5.1": "?"}


@pytest.mark.parametrize(
    "said",
    [
        "raised RuntimeError: MPS does not support cumsum op with int64 input",
        "raised RuntimeError: MPS device does not support linear for non-float inputs",
        "raised RuntimeError: Adaptive pool MPS: input sizes must be divisible by output sizes.",
    ],
)
def test_what_an_old_release_refuses_by_name_is_what_it_lacks(said: str) -> None:
    known = case("issue-131750", "known", said)
    spoken_of = {**LAYER_NORM, "says": "input|non-float|divisible"}

    assert words(table([issue(**LAYER_NORM)], run("2.0.1", known))) == {"2.0.1": "–"}
    assert words(table([issue(**LAYER_NORM)], run("2.4.1", known))) == {"2.4.1": "–"}, (
        "a row without words says nothing"
    )
    assert words(table([issue(**spoken_of)], run("2.4.1", known))) == {"2.4.1": "x"}


def test_what_an_older_release_answered_is_not_lacking_in_a_newer_one() -> None:
    refused = case(
        "issue-5", "failed", "raised RuntimeError: MPS does not support cumsum op with int64 input", issue=["5"]
    )

    found = table([], run("2.4.1", refused), run("2.5.1", case("issue-5", "passed")), run("2.6.0", refused))

    assert words(found) == {"2.4.1": "–", "2.5.1": "o", "2.6.0": "x!"}


def test_what_the_suite_named_then_is_no_row_that_has_lost_the_case_since() -> None:
    wrong = case("issue-5", "known", "off by 3", known_issue="131750", issue=["5"])

    found = table([issue(**LAYER_NORM)], run("2.4.1", wrong))

    assert [(row.id, row.status) for row in found.rows] == [("131750", "not_run"), ("5", "new")]


def test_a_limit_is_ours_though_a_row_speaks_of_its_words() -> None:
    limit = {**LAYER_NORM, "id": "8", "kind": "limit", "says": "graph without", "torch": None}
    wrong = case("issue-131750", "known", "raised RuntimeError: software Metal: a graph without this operation")

    found = table([issue(**{**LAYER_NORM, "says": "operation"}), issue(**limit)], run("2.4.1", wrong))

    assert words(found) == {"2.4.1": "?"}


def test_a_range_of_wrong_releases_holds_no_other_one() -> None:
    words = {"2.3.1": "failed", "2.4.1": "known", "2.5.1": "skipped", "2.6.0": "passed", "2.7.1": "failed"}

    found = table([issue(**LAYER_NORM)], *(run(at, case("issue-131750", word)) for at, word in words.items()))

    assert page.wrong_in(found.rows[0]) == "2.3.1..2.4.1, 2.7.1"


def test_each_bug_has_the_command_that_shows_it_in_the_newest_release_that_has_it() -> None:
    found = table(
        [issue(**LAYER_NORM)],
        run("2.4.1", case("issue-131750", "known", "off by 3")),
        run("2.5.1", case("issue-131750", "known", "off by 4 <x>")),
        run("2.6.0", case("issue-131750", "passed")),
    )

    said, commands = page.how_to_see(found.rows[0], found)

    assert said == "2.5.1: off by 4 <x>"
    assert commands.splitlines() == [
        "nox -s verify_mps -- torch==2.5.1 --simulated --macos 15.2 --only issue-131750 --record seen",
        "nox -s repro -- seen/record.json issue-131750",
    ]
    text = page.html(found, command="nox")
    assert "<summary>t</summary>2.5.1: off by 4 &lt;x&gt;<pre>nox -s verify_mps" in text


def test_pages_take_nothing_of_a_hostile_record_for_their_own() -> None:
    hostile = "<script>alert(1)</script> | \x1b[2J `x` [a](javascript:b)"
    bad = case("issue-1", "failed", hostile, issue=[hostile])

    found = table([issue(id="7", cases=["issue-7"], title=hostile)], run("2.4.1", bad, case("issue-7", "failed")))

    for text in (page.markdown(found, command="nox"), page.html(found, command=hostile)):
        assert "<script>alert" not in text and "\x1b" not in text
    assert json.loads(json.dumps(found.document()))["rows"][0]["cells"]["2.4.1"]["word"] == "wrong"


def test_no_folder_of_a_machine_is_published() -> None:
    reason = 'raised RuntimeError: ASSERT FAILED at "/Users/me/pytorch/Copy.mm":243; /home/me/.cache/a/1.so: 1 / 2, a/b'

    found = table([issue(**LAYER_NORM)], run("2.4.1", case("issue-131750", "failed", reason)))

    shown = 'raised RuntimeError: ASSERT FAILED at "Copy.mm":243; 1.so: 1 / 2, a/b'
    assert found.rows[0].cells["2.4.1"].reason == shown


def test_a_record_without_what_a_table_needs_is_a_column_without_answers() -> None:
    empty = Record.model_validate(
        {
            **record().model_dump(by_alias=True),
            "torch": {},
            "cases": [{"id": "issue-131750", "layer": "x", "outcome": "failed", "reason": None}],
        }
    )

    found = table([issue(**LAYER_NORM, says="off")], Run(release="2.4.1", record=empty))

    assert words(found) == {"2.4.1": "?"}
    assert found.columns[0].sha256 is None


MINORS = ("1.13", "2.3", "2.4", "2.5", "2.6", "2.7")
LISTED = tuple(map(Version, [*(f"{minor}.{patch}" for minor in MINORS for patch in (0, 1)), "2.6.2rc1"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.4.1", ["2.4.1"]),
        ("2.4.0..2.6.1", ["2.4.0", "2.5.1", "2.6.1"]),
        ("2.3.1..2.7.1, 2.4.0,1.13.1", ["1.13.1", "2.3.1", "2.4.0", "2.4.1", "2.5.1", "2.6.1", "2.7.1"]),
        ("2.6.0..2.6.0", ["2.6.0"]),
    ],
)
def test_a_range_is_its_ends_and_the_newest_patch_release_of_each_minor_between(text: str, expected: list[str]) -> None:
    assert list(chosen(text, lambda: LISTED)) == expected


def test_the_cases_of_known_issues_are_chosen_once_each() -> None:
    rows = [
        issue(id="1", cases=["issue-1", "issue-1-*"]),
        issue(id="2", cases=["issue-1"], operators=["add"], shown_by=["add:out:1"]),
        issue(id="3", cases=["issue-3"], devices=["cuda"]),
        issue(id="4", cases=["issue-*", "issue-4-*"], operators=["mul"], shown_by=["mul:out:1"]),
        issue(id="5", cases=["random-*"]),
    ]

    assert selection_of(rows) == ("issue-1", "issue-1-*", "add:out:1", "issue-4-*", "mul:out:1", "random-*")


def test_what_is_left_out_as_slow_is_there() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in REGRESSIONS.glob("test_*.py"))

    assert REGRESSIONS.is_dir()
    assert [name for name in SLOW if name.strip("*isue-") not in text] == []


def test_a_drawn_case_that_is_not_of_its_row_is_refused() -> None:
    with pytest.raises(ValueError, match="`shown_by` mul:out:1 is no case of its `operators`"):
        issue(id="2", operators=["add"], shown_by=["mul:out:1"])


def test_releases_that_are_none_are_refused() -> None:
    for text in ("", "2.5..", "..2.5", "2.6.0..2.4.1", "1.11.0", "main", "2.4.1+cpu"):
        with pytest.raises(UsageError):
            chosen(text, lambda: LISTED)
