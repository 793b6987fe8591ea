"""Measure how sensitive the device suite is: generic plants caught, catalogue bugs caught, plants caught per second.

    python benchmarks/sensitivity.py --python PYTHON_WITH_TORCH [--layers regressions,layouts] [--write]

Runs tests/sensitivity/measure.py with the given Python and prints one row for each figure, as in results.json;
--write puts them there.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from record import record

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"suite.generic_caught": ">= 0.97", "suite.cpu_s": "<= 120 s with every default layer"}


def main() -> int:
    """Run the command; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and pytest")
    parser.add_argument("--layers", default="smoke,regressions,layouts,transformers,models")
    parser.add_argument("--op", default="", help="only overloads that begin with this: a quick look")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/results.json")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "generic.json"
        measure = ROOT / "tests" / "sensitivity" / "measure.py"
        argv = [given.python, str(measure), "--layers", given.layers, "--generic", str(found), "--op", given.op]
        told = subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout
        sys.stdout.write(told)
        plants = json.loads(found.read_text(encoding="utf-8"))
    found_figures = figures(plants, cpu_seconds=_cpu_seconds(told))
    for name, (value, unit) in found_figures.items():
        print(f"{name:40} {value:>10} {unit}")
        if given.write:
            command = f"python benchmarks/sensitivity.py --layers {given.layers} --write"
            record(name, [value], unit=unit, command=command, target=TARGETS.get(name, ""))
    return 0 if found_figures["suite.generic_caught"][0] >= 0.97 else 1


def figures(plants: list[dict[str, Any]], *, cpu_seconds: float) -> dict[str, tuple[float, str]]:
    """Return each figure with its unit, from the judged plants and the CPU time of one pass."""
    effective = [plant for plant in plants if plant["verdict"] != "without_effect"]
    caught = [plant for plant in effective if plant["verdict"] == "caught"]
    by_layer = collections.Counter(plant["layer"] for plant in caught if plant["layer"])
    spent: collections.Counter[str] = collections.Counter()
    for plant in caught:
        spent[plant["layer"]] += plant["seconds"]
    found: dict[str, tuple[float, str]] = {
        "suite.generic_caught": (round(len(caught) / max(len(effective), 1), 4), "ratio"),
        "suite.generic_plants": (len(effective), "plants"),
        "suite.cpu_s": (round(cpu_seconds, 1), "s"),
    }
    for layer, count in sorted(by_layer.items()):
        found[f"suite.plants_per_second.{layer}"] = (round(count / max(spent[layer], 0.001), 2), "1/s")
    return found


def _cpu_seconds(told: str) -> float:
    """Return the CPU seconds of one pass, from the line that measure.py prints first."""
    return float(told.split(" cases, ", maxsplit=1)[1].split(" s of CPU", maxsplit=1)[0])


if __name__ == "__main__":
    raise SystemExit(main())
