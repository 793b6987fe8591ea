"""Count the cases that fail on healthy torches: the default suite over every torch that can be had, with five seeds.

    nox -s benchmark -- false_alarms --python PYTHON [--python ANOTHER …] [--device cpu] [--seeds 0,1,2,3,4] [--jobs N]

PYTHON has torch and pytest. Each seed draws other numbers and runs the driver of verify_mps over the whole default
suite, with one thread a process. What fails is printed, and so is what the CPU of that release cannot do itself, which
is skipped. Then one row a release. Known issues of the device are not counted. Exit status 1: there is a false alarm.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.cores import usable_cores
from mps_build.common.known_issues import Circumstances, active_issues, as_suite_reads_them, load_issues
from mps_build.common.records.device_record import Case
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits, SuiteRequest, default_limit_bytes, suite_files
from mps_build.verify.target.diagnosis import judge_text_on, observe_host

SUITE = Path(__file__).resolve().parent.parent / "tests" / "device"
# One thread a process: more wait for each other.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass
class Row:
    """One torch on one device: what came of its cases, by seed."""

    torch: str
    device: str
    alarms: dict[int, list[Case]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def text(self) -> str:
        """Return the row as it is printed."""
        each = ", ".join(f"{seed}: {len(found)}" for seed, found in self.alarms.items())
        tested = ", ".join(f"{number} {outcome}" for outcome, number in sorted(self.counts.items()))
        seconds = ", ".join(f"{one:.0f}" for one in self.seconds)
        total = sum(map(len, self.alarms.values()))
        return f"torch {self.torch} on {self.device}: {total} false alarms (seed: number {each}); {tested}; {seconds} s"


def main() -> int:
    """Run each torch with each seed; return 1 where a case fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", required=True, help="a Python that has torch and pytest")
    parser.add_argument("--device", choices=("cpu", "cuda", "mps"), default="cpu")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="default: one for each core")
    parser.add_argument("--layers", default="", help="only these layers of the suite")
    parser.add_argument("--only", default="", help="only these cases (ids or patterns)")
    given = parser.parse_args()
    rows = []
    for python in given.python:
        reported = subprocess.run(
            (python, "-c", "import torch, pytest; print(torch.__version__)"),
            capture_output=True,
            text=True,
            check=False,
        )
        if reported.returncode:
            sys.exit(f"{python} has no torch or no pytest: {reported.stderr.strip().splitlines()[-1]}")
        row = Row(reported.stdout.strip(), given.device)
        rows.append(row)
        for seed in map(int, given.seeds.split(",")):
            _run(row, python, seed, given)
    for row in rows:
        print(row.text())
    return int(any(found for row in rows for found in row.alarms.values()))


def _run(row: Row, python: str, seed: int, given: argparse.Namespace) -> None:
    here = Circumstances(device=row.device, torch=row.torch, macos=None, chip=None, virtual=None)
    with tempfile.TemporaryDirectory(prefix="false-alarms-") as folder:
        request = SuiteRequest(
            interpreter=Path(python),
            environ={**os.environ, **_THREADS},
            ini=SUITE / "pytest.ini",
            files=suite_files(SUITE, [one for one in given.layers.split(",") if one]),
            device=row.device,
            folder=Path(folder),
            limits=Limits(memory_bytes=default_limit_bytes()),
            only=tuple(one for one in given.only.split(",") if one),
            known=as_suite_reads_them(active_issues(load_issues(SUITE / "known_issues.yaml"), here)),
            jobs=given.jobs,
            seed=seed,
        )
        begun = time.monotonic()
        run = run_suite(request, judge_text=judge_text_on(observe_host(None), row.torch), on_case=_ignore)
    if run.stopped or run.refused or not run.cases:
        sys.exit(f"torch {row.torch}: the run ended early: {run.stopped or run.refused or 'no case was tested'}")
    row.seconds.append(time.monotonic() - begun)
    row.counts += Counter(case.outcome for case in run.cases)
    row.alarms[seed] = [case for case in run.cases if case.is_new or case.outcome == "own_fault"]
    for note in run.notes:
        print(f"  torch {row.torch}, seed {seed}: {note}", flush=True)
    for case in row.alarms[seed]:
        print(f"  torch {row.torch}, seed {seed}: {case.outcome}: {case.id}: {str(case.reason)[:400]}", flush=True)
    print(f"torch {row.torch}, seed {seed}: {len(row.alarms[seed])} false alarms", flush=True)


def _ignore(run: SuiteRun, case: Case) -> None:
    """Nothing is shown while a run grows."""


if __name__ == "__main__":
    sys.exit(main())
