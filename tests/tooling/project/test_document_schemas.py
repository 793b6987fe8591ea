"""Every JSON document names its schema and who wrote it, and is what that schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from documents import SCHEMAS, faults
from jsonschema import Draft202012Validator
from mps_build import __version__
from mps_build.cli import main
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.generated import schemas
from mps_build.common.receipts import Ledger, StepResult
from mps_build.publish.index.state import State as IndexState
from mps_build.verify.bisection.state import State, write_state

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "recorded"
RECORD = RECORDED / "records" / "cuda-h200-torch-2.11.0-opinfo-int64.json"
COVERAGE = RECORDED / "op_coverage" / "v2.6.0-source.json"
# Commands that end quickly, and well, without a network, a compiler or a device.
QUICK: dict[str, tuple[str, ...]] = {
    "build_wheel": ("sample", "--dry-run"),
    "clean": (),
    "compare": (str(RECORD), str(RECORD)),
    "completion": ("bash",),
    "doctor": (),
    "matrix": (),
    "op_coverage": (str(COVERAGE),),
    "triage": (str(ROOT / "README.md"),),
}


def test_every_command_has_a_schema_and_every_schema_is_one() -> None:
    made = schemas()

    assert set(COMMANDS) <= set(made)
    for name, text in made.items():
        Draft202012Validator.check_schema(json.loads(text))
        assert (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8") == text, "nox -s dev -- regenerate"


@pytest.mark.parametrize("command", sorted(QUICK))
def test_a_real_document_is_what_its_schema_says(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("mps_build.commands.clean.CHECKOUT", tmp_path)  # not a .nox of gigabytes
    answer = tmp_path / "answer.json"

    status = main(command, [*QUICK[command], "--json", str(answer)])

    document = json.loads(answer.read_text(encoding="utf-8"))
    assert "error" not in document, document["error"]
    assert (document["schema"], document["tool_version"]) == (f"mps-build/{command}/1", __version__)
    assert (faults(document), document["exit_code"]) == ([], status)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_document_of_an_error_is_too(command: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"

    assert main(command, ["--no-such-option", "--json", str(answer)]) == 2
    document = json.loads(answer.read_text(encoding="utf-8"))
    assert document["schema"] == f"mps-build/{command}/1"
    assert faults(document) == []


def test_files_that_commands_leave_are_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "receipts")
    (tmp_path / "receipts").mkdir()
    ledger.run("a_step", version=1, inputs={"a": 1}, action=lambda: StepResult(facts={"b": 2}))
    write_state(State(question={"ask": "x"}, good="2.0.0", bad="2.1.0"), tmp_path / "state.json")
    (tmp_path / "index.json").write_text(IndexState().text(), encoding="utf-8")
    written = [*(tmp_path / "receipts").glob("*.json"), tmp_path / "state.json", tmp_path / "index.json"]

    assert len(written) == 3
    for path in written:
        assert faults(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ({"schema": "mps-build/nothing/1"}, "no file"),
        ({"schema": None}, "names no schema"),
        ({"tool_version": ""}, "names no schema"),
        ({"freed_bytes": "many"}, "freed_bytes"),
        ({"exit_code": None}, "exit_code"),
        ({"found": None}, "found"),
    ],
)
def test_a_document_that_is_something_else_is_seen(damage: dict[str, Any], said: str) -> None:
    whole = {
        "schema": "mps-build/clean/1", "tool_version": "0", "found": [], "chosen": [], "freed_bytes": 0, "exit_code": 0,
        "cause": None, "hint": None,
    }  # fmt: skip

    assert faults(whole) == []
    assert said in str(faults(whole | damage))
    assert faults({key: value for key, value in whole.items() if key != "chosen"})
