"""What the device suite's driver costs over running pytest on its files by hand.

    nox -s benchmark -- verify_driver

Wall seconds over 4 files of 100 empty cases, without torch; both ways alternate, so that a busy machine slows both.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from fake_suites import write_suite
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.request import Limits, SuiteRequest, suite_command
from shared.record import record

COMMAND = "nox -s benchmark -- verify_driver"
RUNS = 5
CASES = "import pytest\n@pytest.mark.parametrize('number', range(100))\ndef test_case_{}(number): pass\n"


@dataclass(frozen=True)
class Nothing:
    category: str = "unknown"
    stop: bool = False


def main() -> None:
    bare, driven = [], []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        files = write_suite(work / "suite", *map(CASES.format, range(4)))
        for number in range(RUNS):
            request = SuiteRequest(
                interpreter=Path(sys.executable),
                environ={"PATH": os.environ["PATH"], "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
                ini=work / "suite" / "pytest.ini",
                files=files,
                device="cpu",
                folder=work / f"run-{number}",
                limits=Limits(memory_bytes=1 << 40),
            )
            began = time.perf_counter()
            run = run_suite(request, judge_text=lambda *_: Nothing(), on_case=lambda *_: None)
            driven.append(time.perf_counter() - began)
            if len(run.cases) != 400 or run.bad:
                raise SystemExit(f"the fake suite went wrong: {run}")
            bare.append(_by_hand(request, work / f"bare-{number}"))
    overhead = statistics.median(driven) - statistics.median(bare)
    spread = [one - other for one, other in zip(sorted(driven), sorted(bare), strict=True)]
    print(record("verify.overhead_s", [overhead, *spread], unit="s", command=COMMAND, target="<= 1 over 400 cases"))


def _by_hand(request: SuiteRequest, folder: Path) -> float:
    """Run the same files in one pytest, and return the wall seconds."""
    folder.mkdir()
    known = folder / "known.json"
    known.write_text("[]")
    began = time.perf_counter()
    command = suite_command(request, request.files, known=known, outcomes=folder / "outcomes.jsonl")
    with (folder / "pytest.log").open("wb") as log:
        subprocess.run(command.argv, env=dict(command.environ or {}), stdout=log, stderr=log, check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
