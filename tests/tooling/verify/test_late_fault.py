"""What a device raises only when it is waited for belongs to the case that left the work, not to the one after it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[2] / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
CASES = ["smoke-apple-verify-script", "smoke-synchronise"]
# Loaded as a plugin of pytest: a wait for the device fails, as often as it says; the first case does not wait.
LATE = """
left = {faults}

def synchronise(bench):
    global left
    if left:
        left -= 1
        raise RuntimeError("a failed commit")

def pytest_collection_finish(session):
    import engine.runs
    engine.runs.Bench.synchronise = synchronise
"""


@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
@pytest.mark.parametrize("faults", [1, 2])
def test_a_case_fails_by_the_work_that_it_left(faults: int, tmp_path: Path) -> None:
    first, second = CASES
    (tmp_path / "late.py").write_text(LATE.format(faults=faults))
    argv = [PYTHON, "-m", "pytest", "-q", "-c", str(SUITE / "pytest.ini"), str(SUITE / "scenarios" / "test_smoke.py")]
    argv += ["--rootdir", str(SUITE), "--device", "cpu", "--only", ",".join(CASES), "-p", "late"]
    argv += ["--outcomes", str(tmp_path / "said.jsonl")]
    subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)

    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    finished = {line["id"]: (line["outcome"], line["reason"]) for line in said if line["event"] == "finished"}
    assert finished == {first: ("failed", "RuntimeError: a failed commit"), second: ("passed", "")}
