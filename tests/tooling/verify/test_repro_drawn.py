"""`repro` of a drawn case: the suite makes its script anew from the id, or from what the record's finding says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.records.device_record import Case, Finding, Record, Torch, write_record

PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
needs_torch = pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
FAULT = """\
import torch
from torch.utils._python_dispatch import TorchDispatchMode
class doubled(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        answer = func(*args, **(kwargs or {}))
        return answer * 2 + 1 if str(func).startswith("aten.exp.") and answer.is_floating_point() else answer
"""
# Runs a script with the fault around what it does on the device alone.
RUNNER = """\
import re, sys
from fault import doubled
def faulty(run, device):
    with doubled():
        return run(device)
text, found = re.subn(r"(?<!def )\\brun\\(device\\)", "faulty(run, device)", open(sys.argv.pop(1)).read())
assert found == 1
exec(text)
"""


def _record(folder: Path, finding: dict[str, Any] | None, case: str = "exp:common:0") -> Path:
    found = () if finding is None else (Finding(**finding),)
    wrong = Case(id=case, layer="drawn", outcome="failed", reason="off", finding=(found and found[0].id) or None)
    record = Record(
        tool="mps-build 0",
        statement="A rehearsal.",
        verdict="regressed",
        exit_code=10,
        partial=False,
        device="mps",
        target={},
        torch=Torch(version="2.13.0"),
        started="2026-11-29T08:00:00+00:00",
        seconds=1.0,
        findings=found,
        cases=(wrong.model_copy(update={"file": "test_drawn.py"}),),
    )
    write_record(record, folder / "record.json")
    return folder / "record.json"


EXP = {
    "id": "exp:common:1",
    "operator": "exp",
    "transformation": "common",
    "size": "small",
    "shape": (1, 2),
    "number": 5,
}


def _repro(folder: Path, record: Path, *more: str) -> tuple[int, dict[str, Any]]:
    files = ["--output", str(folder / "r.py"), "--issue", str(folder / "i.md"), "--json", str(folder / "r.json")]
    status = main("repro", [str(record), "exp:common:0", *files, *more])
    return status, json.loads((folder / "r.json").read_text())


def _ends(folder: Path, *argv: str) -> int:
    return subprocess.run([PYTHON, *argv], cwd=folder, capture_output=True, check=False).returncode


@needs_torch
@pytest.mark.parametrize("is_asked", [True, False], ids=["on_a_device", "from_the_record"])
def test_the_script_is_short_and_says_right_wrong_not_tried_or_its_own_fault(tmp_path: Path, is_asked: bool) -> None:
    (tmp_path / "fault.py").write_text(FAULT)
    (tmp_path / "runner.py").write_text(RUNNER)
    asked = ("--device", "cpu", "--inject", f"{tmp_path / 'fault.py'}:doubled") if is_asked else ()

    status, document = _repro(tmp_path, _record(tmp_path, EXP), "--python", PYTHON, *asked)

    script = (tmp_path / "r.py").read_text()
    assert (status, document["not_reduced"]) == (0, None)
    assert len(script.splitlines()) <= 40
    assert {line.split()[1] for line in script.splitlines() if line.startswith(("import", "from"))} <= {"sys,", "math"}
    assert _ends(tmp_path, "r.py", "cpu") == 0
    assert _ends(tmp_path, "runner.py", "r.py", "cpu") == 1
    assert _ends(tmp_path, "r.py") == 2
    (tmp_path / "own.py").write_text(script.replace("exp(", "no_such("))
    assert _ends(tmp_path, "own.py", "cpu") == 3
    assert "exp, float32" in (tmp_path / "i.md").read_text()


@needs_torch
def test_what_a_record_says_is_never_written_into_a_script(tmp_path: Path) -> None:
    hostile = {**EXP, "script": "import os; os.system('x')", "levels": {"@dtype": "x; import os"}}

    status, document = _repro(tmp_path, _record(tmp_path, hostile), "--python", PYTHON)

    assert status == 2
    assert "of another version" in str(document)
    assert not (tmp_path / "r.py").exists()


def test_without_a_torch_nothing_is_written_and_the_way_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_TORCH_PYTHON", str(tmp_path / "none"))

    status, document = _repro(tmp_path, _record(tmp_path, {**EXP, "script": "import os"}))

    assert (status, "--python" in document["hint"]) == (2, True)
    assert not (tmp_path / "r.py").exists()
