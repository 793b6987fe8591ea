"""`--inject` as pytest's option: where the suite stops, and what its lines say of the fault's hits."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import suite_in_process
from engine.faults import InjectedFault
from suite_in_process import DEVICE_TESTS

FAULT = """
from torch.utils._python_dispatch import TorchDispatchMode

HITS = {"late": 0}


class late(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if str(func) == "aten.native_layer_norm.default":  # a fault of the device: nobody counts it
            return (out[0] * 1.5, *out[1:])
        if str(func) == "aten.native_group_norm.default":
            HITS["late"] += 1
            return (out[0] * 1.5, *out[1:])
        return out
"""
CASES = ("issue-131750", "issue-88331", "issue-133520-columns")


def _events(tmp_path: Path, fault: str, *cases: str) -> list[dict[str, Any]]:
    (tmp_path / "fault.py").write_text(fault)
    file, outcomes = DEVICE_TESTS / "regressions" / "test_norms.py", tmp_path / "outcomes.jsonl"
    argv = [sys.executable, "-m", "pytest", "-q", "-c", str(DEVICE_TESTS / "pytest.ini"), str(file), "--device", "cpu"]
    argv += ["--only", ",".join(cases), "--outcomes", str(outcomes), "--inject", f"{tmp_path / 'fault.py'}:late"]
    subprocess.run(argv, cwd=tmp_path, capture_output=True, check=False)
    return [json.loads(line) for line in outcomes.read_text().splitlines()]


def _finished(tmp_path: Path, fault: str, *cases: str) -> list[dict[str, Any]]:
    return [event for event in _events(tmp_path, fault, *cases) if event["event"] == "finished"]


def test_a_failure_before_the_first_hit_does_not_stop_the_run(tmp_path: Path) -> None:
    found = [(one["id"], one["outcome"], one["fault_hits"] > 0) for one in _finished(tmp_path, FAULT, *CASES)]

    assert found == [("issue-131750", "failed", False), ("issue-88331", "failed", True)]


def test_without_hits_the_first_failure_stops_the_run(tmp_path: Path) -> None:
    lines = _finished(tmp_path, FAULT.replace("HITS", "_COUNTED"), *CASES)
    found = [(one["id"], one["outcome"], one["fault_hits"]) for one in lines]

    assert found == [("issue-131750", "failed", None)]


def test_a_failure_without_a_hit_of_its_own_does_not_stop_the_run(tmp_path: Path) -> None:
    """The first case has hits that change nothing: what fails behind it failed by itself."""
    first, second = "aten.native_layer_norm.default", "aten.native_group_norm.default"
    fault = FAULT.replace(first, "x").replace(second, first).replace("* 1.5", "* 1.0").replace('"x"', f'"{second}"')
    fault = fault.replace("* 1.0", "* 1.5", 1)

    events = _events(tmp_path, fault, *CASES)

    found = [(one["id"], one["outcome"], one["fault_hits"] > 0) for one in events if one["event"] == "finished"]
    assert found == [(CASES[0], "passed", True), (CASES[1], "failed", True), (CASES[2], found[2][1], True)]
    assert not [event for event in events if event["event"] == "leave"]


@pytest.mark.parametrize("end", ["os.abort()", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_process_that_dies_leaves_its_count_of_hits(tmp_path: Path, end: str) -> None:
    """HITS may be a neighbour's."""
    (tmp_path / "counting.py").write_text("HITS = {'late': 0}\ndef count(): HITS['late'] += 1\n")
    fault = FAULT.replace('HITS = {"late": 0}', "import os, signal\nfrom counting import HITS, count")
    fault = fault.replace('HITS["late"] += 1', f"[count(), count(), {end}]")

    events = _events(tmp_path, fault, "issue-88331")

    assert [event["event"] for event in events][-1] == "started"
    assert int.from_bytes((tmp_path / "outcomes.hits").read_bytes(), sys.byteorder) == 2


def test_the_count_of_a_fault_of_the_catalogue_is_shared(tmp_path: Path) -> None:
    """`HITS = faults.hits`: it was 0 for ever, and what the fault broke "failed by itself"."""
    file = Path(suite_in_process.__file__).with_name("faults") / "norms.py"
    fault = InjectedFault(f"{file}:issue_131750", tmp_path / "outcomes.hits")

    with fault.maker():
        F.layer_norm(torch.arange(12.0).reshape(4, 3)[1:3], (3,))

    assert fault.hits == int.from_bytes((tmp_path / "outcomes.hits").read_bytes(), sys.byteorder) == 1


@pytest.mark.parametrize("fault", ["late = lambda: 3", "def late(): raise ValueError('no such operator')"])
def test_a_fault_that_cannot_be_made_is_refused(tmp_path: Path, fault: str) -> None:
    """It was held around no run: 39 cases failed by it, and the outcome was `not_exercised`."""
    (tmp_path / "fault.py").write_text(fault)
    argv = [sys.executable, "-m", "pytest", "-q", "-c", str(DEVICE_TESTS / "pytest.ini"), "--device", "cpu"]
    argv += ["--only", CASES[0], "--inject", f"{tmp_path / 'fault.py'}:late"]
    done = subprocess.run(argv, cwd=DEVICE_TESTS, capture_output=True, text=True, check=False)

    assert done.returncode == 4
    assert "late() of" in done.stdout + done.stderr
