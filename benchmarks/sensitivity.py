"""Measure how sensitive the device suite is: generic plants caught, catalogue bugs caught, plants caught per second.

    python benchmarks/sensitivity.py --python PYTHON_WITH_TORCH [--layers regressions,layouts] [--write]

Runs tests/sensitivity/measure.py with the given Python and prints one row for each figure, as in results.json;
--write puts them there.
"""

from __future__ import annotations

import argparse
import collections
import datetime
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

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
    rows = figures(plants, cpu_seconds=_cpu_seconds(told), command="python benchmarks/sensitivity.py --write")
    for row in rows:
        print(f"{row['name']:40} {row['median']:>10} {row['unit']}")
    if given.write:
        _write(rows)
    caught = next(row["median"] for row in rows if row["name"] == "suite.generic_caught")
    return 0 if caught >= 0.97 else 1


def figures(plants: list[dict[str, Any]], *, cpu_seconds: float, command: str) -> list[dict[str, Any]]:
    """Return the rows that follow from the judged plants."""
    effective = [plant for plant in plants if plant["verdict"] != "without_effect"]
    caught = [plant for plant in effective if plant["verdict"] == "caught"]
    by_layer = collections.Counter(plant["layer"] for plant in caught if plant["layer"])
    spent: collections.Counter[str] = collections.Counter()
    for plant in caught:
        spent[plant["layer"]] += plant["seconds"]
    values: list[tuple[str, float, str]] = [
        ("suite.generic_caught", round(len(caught) / max(len(effective), 1), 4), "ratio"),
        ("suite.generic_plants", len(effective), "plants"),
        ("suite.cpu_s", round(cpu_seconds, 1), "s"),
    ]
    values += [
        (f"suite.plants_per_second.{layer}", round(count / max(spent[layer], 0.001), 2), "1/s")
        for layer, count in sorted(by_layer.items())
    ]
    return [
        {
            "name": name,
            "median": value,
            "low": value,
            "high": value,
            "unit": unit,
            "command": command,
            "machine": f"{platform.machine()}, {platform.system()}, one thread",
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "target": TARGETS.get(name, ""),
        }
        for name, value, unit in values
    ]


def _cpu_seconds(told: str) -> float:
    """Return the CPU seconds of one pass, from the line that measure.py prints first."""
    return float(told.split(" cases, ")[1].split(" s of CPU")[0])


def _write(rows: list[dict[str, Any]]) -> None:
    path = ROOT / "benchmarks" / "results.json"
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    names = {row["name"] for row in rows}
    kept = [row for row in stored if row["name"] not in names]
    path.write_text(json.dumps([*kept, *rows], indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
