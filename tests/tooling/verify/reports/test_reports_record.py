"""The record and what is made of it: schema, Markdown, JUnit, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from mps_build.commands.shared.generated import schemas
from mps_build.commands.shared.verification import print_end
from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.records.device_record import (
    Case,
    Finding,
    KnownIssue,
    Record,
    Torch,
    load_record,
    to_json,
    write_record,
)
from mps_build.verify.reports import html, junit, markdown

SCHEMA = Path(__file__).parents[4] / "schemas" / "record.schema.json"
CASES = (
    Case(id="issue-1", layer="regressions", issue=("131750",), outcome="passed", largest=0.1, bound=0.5, seconds=0.2),
    Case(
        id="bad|<b>",
        layer="layouts",
        outcome="failed",
        reason="off by 3 <script>alert(1)</script>",
        largest=3.0,
        bound=1.0,
    ),
    Case(id="dead", layer="layouts", outcome="crashed", reason="died with SIGABRT\x00\x1b[31m"),
    Case(id="slow", layer="layouts", outcome="timeout", reason="ended by the watchdog"),
    Case(id="old", layer="models", outcome="known", known_issue="96225", reason="wrong"),
    Case(id="fixed", layer="models", outcome="unexpected_pass", known_issue="96225"),
    Case(id="not here", layer="models", outcome="skipped", reason="only with --full"),
)


def record(**fields: Any) -> Record:
    base: dict[str, Any] = {
        "tool": "mps-build 0",
        "statement": "A rehearsal on the CPU: it says nothing about MPS.",
        "verdict": "regressed",
        "exit_code": 10,
        "cause": "regressed",
        "partial": False,
        "device": "cpu",
        "target": {"kind": "python", "name": "python"},
        "torch": Torch(version="2.13.0", commit="c" * 40),
        "started": "2026-11-21T19:00:00+00:00",
        "seconds": 12.5,
        "known_issues": (
            KnownIssue(
                id="96225",
                link="https://github.com/pytorch/pytorch/issues/96225",
                title="weight gradient",
                outcome="fails",
                reason="65536 samples",
                since="2.0",
            ),
        ),
        "counts": {
            "passed": 1,
            "failed": 1,
            "crashed": 1,
            "timeout": 1,
            "known": 1,
            "unexpected_pass": 1,
            "skipped": 1,
        },
        "cases": CASES,
    }
    return Record(**{**base, **fields})


def test_a_record_survives_the_way_to_its_file_and_back(tmp_path: Path) -> None:
    write_record(record(), tmp_path / "deep" / "record.json")

    assert load_record(tmp_path / "deep" / "record.json") == record()
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["record.json"]


def test_a_record_of_an_older_version_is_read_by_the_names_of_now(tmp_path: Path) -> None:
    document = to_json(record())
    del document["fault"], document["fault_hits"]
    older = {**document, "plant": "caught", "plant_hits": 3, "selection": {"plant": "f.py:n"}}
    (tmp_path / "record.json").write_text(json.dumps(older), encoding="utf-8")

    read = load_record(tmp_path / "record.json")

    assert (read.fault, read.fault_hits, read.selection["inject"]) == ("caught", 3, "f.py:n")
    again = to_json(read)
    assert (again["plant"], again["plant_hits"], again["selection"]["plant"]) == ("caught", 3, "f.py:n")


def test_the_schema_in_the_repository_is_the_models() -> None:
    assert SCHEMA.read_text() == schemas()["record"]


def test_the_record_has_the_keys_that_others_rely_on() -> None:
    document = to_json(record())

    assert document["schema"] == "mps-build/record/1"
    assert document["verdict"] == "regressed"
    assert {"id", "layer", "issue", "outcome", "error", "bound", "seconds"} <= document["cases"][0].keys()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read"),
        ("{", ":1: is not JSON"),
        ("[]", "names no schema"),
        ('{"schema": "mps-build/record/9"}', "its schema is 'mps-build/record/9'"),
        ('{"schema": "mps-build/record/1", "verdict": "fine"}', "damaged record"),
    ],
)
def test_what_is_no_record_of_ours_is_refused(tmp_path: Path, text: str | None, words: str) -> None:
    path = tmp_path / "record.json"
    if text is not None:
        path.write_text(text)

    with pytest.raises(UsageError) as caught:
        load_record(path)

    assert words in str(caught.value)


def test_markdown_begins_with_what_the_run_can_say() -> None:
    text = markdown.render(record())

    assert text.startswith("A rehearsal on the CPU: it says nothing about MPS.\n")
    assert "## Regressed" in text
    assert "3 cases of 6 gave wrong answers that no known issue explains; 1 more is known." in text
    assert "[96225](https://github.com/pytorch/pytorch/issues/96225)" in text
    assert r"`bad\|<b>`" in text and "<script>" not in text


def test_a_partial_record_is_labelled_everywhere() -> None:
    partial = record(partial=True, verdict="not_verified", cause="interrupted", exit_code=130)

    assert "(partial record)" in markdown.render(partial)
    assert "(partial record)" in html.render(partial)
    assert 'name="partial" value="true"' in junit.render(partial)


def test_junit_is_xml_that_counts_and_keeps_no_unwritable_character() -> None:
    root = ElementTree.fromstring(junit.render(record()).encode())

    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == ("8", "2", "2", "2")
    for suite in root:
        assert suite.get("tests") == str(len(suite.findall("testcase")))
    names = {case.get("name"): case for case in root.iter("testcase")}
    assert names["bad|<b>"].find("failure") is not None
    assert "\ufffd" in str(names["dead"].find("error").get("message"))  # type: ignore[union-attr]
    assert str(names["old"].find("skipped").get("message")).startswith("known issue 96225")  # type: ignore[union-attr]


@pytest.mark.parametrize(("verdict", "failures"), [("regressed", "1"), ("known_issues_only", "0"), ("verified", "0")])
def test_the_testcase_of_the_verdict_fails_when_it_does(verdict: str, failures: str) -> None:
    root = ElementTree.fromstring(junit.render(record(verdict=verdict)).encode())

    (suite,) = [each for each in root if each.get("name") == "verdict"]
    assert (suite.get("failures"), len(list(suite.iter("failure")))) == (failures, int(failures))


def test_junit_of_no_verdict_is_an_error_and_never_a_green_run() -> None:
    root = ElementTree.fromstring(
        junit.render(record(verdict="not_verified", cause="virtual_gpu", exit_code=16, cases=(), counts={})).encode()
    )

    assert (root.get("tests"), root.get("errors")) == ("1", "1")
    assert next(root.iter("error")).get("type") == "virtual_gpu"


def test_the_page_needs_nothing_else_and_escapes_what_a_case_wrote() -> None:
    text = html.render(record())

    assert "<script>alert(1)" not in text and "&lt;script&gt;alert(1)" in text
    assert 'src="' not in text and "<link" not in text
    body = text[text.index("<main>") :]
    assert body.index("A rehearsal on the CPU") < body.index("Regressed")
    assert 'href="https://github.com/pytorch/pytorch/issues/131750"' in text


def test_the_summary_counts_every_outcome_of_a_layer() -> None:
    head = "| layer | passed | failed | crashed | timeout | known | unexpected pass | skipped |"

    assert head in markdown.render(record())


def test_the_page_of_no_verdict_names_the_cause() -> None:
    text = html.render(
        record(verdict="not_verified", message="this is macOS 12.7; MPS of torch 2.13.0 needs 14.0", cases=())
    )

    assert "needs 14.0" in text and "All cases" not in text


def test_the_recorded_run_on_an_nvidia_gpu_has_no_false_alarm_and_every_report_takes_it() -> None:
    recorded = load_record(Path(__file__).parents[3] / "recorded" / "records" / "cuda-h200-torch-2.11.0.json")

    assert (recorded.verdict, recorded.partial, recorded.device) == ("rehearsed", False, "cuda")
    assert set(recorded.counts) == {"passed", "skipped"} and recorded.counts["passed"] > 4000
    for text in (markdown.render(recorded), html.render(recorded), junit.render(recorded)):
        assert "A rehearsal on another accelerator (NVIDIA H200): it says nothing about MPS." in text


@pytest.mark.parametrize(("part", "least"), [("float32", 600), ("halves", 900), ("int64", 400)])
def test_the_recorded_sweep_on_an_nvidia_gpu_failed_only_where_upstream_expects_it(part: str, least: int) -> None:
    """linear's out= ignores a gapped destination, on the CPU too; since then the sweep knows upstream's mark for it."""
    recorded = load_record(
        Path(__file__).parents[3] / "recorded" / "records" / f"cuda-h200-torch-2.11.0-opinfo-{part}.json"
    )
    failed = {case.id.rpartition("-")[0]: case.reason for case in recorded.cases if case.outcome == "failed"}

    assert (recorded.partial, recorded.device, recorded.selection["full"]) == (False, "cuda", True)
    assert set(recorded.counts) <= {"passed", "skipped", "known", "failed"} and recorded.counts["passed"] > least
    assert set(failed) <= {"opinfo-nn.functional.linear"}
    assert all("into out" in str(reason) for reason in failed.values())


def test_a_run_that_ended_before_torch_was_reached_does_not_make_one_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unreached = record(
        torch=Torch(), verdict="not_verified", cause="interrupted", exit_code=130, partial=True, cases=(), counts={}
    )

    print_end(unreached, tmp_path / "record.json", Console())

    printed = capsys.readouterr().out
    assert "was not reached" in printed
    assert "unknown" not in printed


def test_cases_of_one_finding_are_listed_once_with_their_script(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = Finding(id="exp:dtype:1", operator="exp", transformation="dtype", script="import torch  # </pre> ```\n")
    cases = tuple(
        Case(id=f"exp:dtype:{n}", layer="drawn", outcome="failed", reason="off", finding="exp:dtype:1")
        for n in range(3)
    )
    alone = Case(id="issue-1", layer="regressions", outcome="crashed", reason="died")
    right = Case(id="issue-2", layer="regressions", outcome="passed")
    counts = {"passed": 1, "failed": 3, "crashed": 1}
    found = record(cases=(right, *cases, alone), findings=(finding,), counts=counts)

    text, page = markdown.render(found), html.render(found)

    assert "2 findings in 4 cases of 5 gave wrong answers" in text
    assert [text.count("`exp:dtype:1`"), text.count("3 cases"), text.count("`exp:dtype:0`")] == [1, 1, 0]
    assert "````python\nimport torch" in text
    assert "2 findings" in page and "3 cases" in page
    assert "<pre>import torch  # &lt;/pre&gt; ```" in page
    print_end(found, tmp_path / "record.json", Console())
    said = capsys.readouterr().out
    assert "New findings" in said
    assert "3 cases" in said
    assert "exp:dtype:2" not in said
