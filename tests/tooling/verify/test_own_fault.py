"""A fault of the suite itself is no answer of the device: it has its outcome, and an exit status of its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from fake_suites import drive, outcomes
from mps_build.common.errors import OwnFault
from mps_build.verify.verdict import judge_run

SUITE = Path(__file__).parents[2] / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
CASE = "issue-131750"
# Loaded as a plugin of pytest: the comparison's own code fails.
BROKEN = """
def broken(*_, **__): raise KeyError("no such bound")

def pytest_collection_finish(session):
    import engine.states
    engine.states.compare_leaves = broken
"""
# A device that raises where the CPU does not.
RAISES = """
import contextlib
from torch.overrides import TorchFunctionMode

class Raises(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        if getattr(function, "__name__", "") == "layer_norm":
            raise KeyError("no kernel")
        return function(*args, **(kwargs or {}))

def raises(): return Raises()
"""
OWN = "def test_own(): raise KeyError('a bug of the suite')\n"


def test_a_fault_of_the_suite_is_no_verdict(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\n" + OWN + "def test_b(): pass\n")
    judged = judge_run(run, device="mps", record=tmp_path / "record.json")

    assert outcomes(run) == {"test_a": "passed", "test_own": "own_fault", "test_b": "passed"}
    assert (judged.verdict, judged.exit_code, judged.cause) == ("not_verified", OwnFault.exit_code, OwnFault.cause)
    assert "test_own" in str(judged.message) and "nothing follows" in str(judged.message)


def test_a_failure_beside_it_is_still_a_regression(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): assert 0\n" + OWN)

    assert judge_run(run, device="mps", record=tmp_path / "record.json").verdict == "regressed"


def test_nor_is_it_a_rehearsal(tmp_path: Path) -> None:
    run = drive(tmp_path, "def test_a(): pass\n" + OWN)

    assert judge_run(run, device="cpu", record=tmp_path / "record.json").exit_code == OwnFault.exit_code


@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
@pytest.mark.parametrize(("plugin", "fault", "outcome"), [(BROKEN, "", "own_fault"), (BROKEN + RAISES, "", "own_fault"),
                                                           (RAISES, "raises", "failed")])  # fmt: skip
def test_the_suite_asks_the_cpu_whether_an_error_is_its_own(
    plugin: str, fault: str, outcome: str, tmp_path: Path
) -> None:
    (tmp_path / "breaks.py").write_text(plugin)
    argv = [PYTHON, "-m", "pytest", "-q", "-c", str(SUITE / "pytest.ini"), str(SUITE / "regressions" / "test_norms.py")]
    argv += ["--rootdir", str(SUITE), "--device", "cpu", "--only", CASE, "--outcomes", str(tmp_path / "said.jsonl")]
    argv += ["--inject", f"{tmp_path / 'breaks.py'}:{fault}"] if fault else ["-p", "breaks"]
    subprocess.run(argv, env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, check=False)

    said = [json.loads(line) for line in (tmp_path / "said.jsonl").read_text().splitlines()]
    assert [(line["id"], line["outcome"]) for line in said if line["event"] == "finished"] == [(CASE, outcome)]
