"""What one probe of a bisection asks and answers: a case, a command, a range of versions, the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_suites import write_python, write_suite
from git_history import commit_of as fake_commit
from git_history import write_index
from mps_build import cli
from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import Case
from mps_build.common.wheels.pip_call import index_arguments
from mps_build.verify.bisection import report
from mps_build.verify.bisection.answers import CaseJudge, Predicate, answer_of
from mps_build.verify.bisection.runner import Prepared
from mps_build.verify.bisection.search import standing
from mps_build.verify.bisection.state import Probe, Stage, State
from mps_build.verify.bisection.versions import between, commit_of
from mps_build.verify.target import resolve
from packaging.version import Version


def case(outcome: str) -> Case:
    return Case(id="a", layer="smoke", outcome=outcome, reason="why")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        (["passed"], "good"),
        (["unexpected_pass", "skipped"], "good"),
        (["known"], "bad"),
        (["passed", "failed"], "bad"),
        (["crashed"], "bad"),
        (["timeout", "passed"], "timeout"),
        (["skipped"], "skip"),
        ([], "skip"),
    ],
)
def test_a_cases_outcome_is_a_word(outcomes: list[str], word: str) -> None:
    assert answer_of(map(case, outcomes)).word == word


def test_a_case_that_the_suite_does_not_have_stops_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolve, "make_overlay", lambda interpreter, store, **_: tmp_path)
    write_suite(tmp_path / "suite", "def test_a(): pass\n")
    (tmp_path / "suite" / "known_issues.yaml").write_text("schema_version: 1\nissues: []\n")
    state = {"version": "2.13.0", "built": True, "available": True, "name": "a CPU", "sum": 1000}
    python = write_python(tmp_path / "python", json.dumps(state))
    given: dict[str, Any] = {
        "device": "cpu",
        "allow_virtual": False,
        "seconds": 60.0,
        "folder": tmp_path,
        "suite": tmp_path / "suite",
    }

    prepared = Prepared(subject="2.13.0", python=python)
    assert CaseJudge(case="test_a", **given).ask(prepared).word == "good"
    with pytest.raises(UsageError, match="the suite has no case issue-0"):
        CaseJudge(case="issue-0", **given).ask(prepared)


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("exit 0", "good"),
        ("exit 1", "bad"),
        ("exit 124", "bad"),
        ("exit 125", "skip"),
        ("kill -ABRT $$", "bad"),
        ("sleep 60", "timeout"),
    ],
)
def test_a_commands_exit_status_is_the_one_of_git_bisect(tmp_path: Path, script: str, word: str) -> None:
    predicate = Predicate(argv=("sh", "-c", script), seconds=0.4, log=tmp_path / "log", environ={"PATH": "/bin"})

    assert predicate.ask(Prepared(subject="2.0.0")).word == word


@pytest.mark.parametrize(("argv", "words"), [(("sh", "-c", "exit 127"), "cannot be run"), (("/no/such",), "cannot be")])
def test_a_command_that_cannot_be_run_stops_the_search(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Predicate(argv=argv, seconds=9, log=tmp_path / "log", environ={"PATH": "/bin"}).ask(Prepared(subject="2.0.0"))


def test_a_command_that_asks_to_stop_stops_the_search(tmp_path: Path) -> None:
    predicate = Predicate(argv=("sh", "-c", "exit 130"), seconds=9, log=tmp_path / "log", environ={"PATH": "/bin"})

    with pytest.raises(UsageError, match="asks to stop"):
        predicate.ask(Prepared(subject="2.0.0"))


def test_between_two_versions_lie_releases_and_nightlies_and_no_candidates() -> None:
    words = ["2.5.0", "2.5.1", "2.6.0rc1", "2.6.0.dev20240910", "2.6.0", "2.6.0+cpu", "2.7.0", "2.10.0"]

    found = between(map(Version, words), Version("2.5.0"), Version("2.10.0"))

    assert [version.public for version in found] == ["2.5.1", "2.6.0.dev20240910", "2.6.0", "2.7.0"]


def test_a_wheel_tells_its_commit(tmp_path: Path) -> None:
    versions = ["2.6.0.dev20240910"]
    index = write_index(tmp_path, versions, state={versions[0]: "good"}, commits={versions[0]: fake_commit(7)})

    assert commit_of(next(index.glob("*.whl"))) == fake_commit(7)
    assert commit_of(tmp_path / "none.whl") is None


def test_an_index_is_a_folder_of_wheels_or_an_address(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no wheel of torch"):
        index_arguments(str(tmp_path))
    with pytest.raises(UsageError, match="neither a folder nor an address"):
        index_arguments(str(tmp_path / "none"))
    write_index(tmp_path, ["2.0.0"], state={"2.0.0": "good"}, commits={})
    assert index_arguments(str(tmp_path)) == ("--no-index", "--find-links", str(tmp_path))


def test_the_report_links_the_suspects() -> None:
    stage = Stage(kind="commits", old="a" * 40, new="c" * 40, candidates=["b" * 40], seek="bad")
    state = State(question={"ask": "case"}, good="2.0.0", bad="2.1.0", stages=[stage])
    state.probes["b" * 40] = Probe(words=["bad", "bad"], verdict="bad")
    left = standing(stage.span(), state.verdicts())

    address = report.address_of("git@github.com:a/b.git")
    found = report.finding(stage, left, address=address, title=lambda commit: "Fix | it (#1)", state=state)

    text = report.markdown(state, (found,))
    assert f"[{'b' * 40}](https://github.com/a/b/commit/{'b' * 40}) Fix \\| it (#1)" in text
    assert f"https://github.com/a/b/compare/{'a' * 40}...{'b' * 40}" in text
    assert report.document(state, (found,))["stages"][0]["probes"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--good", "2.0.0", "--bad", "2.1.0"], "either CASE or --predicate"),
        (["a", "--predicate", "x", "--good", "2.0.0", "--bad", "2.1.0"], "either CASE or --predicate"),
        (["a", "--good", "2.0.0", "--bad", "2.0.0"], "the ends do not differ"),
        (["a", "--good", "2.0.0", "--bad", "v2.0"], "do not differ"),
        (["a", "--good", "2.0.0", "--bad", "2.1.0", "--runs", "2"], "must be odd"),
        (["a", "--good", "2.0.0", "--bad", "2.1.0", "--timeout", "0"], "must be above 0"),
        (["a", "--good", "2.0.0", "--bad", "main"], "one is a version and the other is not"),
        (["a", "--good", "1234567", "--bad", "main"], "is not a version of torch"),
        (["--predicate", "'x", "--good", "2.0.0", "--bad", "2.1.0"], "No closing quotation"),
        (["a", "--good", "2.0.0", "--bad", "2.1.0", "--index", "no/such"], "neither a folder nor an address"),
        (["a", "--good", "b", "--bad", "main", "--repo", "."], "is not a git repository"),
    ],
)
def test_what_cannot_be_tested_is_exit_2(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.chdir(tmp_path)

    status = cli.main("bisect_mps", [*arguments, "--json", str(tmp_path / "answer.json")])

    assert status == 2
    assert words in json.loads((tmp_path / "answer.json").read_text())["error"]
