"""The drawn cases of the device suite: what they catch over cases, graph keys and CPU seconds; false alarms.

    nox -s benchmark -- drawn --python PYTHON_WITH_TORCH [--stages curve,old,alarms] [--faults 240] [--write]
    nox -s benchmark -- drawn --stages curve,old --rows FILE.json...       # the table of what was measured elsewhere

curve   tests/sensitivity/drawn_curve.py at three seeds: injected faults of the catalogue caught by the default budget
old     the same faults asked of the cases of the other layers
alarms  five seeds, one thread and two: cases of the default budget that fail on the CPU without a fault
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from shared.record import record

ROOT = Path(__file__).resolve().parent.parent
CURVE = ROOT / "tests" / "sensitivity" / "drawn_curve.py"
SEEDS, ALARM_SEEDS, THREADS = (0, 1, 2), (0, 1, 2, 3, 4), (1, 2)
CASES = 6_500  # some more than 10,000 keys hold
KEYS = 10_000
COMMAND = "nox -s benchmark -- drawn --stages {stage}"


def main() -> int:
    """Run the stages; return 1 where a case failed without a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and pytest")
    parser.add_argument("--stages", default="curve,old,alarms")
    parser.add_argument("--faults", type=int, default=240)
    parser.add_argument("--rows", type=Path, nargs="*", help="what drawn_curve.py wrote with --json")
    parser.add_argument("--write", action="store_true", help="put the figures into results.json")
    given = parser.parse_args()
    stages = given.stages.split(",")
    found = [json.loads(path.read_text(encoding="utf-8")) for path in given.rows or ()]
    if not given.rows and {"curve", "old"} & set(stages):
        found = _measure(given, stages)
    _print(found)
    if given.write:
        _write(found)
    alarms = _alarms(given) if "alarms" in stages else []
    print(*alarms, sep="\n")
    return 1 if alarms else 0


def _measure(given: argparse.Namespace, stages: list[str]) -> list[dict[str, Any]]:
    asked: list[tuple[str, ...]] = []
    if "curve" in stages:
        asked += [("--seed", str(seed), "--cases", str(CASES)) for seed in SEEDS]
    asked += [("--old", "--share", "1")] if "old" in stages else []
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "curve.json"
        for argv in asked:
            command = (given.python, str(CURVE), *argv, "--faults", str(given.faults), "--json", str(path))
            subprocess.run(command, check=True)
            found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def _print(found: list[dict[str, Any]]) -> None:
    print("cases      seed  asked   keys  CPU s  caught  late")
    for run in found:
        for point in run["points"]:
            print(
                f"{run['kind']:<10} {run['seed']:>4} {point['cases']:>6} {point['keys']:>6} {point['cpu_s']:>6} "
                f"{point['caught']:>7.3f} {point['late_caught']:>5.3f}"
            )


def _write(found: list[dict[str, Any]]) -> None:
    drawn = [run for run in found if run["kind"] == "drawn"]
    within = [[point for point in run["points"] if point["keys"] <= KEYS][-1] for run in drawn]
    figures: dict[str, list[dict[str, Any]]] = {"drawn": within}
    for run in found:
        if run["kind"] != "drawn":
            figures[f"stored_{run['kind']}"] = [run["points"][-1]]
    for name, points in figures.items():
        for key, unit in (("caught", "ratio"), ("late_caught", "ratio"), ("cpu_s", "CPU s"), ("keys", "keys")):
            if points:
                record(
                    f"suite.{name}_{key}",
                    [point[key] for point in points],
                    unit=unit,
                    command=COMMAND.format(stage="curve" if name == "drawn" else "old"),
                    target={"cpu_s": "<= 60", "keys": "<= 10000"}.get(key, "") if name == "drawn" else "",
                    versions=_versions(found, points),
                )


def _versions(found: list[dict[str, Any]], points: list[dict[str, Any]]) -> str:
    cases = sorted(point["cases"] for point in points)
    faults = f"{found[0]['faults']} faults of the catalogue's 1,632, {points[0]['late']} of them of its last samples"
    return f"torch 2.13.0+cpu; {faults}; {cases[0]} to {cases[-1]} cases, {len(points)} seeds"


def _alarms(given: argparse.Namespace) -> list[str]:
    """Return what failed without a fault, as pytest tells it."""
    suite = ROOT / "tests" / "device"
    found = []
    for seed in ALARM_SEEDS:
        for threads in THREADS:
            argv = (
                "-m",
                "pytest",
                "-c",
                str(suite / "pytest.ini"),
                str(suite / "test_drawn.py"),
                "--layer",
                "drawn",
                "-q",
                "--tb=no",
            )
            own = ("--device", "cpu", "--seed", str(seed))
            # Threads that wait by computing take the time of what runs beside them.
            around = ("env", f"OMP_NUM_THREADS={threads}", "OMP_WAIT_POLICY=PASSIVE")
            command = (*around, given.python, *argv, *own)
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            print(f"seed {seed}, {threads} threads: {told.stdout.splitlines()[-1]}", flush=True)
            found += [line for line in told.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if told.returncode not in (0, 1):
                found.append(
                    f"seed {seed}, {threads} threads: pytest ended with {told.returncode}: {told.stderr[-300:]}"
                )
    return found


if __name__ == "__main__":
    sys.exit(main())
