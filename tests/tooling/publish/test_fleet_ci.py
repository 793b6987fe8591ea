"""What a workflow asks of the tool: outputs, upstream's commit, what is kept, and the issues of a night."""

from __future__ import annotations

import json
import os
from html import escape
from pathlib import Path
from typing import Any

import pytest
from documents import rendered
from git_history import repository
from mps_build.cli import main
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.recipe.forms import as_yaml
from mps_build.publish.fleet import Seen, decide, look_at_build, look_at_record

HERE = {"recipe": "nightly", "place": "macos-15", "run": "https://example.org/run/1"}


def record(*cases: tuple[str, str], **more: Any) -> dict[str, Any]:
    listed = [{"id": name, "outcome": outcome, "reason": "off by 1"} for name, outcome in cases]
    verdict = "regressed" if any(outcome == "failed" for _, outcome in cases) else "verified"
    whole = {"verdict": verdict, "partial": False, "torch": {"version": "2.16.0", "commit": "a" * 40}, "cases": listed}
    return whole | more


def issues_after(seen: list[Seen], issues: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the open issues after the actions were done, as GitHub would have them."""
    after = {issue["number"]: issue for issue in issues}
    for action in decide(seen, issues):
        if action.kind == "open":
            number = max(after, default=0) + 1
            after[number] = {"number": number, "body": action.body, "title": action.title}
        elif action.kind == "close":
            del after[action.number or 0]
    return list(after.values())


def test_a_regression_gets_one_issue_that_is_reported_and_then_closed() -> None:
    bad, good = record(("add", "failed"), ("mul", "passed")), record(("add", "passed"), ("mul", "passed"))

    first = issues_after([look_at_record(bad, **HERE)], [])
    second = issues_after([look_at_record(bad, **HERE)], first)
    third = issues_after([look_at_record(good, **HERE)], second)

    assert [issue["title"] for issue in first] == ["nightly: add fails on macos-15"]
    assert second == first
    assert [action.kind for action in decide([look_at_record(bad, **HERE)], first)] == ["comment"]
    assert third == []


def test_the_same_case_on_another_macos_is_another_issue() -> None:
    seen = [look_at_record(record(("add", "failed")), **HERE | {"place": place}) for place in ("macos-15", "macos-26")]

    assert len(issues_after(seen, [])) == 2


@pytest.mark.parametrize(
    "night",
    [
        record(("mul", "passed")),
        record(("add", "skipped")),
        record(("add", "passed"), verdict="not_verified", cause="virtual_gpu"),
        record(("add", "passed"), partial=True),
    ],
)
def test_an_issue_is_not_closed_by_a_run_that_did_not_look(night: dict[str, Any]) -> None:
    issues = issues_after([look_at_record(record(("add", "failed")), **HERE)], [])

    assert issues[0] in issues_after([look_at_record(night, **HERE)], issues)


def test_no_verdict_is_an_issue_of_its_own_until_there_is_one() -> None:
    virtual = record(verdict="not_verified", cause="virtual_gpu")

    issues = issues_after([look_at_record(virtual, **HERE)], [])

    assert [issue["title"] for issue in issues] == ["nightly: no verdict on macos-15"]
    assert issues_after([look_at_record(record(("add", "passed")), **HERE)], issues) == []


def test_many_failures_are_one_issue() -> None:
    night = record(*[(f"case-{number}", "failed") for number in range(40)])

    issues = issues_after([look_at_record(night, **HERE)], [])

    assert [issue["title"] for issue in issues] == ["nightly: 40 cases fail on macos-15"]
    assert issues_after([look_at_record(record(("case-1", "passed")), **HERE)], issues) == []


def test_a_build_that_fails_is_an_issue_until_it_builds() -> None:
    failed = {"exit_code": 8, "cause": "compile", "error": "x.mm: no", "triage": {"cause": "B20"}}

    issues = issues_after([look_at_build(failed, recipe="nightly", run="u")], [])

    assert "B20" in issues[0]["body"]
    assert issues_after([look_at_build({"exit_code": 0}, recipe="nightly", run="u")], issues) == []


def test_what_a_log_says_cannot_leave_its_block_or_forge_a_key() -> None:
    text = "````\n@everyone <!-- mps-build regression nightly/build/build -->"
    night = record(("add", "failed"))
    night["cases"][0]["reason"] = text

    (finding,) = look_at_record(night, **HERE).wrong

    body = issues_after([look_at_record(night, **HERE)], [])[0]["body"]
    assert rendered(finding.text).count("<pre>") == 1
    assert f"{escape(text)}\n</code></pre>" in rendered(finding.text)
    assert decide([look_at_record(night, **HERE)], [{"number": 1, "body": body}])[0].kind == "comment"


@pytest.fixture
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `gh` that notes how it is called and answers from a file."""
    tool = tmp_path / "bin" / "gh"
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "$*" >> "$GH_CALLS"\ncat "$GH_ANSWER"\n', encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GH_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("GH_ANSWER", str(tmp_path / "answer"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    monkeypatch.setenv("GITHUB_REPOSITORY", "owner/wheels")
    (tmp_path / "answer").write_text("[]", encoding="utf-8")
    return tmp_path


def outputs(folder: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in (folder / "output").read_text(encoding="utf-8").splitlines())


def test_a_nights_artifacts_become_issues(gh: Path) -> None:
    folder = gh / "results" / "record-macos-15-wheel"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(record(("add", "failed"))), encoding="utf-8")

    assert main("ci", ["issues", "--results", str(gh / "results")]) == 0

    calls = (gh / "calls").read_text(encoding="utf-8")
    assert "issue list --label mps-regression" in calls
    assert "issue create --label mps-regression --title nightly: add fails on macos-15-wheel" in calls


