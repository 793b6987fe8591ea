"""Drives a stand-in suite: the driver is real, the cases and the machine's words only play their parts."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.records.device_record import Estimate
from mps_build.verify.suite.driver import run_suite
from mps_build.verify.suite.outcomes import SuiteRun
from mps_build.verify.suite.request import Limits, SuiteRequest
from stand_in_suite import write_suite

ON_THE_CPU = "os.environ['STAND_IN_DEVICE'] == 'cpu'"
# How a case ends its process, of any kind of process; DEATHS: of a device, where the CPU lives.
_ENDS = {
    "hang": "time.sleep(600)",
    "abort": "(print('-[MTLDebugDevice x]: failed assertion `no'), os.abort())",
    "segfault": "os.kill(os.getpid(), signal.SIGSEGV)",
    "exit_with_0": "os._exit(0)",
    "memory": "(held := bytearray(600 << 20), time.sleep(600))",
}
DEATHS_ANYWHERE = {name: f"import os, signal, time; {end}" for name, end in _ENDS.items()}
DEATHS = {name: f"import os, signal, time; {ON_THE_CPU} or {end}" for name, end in _ENDS.items()}
FAILS_BY_THE_PLANT = "import os; assert not os.environ['STAND_IN_PLANT']"


@dataclass(frozen=True)
class Text:
    category: str
    stop: bool = False


def judge_text(text: str, exit_code: int | None, signal_name: str | None) -> Text:
    if "Internal Error (0000000e" in text:
        return Text("gpu_fault")
    if "The MPS backend is supported on" in text:
        return Text("mps_unavailable", stop=True)
    return Text("assertion" if "failed assertion" in text else "unknown")


def drive(
    tmp_path: Path,
    *sources: str,
    known: list[dict[str, object]] | None = None,
    plant: str | None = None,
    device: str = "mps",
    only: tuple[str, ...] = (),
    case_seconds: float = 60.0,
    memory_bytes: int = 1 << 40,
    jobs: int = 1,
    seconds: float = 0.0,
    run: SuiteRun | None = None,
    on_estimate: Callable[[Estimate], None] = lambda estimate: None,
) -> SuiteRun:
    files = write_suite(tmp_path, *sources)
    request = SuiteRequest(
        interpreter=Path(sys.executable),
        environ={
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        ini=tmp_path / "pytest.ini",
        files=files,
        device=device,
        folder=tmp_path / "run",
        limits=Limits(start_seconds=60, case_seconds=case_seconds, end_seconds=60, memory_bytes=memory_bytes),
        known=known or [],
        fault=plant,
        only=only,
        jobs=jobs,
        seconds=seconds,
    )
    return run_suite(request, judge_text=judge_text, on_case=lambda run, case: None, on_estimate=on_estimate, run=run)


def outcomes(run: SuiteRun) -> dict[str, str]:
    return {case.id: case.outcome for case in run.cases}
