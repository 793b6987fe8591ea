"""Runs in the Python under test: measures the requested rows and writes each as a JSON line at once.

    python measure.py --device mps --out rows.jsonl [--quick] [--skip ID,ID] [--lower ID=BATCH] [--inject FILE.py:NAME]

Needs torch 1.12 or newer and the standard library. `nox -s benchmark_mps` calls it, reads its lines, and starts it
again where it died.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parents[1] / "tests" / "device")]

import torch  # noqa: E402
from engine.faults import FaultError, InjectedFault  # noqa: E402
from engine.outcomes import OutcomeLog  # noqa: E402

from device_benchmark import ceilings  # noqa: E402
from device_benchmark.intervals import growth, is_drift  # noqa: E402
from device_benchmark.pace import Pace  # noqa: E402
from device_benchmark.rows import Bench, Skipped, measure  # noqa: E402
from device_benchmark.timed_device import TimedDevice  # noqa: E402
from device_benchmark.workloads import Workload, workloads  # noqa: E402

# One row may hold the machine so long before it counts as hung.
_ROW_LIMIT_SECONDS = {False: 3600.0, True: 170.0}
_REFUSED = 4


def main() -> int:
    """Measure; 4 means that the arguments, a fault that cannot be loaded above all, are refused."""
    arguments = _arguments()
    events = OutcomeLog(arguments.out)
    try:
        fault = InjectedFault(arguments.inject) if arguments.inject else None
    except FaultError as error:
        print(f"--inject: {error}", file=sys.stderr)
        return _REFUSED
    _exact()
    run = _Run(arguments, events, fault)
    run.go()
    events.write("fault", hits=fault.hits if fault else None)
    events.write("end")
    return 0


class _Run:
    """The rows in their order."""

    def __init__(self, arguments: argparse.Namespace, events: OutcomeLog, fault: InjectedFault | None) -> None:
        self._arguments, self._events = arguments, events
        self._fault = fault
        self._timed = TimedDevice(arguments.device, around=fault.maker if fault else None)
        known_ceilings = json.loads(arguments.ceilings or "{}")
        self._ceilings = ceilings.Ceilings(self._timed, quick=arguments.quick, values=known_ceilings)
        self._beats: list[float] = []
        known = workloads()
        wanted = [row for row in known if not arguments.only or row.id in arguments.only or row.name in arguments.only]
        self._rows = [row for row in wanted if row.id not in arguments.skip]
        events.write("plan", ids=[row.id for row in wanted], names=sorted({row.name for row in known}))

    def go(self) -> None:
        quick = self._arguments.quick
        total = self._arguments.seconds
        pace = Pace(quick=quick, weights=sum(row.weight for row in self._rows), total=total)
        bench = Bench(device=self._timed, cpu=TimedDevice("cpu"), quick=quick, cpu_bfloat16=_cpu_likes_bfloat16())
        self._events.write("facts", **_facts(bench))
        if not self._rows:
            return
        self._measure_ceilings()
        sentinel = ceilings.Sentinel(self._timed, quick=quick)
        for workload in self._rows:
            self._beats.append(sentinel.seconds())
            bad = self._row(workload, bench, pace)
            pace.passed(workload.weight)
            if bad and self._fault is not None and self._fault.hits != 0:  # it is caught: no more is to be measured
                break
        self._beats.append(sentinel.seconds())
        self._tell_ceilings()  # a row may have had them measured again
        self._events.write(
            "sentinel",
            seconds=[float(f"{beat:.4g}") for beat in self._beats],
            growth=growth(self._beats),
            drift=is_drift(self._beats),
        )

    def _measure_ceilings(self) -> None:
        if not self._ceilings.values:
            self._events.write("started", id="ceilings", limit_seconds=600.0)
            self._ceilings.measure()
            self._tell_ceilings()

    def _tell_ceilings(self) -> None:
        self._events.write("finished", id="ceilings", ceilings=self._ceilings.values, which=self._ceilings.which)

    def _row(self, workload: Workload, bench: Bench, pace: Pace) -> bool:
        """Measure one row and tell it; true if there is any doubt about it."""
        began = time.monotonic()
        self._events.write("started", id=workload.id, limit_seconds=_ROW_LIMIT_SECONDS[bench.quick])
        row: dict[str, Any] = {"name": workload.name, "mode": workload.mode, "ratio": None, "flags": []}
        try:
            if pace.is_spent:
                raise Skipped("no time was left for it")
            row = measure(
                workload,
                bench,
                pace,
                self._ceilings,
                lowered=self._arguments.lower.get(workload.id),
                on_size=lambda key, number: self._events.write("size", id=workload.id, key=key, number=number),
            )
        except Skipped as why:
            row.update(outcome="skipped", reason=str(why))
        except Exception as error:
            said = f"{type(error).__name__}: {error}".strip().splitlines()[0][:400]
            lacks = "bfloat16" in said.lower() and workload.dtype == "bfloat16"
            row.update(outcome="skipped" if lacks else "failed", reason=said)
        bench.device.free()
        row["row_seconds"] = round(time.monotonic() - began, 2)
        self._events.write("finished", id=workload.id, row=row, fault_hits=self._fault.hits if self._fault else None)
        return bool(row["flags"]) or row["outcome"] == "failed"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=("mps", "cuda", "cpu"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, help="for all rows together")
    parser.add_argument("--only", type=_words, default=(), help="names or ids")
    parser.add_argument("--skip", type=_words, default=(), help="ids that are measured already")
    parser.add_argument("--lower", type=_lower, default={}, help="ID=BATCH,ID=BATCH: begin with these")
    parser.add_argument("--ceilings", help="as measured before, in JSON")
    parser.add_argument("--inject", metavar="FILE.py:NAME")
    return parser.parse_args()


def _words(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _lower(text: str) -> dict[str, int]:
    pairs = (word.partition("=") for word in _words(text))
    return {name: int(number) for name, _, number in pairs}


def _exact() -> None:
    """Have float32 mean float32 on both sides: a cuDNN convolution would take tf32 by itself."""
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


def _cpu_likes_bfloat16() -> bool:
    """True if the CPU multiplies bfloat16 at least as fast as float32."""
    seconds = {}
    for dtype in (torch.float32, torch.bfloat16):
        left = torch.randn(256, 256).to(dtype)
        times = []
        for _ in range(3):
            began = time.perf_counter()
            torch.matmul(left, left)
            times.append(time.perf_counter() - began)
        seconds[dtype] = min(times)
    return seconds[torch.bfloat16] <= seconds[torch.float32] * 1.1


def _facts(bench: Bench) -> dict[str, Any]:
    return {
        "torch": str(torch.__version__),
        "threads": torch.get_num_threads(),
        "cpu_bfloat16": bench.cpu_bfloat16,
        "device": bench.device.name,
    }


if __name__ == "__main__":
    raise SystemExit(main())
