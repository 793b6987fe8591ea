"""A step is skipped only if every input is equal and every output is there and matches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build.common.receipts import Ledger, StepResult, step_digest


def _run(ledger: Ledger, tmp_path: Path, value: str = "a", text: str = "made") -> bool:
    """Run a step that writes one file and one tree; return whether it was skipped."""

    def action() -> StepResult:
        (tmp_path / "file").write_text(text)
        (tmp_path / "tree").mkdir(exist_ok=True)
        return StepResult(files=(tmp_path / "file",), trees=(tmp_path / "tree",), facts={"n": 1})

    return ledger.run("step", version=1, inputs={"value": value}, action=action).skipped


def test_equal_inputs_and_whole_outputs_are_skipped_in_a_later_run(tmp_path: Path) -> None:
    assert not _run(Ledger(tmp_path / "receipts"), tmp_path)
    assert _run(Ledger(tmp_path / "receipts"), tmp_path)


@pytest.mark.parametrize("damage", ["deleted file", "changed file", "deleted tree", "other tree", "torn receipt"])
def test_an_output_that_no_longer_holds_is_made_again(tmp_path: Path, damage: str) -> None:
    ledger = Ledger(tmp_path / "receipts")
    _run(ledger, tmp_path)
    if damage == "deleted file":
        (tmp_path / "file").unlink()
    elif damage == "changed file":
        (tmp_path / "file").write_text("edited")
    elif damage == "deleted tree":
        (tmp_path / "tree" / ".mps-build-step").unlink()
        (tmp_path / "tree").rmdir()
    elif damage == "other tree":
        (tmp_path / "tree" / ".mps-build-step").write_text("another build's")
    else:
        (tmp_path / "receipts" / "step.json").write_text('{"schema": 1, "step"')

    assert not _run(ledger, tmp_path)
    assert (tmp_path / "file").read_text() == "made"


def test_another_input_runs_the_step(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "receipts")
    _run(ledger, tmp_path)

    assert not _run(ledger, tmp_path, value="b")


def test_a_step_that_fails_leaves_no_receipt_behind(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "receipts")
    _run(ledger, tmp_path)

    def action() -> StepResult:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.run("step", version=1, inputs={"value": "b"}, action=action)
    assert not list((tmp_path / "receipts").iterdir())


def test_the_digest_is_known_before_the_step_runs(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "receipts")
    _run(ledger, tmp_path)

    assert ledger.receipts[0].digest == step_digest("step", version=1, inputs={"value": "a"})
    assert ledger.holds("step", version=1, inputs={"value": "a"})
    assert not ledger.holds("step", version=2, inputs={"value": "a"})


def test_a_receipt_says_what_was_made(tmp_path: Path) -> None:
    _run(Ledger(tmp_path / "receipts"), tmp_path)

    receipt = json.loads((tmp_path / "receipts" / "step.json").read_text())

    assert receipt["outputs"][0]["size"] == 4
    keys = {"schema", "tool_version", "step", "version", "inputs", "digest", "outputs", "facts", "started", "seconds"}
    assert set(receipt) == keys
