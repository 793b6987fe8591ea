"""A drawn case at which the CPU itself dies has no reference: it is skipped, and the cases behind it are asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_suites import judge_text
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.request import Limits, SuiteRequest

SUITE = Path(__file__).parents[3] / "tests" / "device"
PYTHON = os.environ.get("MPS_BUILD_TEST_TORCH") or os.environ.get("MPS_BUILD_TORCH_PYTHON") or ""
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
