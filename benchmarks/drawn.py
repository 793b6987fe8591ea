"""What the device suite notices: injected faults caught by the default budget, by --quick and over graph keys.

    nox -s benchmark -- drawn --python PYTHON_WITH_TORCH [--stages catches,alarms] [--write]
    nox -s benchmark -- drawn --rows FILE.json... [--write]       # what tests/sensitivity/judging.py wrote with --json

catches  tests/sensitivity/judging.py at three seeds of the drawn cases: the catalogue (a regression check: cases were
         written after many of its reports) and a fresh sample, drawn by a seed after the last change (out of sample)
alarms   five seeds, one thread and two: cases of the default budget that fail on the CPU without a fault

The Python needs torch, numpy, pytest and expecttest (the group `sensitivity`).
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
JUDGING = ROOT / "tests" / "sensitivity" / "judging.py"
SEEDS, ALARM_SEEDS, THREADS = (0, 1, 2), (0, 1, 2, 3, 4), (1, 2)
FRESH = "fresh:2:150"
MOST_KEYS = 22_000  # as estimated; the curve's last point is at 20,000 that are dispatched
COMMAND = "nox -s benchmark -- drawn --stages {stage}"
TARGETS = {
    "suite.catalogue_caught": ">= 0.94",
    "suite.default_cpu_s": "<= 60",
    "suite.default_keys": "<= 10000",
    "suite.quick_keys": "<= 2000",
    "suite.false_alarms": "0: five seeds, one thread and two",
}


def main() -> int:
    """Run the stages; return 1 where a case failed without a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and what the suite needs")
    parser.add_argument("--stages", default="catches,alarms")
    parser.add_argument("--fresh", default=FRESH, metavar="fresh:SEED:COUNT", help="the fresh sample")
    parser.add_argument("--rows", type=Path, nargs="*", help="what judging.py wrote with --json")
    parser.add_argument("--write", action="store_true", help="put the figures into results.json")
    given = parser.parse_args()
    stages = [] if given.rows else given.stages.split(",")
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in given.rows or ()]
    if "catches" in stages:
        runs = _measured(given)
    figures = figures_of(runs) if runs else {}
    for name, (values, unit, of) in figures.items():
        print(f"{name:30} {values} {unit}; {of}")
    alarms = [alarm for run in runs for alarm in run["alarms"]]
    if "alarms" in stages:
        alarms += _alarms(given)
        figures["suite.false_alarms"] = [float(len(alarms))], "cases", f"{len(ALARM_SEEDS)} seeds, threads {THREADS}"
    if given.write:
        for name, (values, unit, of) in figures.items():
            command = COMMAND.format(stage="alarms" if name == "suite.false_alarms" else "catches")
            record(
                name, values, unit=unit, command=command, target=TARGETS.get(name, ""), versions=f"torch 2.13.0; {of}"
            )
    print(*alarms, sep="\n")
    return 1 if alarms else 0


def _measured(given: argparse.Namespace) -> list[dict[str, Any]]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        for seed in SEEDS:
            own = ("--faults", f"catalogue,{given.fresh}", "--seed", str(seed), "--keys", str(MOST_KEYS))
            subprocess.run((given.python, str(JUDGING), *own, "--json", str(path)), check=True)
            found.append(json.loads(path.read_text(encoding="utf-8")))
    return found


def figures_of(runs: list[dict[str, Any]]) -> dict[str, tuple[list[float], str, str]]:
    """Return (values, unit, what they are of) of each figure: a value for each seed."""
    found: dict[str, tuple[list[float], str, str]] = {}
    for name in runs[0]["sets"]:
        told = [run["sets"][name] for run in runs]
        short = name.partition(":")[0]
        for place in told[0]["points"]:
            points = [one["points"][place] for one in told if place in one["points"]]
            figure = {"default": f"suite.{short}_caught", "quick": f"suite.{short}_quick_caught"}
            at = f"{', '.join(str(one['cases']) for one in points)} cases, CPU s {[one['cpu_s'] for one in points]}"
            low, high = (edge(one["interval"][at_end] for one in points) for edge, at_end in ((min, 0), (max, 1)))
            found[figure.get(place, f"suite.{short}_caught.{place}")] = (
                [one["share"] for one in points],
                "share",
                f"n {told[0]['faults']} ({name}); Wilson 95 % {low} to {high}; {at}",
            )
    points = [run["sets"]["catalogue"]["points"] for run in runs if "catalogue" in run["sets"]]
    for place in ("default", "quick") if points else ():
        cases = ", ".join(str(one[place]["cases"]) for one in points)
        for key, unit in (("cpu_s", "CPU s"), ("keys", "keys")):
            found[f"suite.{place}_{key}"] = [float(one[place][key]) for one in points], unit, f"{cases} cases"
    return found


def _alarms(given: argparse.Namespace) -> list[str]:
    """Return what failed without a fault, as pytest tells it."""
    suite = ROOT / "tests" / "device"
    found = []
    for seed in ALARM_SEEDS:
        for threads in THREADS:
            argv = ("-m", "pytest", "-c", str(suite / "pytest.ini"), str(suite), "-q", "--tb=no")
            own = ("--device", "cpu", "--seed", str(seed))
            # Threads that wait by computing take the time of what runs beside them.
            around = ("env", f"OMP_NUM_THREADS={threads}", "OMP_WAIT_POLICY=PASSIVE")
            command = (*around, given.python, *argv, *own)
            told = subprocess.run(command, capture_output=True, text=True, check=False)
            last = (told.stdout.splitlines() or ["nothing"])[-1]
            print(f"seed {seed}, {threads} threads: {last}", flush=True)
            found += [line for line in told.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
            if told.returncode not in (0, 1):
                found.append(
                    f"seed {seed}, {threads} threads: pytest ended with {told.returncode}: {told.stderr[-300:]}"
                )
    return found


if __name__ == "__main__":
    sys.exit(main())
