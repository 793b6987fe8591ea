"""What the device suite notices: injected faults caught by the default budget, by --quick and over graph keys.

    nox -s benchmark -- drawn --python PYTHON_WITH_TORCH [--write]
    nox -s benchmark -- drawn --rows FILE.json... [--write]       # what tests/sensitivity/judging.py wrote with --json

Judged are, at three seeds of the drawn cases, the catalogue (a regression check: cases were written after many of its
reports) and a fresh sample, drawn by a seed after the last change (out of sample). False alarms: `false_alarms`. The
Python needs torch, numpy, pytest and expecttest (the group `sensitivity`).
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
SEEDS = (0, 1, 2)
FRESH = "fresh:4:100"
MOST_KEYS = 22_000  # as estimated; the curve's last point is at 20,000 that are dispatched
COMMAND = "nox -s benchmark -- drawn --python PYTHON --write"
TARGETS = {
    "suite.catalogue_caught": ">= 0.94",
    "suite.default_cpu_s": "<= 60",
    "suite.default_keys": "<= 10000",
    "suite.quick_keys": "<= 2000",
}


def main() -> int:
    """Measure, print and write; return 1 where a case failed without a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and what the suite needs")
    parser.add_argument("--fresh", default=FRESH, metavar="fresh:SEED:COUNT", help="the fresh sample")
    parser.add_argument("--rows", type=Path, nargs="*", help="what judging.py wrote with --json")
    parser.add_argument("--write", action="store_true", help="put the figures into results.json")
    given = parser.parse_args()
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in given.rows or ()] or _measured(given)
    for name, (values, unit, of) in figures_of(runs).items():
        print(f"{name:30} {values} {unit}; {of}")
        if given.write:
            target = TARGETS.get(name, "")
            record(name, values, unit=unit, command=COMMAND, target=target, versions=f"torch 2.13.0; {of}")
    alarms = [alarm for run in runs for alarm in run["alarms"]]
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
    for name in dict.fromkeys(name for run in runs for name in run["sets"]):
        results = [run["sets"][name] for run in runs if name in run["sets"]]
        short = name.partition(":")[0]
        for place in dict.fromkeys(place for one in results for place in one["points"]):
            points = [one["points"][place] for one in results if place in one["points"]]
            figure = {"default": f"suite.{short}_caught", "quick": f"suite.{short}_quick_caught"}
            at = f"{', '.join(str(one['cases']) for one in points)} cases, CPU s {[one['cpu_s'] for one in points]}"
            low, high = (edge(one["interval"][at_end] for one in points) for edge, at_end in ((min, 0), (max, 1)))
            found[figure.get(place, f"suite.{short}_caught.{place}")] = (
                [one["share"] for one in points],
                "share",
                f"n {results[0]['faults']} ({name}); Wilson 95 % {low} to {high}; {at}",
            )
    points = [next(iter(run["sets"].values()))["points"] for run in runs]
    for place in ("default", "quick") if points else ():
        cases = ", ".join(str(one[place]["cases"]) for one in points)
        for key, unit in (("cpu_s", "CPU s"), ("keys", "keys")):
            found[f"suite.{place}_{key}"] = [float(one[place][key]) for one in points], unit, f"{cases} cases"
    return found


if __name__ == "__main__":
    sys.exit(main())
