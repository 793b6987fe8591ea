"""What a verdict follows from: the next command; no fault of the suite, no work left by another case, no dead CPU."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from fake_suites import drive, judge_text, outcomes
from mps_build.cli import main
from mps_build.common.errors import OwnFault
from mps_build.common.records.device_record import Case
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits, SuiteRequest
from mps_build.verify.verdict import judge_run


def test_the_next_command_names_the_record_and_the_first_failure(tmp_path: Path) -> None:
    run = SuiteRun()
    run.cases.append(Case(id="issue-1-row", layer="regressions", outcome="passed"))
    run.cases.append(Case(id="suite::outside", layer="layouts", outcome="failed", reason="no disk"))
    event = judge_run(run, device="mps", record=tmp_path / "my record.json")
    run.cases.append(Case(id="layout-add-input", layer="layouts", outcome="failed"))

    judged = judge_run(run, device="mps", record=tmp_path / "my record.json")

    assert event.hint == "what failed is no case: suite::outside: no disk"
    assert judged.hint is not None
    assert f"nox -s repro -- '{tmp_path}/my record.json' layout-add-input`" in judged.hint
    own = judge_run(run, device="mps", record=tmp_path / "my record.json", python=Path("/my venv/bin/python"))
    assert "layout-add-input --python '/my venv/bin/python'`" in str(own.hint)


def test_a_suite_of_which_no_file_can_be_imported_is_our_own_fault(tmp_path: Path) -> None:
    broken = [
        Case(id=f"test_{name}::collection", layer="drawn", outcome="crashed", reason="SyntaxError") for name in "ab"
    ]
    one_ran = [*broken, Case(id="add:common:0", layer="drawn", outcome="passed")]

    judged = judge_run(SuiteRun(cases=broken), device="cuda", record=tmp_path / "record.json")

    assert (judged.verdict, judged.exit_code) == ("not_verified", OwnFault.exit_code)
    assert "test_a::collection: SyntaxError" in str(judged.message)
    beside = judge_run(SuiteRun(cases=one_ran), device="cuda", record=tmp_path / "record.json")
    assert beside.verdict == "regressed"


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


# A plugin of pytest: torch.exp ends the process, as some calls of a released torch do on the CPU.
DIES = "import os, torch\ndef pytest_configure():\n    torch.exp = lambda *_, **__: os.abort()\n"


@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
def test_a_case_at_which_the_cpu_dies_is_skipped_and_costs_no_other(tmp_path: Path) -> None:
    (tmp_path / "dies_at_exp.py").write_text(DIES)
    ids = ("add:common:0", "exp:common:0", "sub:common:0")
    request = SuiteRequest(
        interpreter=Path(PYTHON),
        environ={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "PYTEST_PLUGINS": "dies_at_exp"},
        ini=SUITE / "pytest.ini",
        files=(SUITE / "test_drawn.py",),
        device="cpu",
        folder=tmp_path / "run",
        limits=Limits(memory_bytes=1 << 40),
        only=ids,
        quick=True,
        seconds=600.0,
    )

    run = run_suite(request, judge_text=judge_text, on_case=lambda run, case: None)

    assert {case.id: case.outcome for case in run.cases} == dict(zip(ids, ("passed", "skipped", "passed"), strict=True))
    reason = next(case.reason for case in run.cases if case.outcome == "skipped")
    assert reason == "no reference: this torch's CPU fails in this case by itself: the process died with SIGABRT"


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


@pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TEST_TORCH names a Python that has it")
def test_the_command_that_a_failure_names_runs_and_its_script_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MPS_BUILD_TORCH_PYTHON", raising=False)
    (tmp_path / "fault.py").write_text(RAISES)
    given = ["--python", PYTHON, "--device", "cpu", "--op", "native_layer_norm", "--layer", "drawn"]

    status = main("verify_mps", [*given, "--inject", "fault.py:raises", "--record", "record", "--json", "a.json"])

    hint = json.loads(Path("a.json").read_text())["hint"]
    named = re.search(r"`nox -s repro -- ([^`]+)`", hint)
    assert (status, bool(named)) == (10, True), hint
    assert named is not None
    assert main("repro", shlex.split(named[1])) == 0
    (script,) = tmp_path.glob("repro_*.py")
    assert subprocess.run([PYTHON, script.name], cwd=tmp_path, check=False).returncode == 0, "right without the fault"