def test_a_night_without_results_is_no_quiet_night(gh: Path) -> None:
    (gh / "results").mkdir()

    assert main("ci", ["issues", "--results", str(gh / "results")]) == 2


def _recipe(folder: Path, upstream: Path) -> Path:
    path = folder / "mine.yaml"
    path.write_text(
        as_yaml(find_recipe("nightly")).replace("https://github.com/pytorch/pytorch.git", f"file://{upstream}"),
        encoding="utf-8",
    )
    return path


@pytest.mark.parametrize(
    ("artifacts", "changed"), [([], "true"), ([{"expired": True}], "true"), ([{"expired": False}], "false")]
)
def test_upstreams_commit_is_new_until_a_night_was_done_with_it(
    gh: Path, artifacts: list[dict[str, bool]], changed: str
) -> None:
    commit = repository(gh / "upstream", {"a": "1"})
    (gh / "answer").write_text(json.dumps({"artifacts": artifacts}), encoding="utf-8")

    assert main("ci", ["upstream", "--recipe", str(_recipe(gh, gh / "upstream")), "--ref", "main"]) == 0

    assert outputs(gh)["commit"] == commit
    assert outputs(gh)["changed"] == changed
    assert f"artifacts?name=done-nightly-{commit}" in (gh / "calls").read_text(encoding="utf-8")


def test_a_builds_result_becomes_outputs_and_a_table(gh: Path) -> None:
    wheel = {"path": "/w/torch-2.6.0+mps.g1-cp311-cp311-macosx_13_0_arm64.whl", "size": 9, "sha256": "f" * 64}
    build = {
        "recipe": "v2.6.0",
        "commit": "a" * 40,
        "wheels": [wheel | {"python": "3.11", "kind": "k", "receipt": "/w/r"}],
    }
    (gh / "build.json").write_text(json.dumps(build), encoding="utf-8")

    assert main("ci", ["outputs", "--build", str(gh / "build.json")]) == 0

    said = outputs(gh)
    assert said["wheel"] == "torch-2.6.0+mps.g1-cp311-cp311-macosx_13_0_arm64.whl"
    assert (said["version"], said["sha256"], said["receipt"]) == ("2.6.0+mps.g1", "f" * 64, "r")
    assert "torch-2.6.0" in (gh / "summary").read_text(encoding="utf-8")


def test_a_failed_build_has_no_outputs(gh: Path) -> None:
    (gh / "build.json").write_text(json.dumps({"exit_code": 8, "error": "x"}), encoding="utf-8")

    assert main("ci", ["outputs", "--build", str(gh / "build.json")]) == 2
    assert not (gh / "output").exists()


def test_a_build_that_was_cut_off_leaves_its_logs_and_a_result(gh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = gh / "work" / "v2.6.0"
    (work / "logs").mkdir(parents=True)
    (work / "logs" / "compile.log").write_text("log", encoding="utf-8")
    (work / "build" / "release").mkdir(parents=True)
    (work / "build" / "release" / ".ninja_log").write_text("# ninja log v5\n", encoding="utf-8")
    monkeypatch.setenv("MPS_BUILD_WORK", str(gh / "work"))

    argv = ["collect", "--recipe", "v2.6.0", "--build", str(gh / "none.json"), "--results", str(gh / "results")]
    assert main("ci", argv) == 0

    assert json.loads((gh / "results" / "build.json").read_text(encoding="utf-8"))["cause"] == "unfinished"
    assert (gh / "results" / "logs" / "compile.log").is_file()
    assert (gh / "results" / "build" / "release" / "ninja_log").is_file()


@pytest.mark.parametrize(
    "argv",
    [
        ["inputs", "--ref", "refs/pull/1/head"],
        ["inputs", "--runner", '["macos-15"]'],
        ["inputs", "--xcode", "26;rm"],
        ["inputs", "--python", "3.12 --repo=x"],
        ["inputs", "--testers", "[]"],
        ["inputs", "--testers", '[["self-hosted","a"],["self-hosted","a"]]'],
        ["changed", "--base", "--output=x"],
        ["collect"],
        ["nothing"],
    ],
)
def test_inputs_that_are_not_allowed_fail(gh: Path, argv: list[str]) -> None:
    assert main("ci", argv) in (2, 4)
    assert not (gh / "output").exists()
