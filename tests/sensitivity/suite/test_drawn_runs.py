"""Drawn cases as pytest runs them: an id, an operator, the estimate, a known issue."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
import torch

import operators
import suite_in_process
import transforms
from engine import sampler
from engine.sampler import Case

DEVICE_TESTS = suite_in_process.DEVICE_TESTS
OPERATORS, TRANSFORMS = operators.described(), transforms.known()
KNOWN = {"id": "half", "cases": [], "outcome": "fails", "drawn": ["exp:dtype:*"], "says": "off by"}
HALF = """
from torch.utils._python_dispatch import TorchDispatchMode

class half(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out * 1.5 if str(func) == "aten.exp.default" and args[0].dtype.itemsize == 2 else out
"""


@pytest.mark.parametrize(("dtype", "outcome"), [("float16", "known"), ("int8", "failed")])
def test_a_wrong_answer_that_a_row_speaks_of_is_known_and_not_shrunk(tmp_path: Any, dtype: str, outcome: str) -> None:
    case = next(f"exp:dtype:{seed}" for seed in range(1, 40) if _dtype_of(f"exp:dtype:{seed}") == torch.float16)
    (tmp_path / "known.json").write_text(json.dumps([{**KNOWN, "dtype": [dtype]}]))
    (tmp_path / "fault.py").write_text(HALF)
    files = (
        "--known",
        f"{tmp_path}/known.json",
        "--outcomes",
        f"{tmp_path}/o.jsonl",
        "--inject",
        f"{tmp_path}/fault.py:half",
    )
    _pytest("test_drawn.py", "--device", "cpu", "--only", case, *files)
    lines = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    line = next(one for one in lines if one["event"] == "finished")

    assert (line["outcome"], line.get("known_issue")) == (outcome, "half" if outcome == "known" else None)
    assert line["levels"]["dtype"] == "float16"
    assert ("finding" in line) is (outcome == "failed")


def _dtype_of(text: str) -> Any:
    case = Case.of(text)
    call = sampler.draw(case, OPERATORS[case.operator], TRANSFORMS[case.transformation])
    return call.levels["@dtype"] if call is not None else None


def _pytest(*argv: str) -> subprocess.CompletedProcess[str]:
    argv = (sys.executable, "-m", "pytest", "-c", str(DEVICE_TESTS / "pytest.ini"), *argv)
    return subprocess.run(argv, cwd=DEVICE_TESTS, capture_output=True, text=True, check=False)


def test_the_drawn_layer_is_part_of_the_default_and_one_case_is_run_by_its_id() -> None:
    done = _pytest(".", "--device", "cpu", "--only", "add:layout:3,exp:gradient:2", "-v", "-s")
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    for wrong, words in (("no_such:layout:3", "no such operator"), ("issue-131750,no-such", "--only no-such: no case")):
        unknown = _pytest(".", "--device", "cpu", "--only", wrong)
        assert unknown.returncode == 4, unknown.stdout
        assert words in unknown.stdout + unknown.stderr
    assert "drawn" not in _pytest("--collect-only", "-q", "--layer", "smoke", ".", "--device", "cpu").stdout


def test_a_run_says_first_what_it_will_take() -> None:
    done = _pytest("test_drawn.py", "--device", "cpu", "--layer", "drawn", "--cases", "30", "-s", "-q")
    assert re.search(r"30 cases, \d+ graph keys: \d+ s estimated", done.stdout), done.stdout
    assert (
        "estimated"
        not in _pytest(
            "test_drawn.py", "--device", "cpu", "--layer", "drawn", "--cases", "30", "-s", "-q", "--no-estimate"
        ).stdout
    )


@pytest.mark.parametrize(("name", "status", "said"), [("hypot", 0, "hypot:"), ("hypott", 4, "did you mean aten.hypot")])
def test_an_operator_is_tested_by_its_name_and_one_that_none_dispatches_is_refused(
    name: str, status: int, said: str
) -> None:
    options = ("--device", "cpu", "--op", name, "--collect-only", "-q", "-p", "no:cacheprovider")
    files = (str(DEVICE_TESTS / "test_drawn.py"), str(DEVICE_TESTS / "scenarios" / "test_smoke.py"))
    argv = [sys.executable, "-m", "pytest", "-c", str(DEVICE_TESTS / "pytest.ini"), *files, *options]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert (done.returncode, said in done.stdout + done.stderr) == (status, True), done.stdout[-500:]
