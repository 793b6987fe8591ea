"""What audit_wheel and verify_kernels write for other tools: SARIF by its schema, JUnit XML that counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator
from mps_build.cli import main
from mps_build.common.exchange import SarifResult, sarif
from mps_build.kernels.report import exchange
from small_wheels import torch_files, write_wheel

SCHEMA = Path(__file__).parents[1] / "fixtures" / "sarif_schema.json"
COUNTS = {"kernels": 4, "compiled": 4, "bound": 4, "run": 4}


def sarif_faults(text: str) -> list[str]:
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    return [each.message for each in validator.iter_errors(json.loads(text))]


def counted(text: str) -> dict[str, int]:
    """Return the counts of the document, after each suite's were compared with its testcases."""
    root = ElementTree.fromstring(text.encode())
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for element in (root, *root):
        assert {key: int(element.get(key, "-1")) for key in tags} == {
            key: len(list(element.iter(tag))) for key, tag in tags.items()
        }
    return {key: int(root.get(key, "-1")) for key in tags}


def kernel(name: str, outcome: str, library: str = "metal_basic", **more: Any) -> dict[str, Any]:
    return {"name": name, "library": library, "outcome": outcome, "family": "unary", "reason": "off\x1b[2J", **more}


def test_a_rejected_wheel_is_written_for_github_and_for_ci(tmp_path: Path) -> None:
    files = {member: data for member, data in torch_files().items() if not member.endswith("libshm.dylib")}
    wheel = write_wheel(tmp_path, files)
    junit, found = tmp_path / "a.xml", tmp_path / "a.sarif"

    assert main("audit_wheel", [str(wheel), "--junit", str(junit), "--sarif", str(found)]) == 9

    text = found.read_text(encoding="utf-8")
    assert sarif_faults(text) == []
    (run,) = json.loads(text)["runs"]
    assert {each["ruleId"] for each in run["results"]} == {"F1", "P5"}
    assert {each["ruleId"] for each in run["results"]} <= {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    uris = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert f"{wheel.name}/torch/lib/libshm.dylib" in uris
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 9}]
    assert counted(junit.read_text(encoding="utf-8")) == {"tests": 3, "failures": 3, "errors": 0, "skipped": 0}


def test_an_accepted_wheel_is_green_in_both(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path, torch_files())
    junit, found = tmp_path / "a.xml", tmp_path / "a.sarif"

    assert main("audit_wheel", [str(wheel), "--junit", str(junit), "--sarif", str(found)]) == 0

    assert json.loads(found.read_text(encoding="utf-8"))["runs"][0]["results"] == []
    assert sarif_faults(found.read_text(encoding="utf-8")) == []
    assert counted(junit.read_text(encoding="utf-8")) == {"tests": 1, "failures": 0, "errors": 0, "skipped": 0}


def test_kernels_are_written_once_with_their_known_issues_suppressed() -> None:
    rows = [
        kernel("a", "wrong", inputs={"case": "4099 elements", "x": "1000.0"}),
        kernel("a", "wrong", library="metal_40"),
        kernel("b", "known", link="docs/inspect/kernel_findings.md#remainder"),
        kernel("c", "passed"),
        kernel("d", "not_bound"),
    ]
    document = {"target": "torch-2.15.0.whl", "verdict": "findings", "kernels": rows, "coverage": COUNTS}

    text = exchange.as_sarif(document, exit_code=10)

    assert sarif_faults(text) == []
    wrong, known = json.loads(text)["runs"][0]["results"]
    assert (wrong["level"], known["level"]) == ("error", "note")
    assert "input: x 1000.0" in wrong["message"]["text"] and "\x1b" not in wrong["message"]["text"]
    assert "suppressions" not in wrong and known["suppressions"][0]["kind"] == "external"
    assert counted(exchange.as_junit(document)) == {"tests": 5, "failures": 2, "errors": 0, "skipped": 2}


@pytest.mark.parametrize(
    ("verdict", "failures", "errors"),
    [("verified", 0, 0), ("known_issues_only", 0, 0), ("findings", 1, 0), ("misfit", 0, 1), ("not_verified", 0, 1)],
)
def test_the_testcase_of_the_verdict_is_never_green_where_it_is_not(verdict: str, failures: int, errors: int) -> None:
    found = counted(exchange.as_junit({"target": "t", "verdict": verdict, "kernels": []}))

    assert (found["tests"], found["failures"], found["errors"]) == (1, failures, errors)


def test_the_schema_sees_what_is_missing() -> None:
    result = SarifResult(rule="r", level="error", text="t", place="a b/ü.whl")
    whole = json.loads(sarif([result], {"r": "x"}, command="c", exit_code=0))

    assert sarif_faults(json.dumps(whole)) == []
    for part in ("ruleId", "message", "locations", "partialFingerprints"):
        broken = json.loads(json.dumps(whole))
        del broken["runs"][0]["results"][0][part]
        assert sarif_faults(json.dumps(broken))
