"""Measure the device suite on the CPU: false alarms, CPU time, plants caught, plants caught per second of a layer.

    nox -s benchmark -- sensitivity --python PYTHON_WITH_TORCH [--stages healthy,generic] [--write]

Each stage runs apart and prints one row for each figure, as in results.json; --write puts them there.

healthy    every default case three times in one process, with one thread and with two: false alarms, CPU seconds
catalogue  tests/sensitivity: the planted bugs of tiers A and B that are exercised and caught
generic    tests/sensitivity/measure.py: generic plants, all or --sample N of them, drawn with a fixed seed
layers     each layer alone against 100 generic plants of its own: caught per CPU second of asking
full       the driver with --full, wall seconds (this Python needs the tool's own requirements)
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shared.record import record

ROOT = Path(__file__).resolve().parent.parent
MEASURE = ROOT / "tests" / "sensitivity" / "measure.py"
TARGETS = {
    "suite.false_alarms": "0 in 3 repeats, with 1 and 2 threads",
    "suite.cpu_s": "<= 120 s of CPU, the default layers after imports",
    "suite.catalogue_caught": "1: tiers A and B, none merely not exercised",
    "suite.generic_caught": ">= 0.97 of those that change a bit",
    "suite.full_s": "<= 900 s on 2 cores",
}
LAYERS = ("smoke", "regressions", "scenarios")
REPEATS, THREADS = 3, (1, 2)
Figures = dict[str, tuple[list[float], str]]


def main() -> int:
    """Run the stages; return 1 where a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch and pytest")
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--layers", default=",".join(LAYERS))
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N generic plants")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/results.json")
    given = parser.parse_args()
    met, version = True, _output((given.python, "-c", "import torch; print(torch.__version__)"), threads=1).strip()
    for stage in given.stages.split(","):
        figures = STAGES[stage](given)
        command = f"nox -s benchmark -- sensitivity --stages {stage}" + (
            f" --sample {given.sample}" if stage == "generic" and given.sample else ""
        )
        for name, (values, unit) in figures.items():
            print(f"{name:40} {values} {unit}")
            if given.write:
                target = TARGETS.get(name, "")
                record(name, values, unit=unit, command=command, target=target, versions=f"torch {version}")
        met = met and _met(figures)
    return 0 if met else 1


def measure_healthy(given: argparse.Namespace) -> Figures:
    """Return the false alarms of each number of threads, and the CPU seconds of each pass with one."""
    alarms: list[float] = []
    seconds: dict[int, list[float]] = {}
    for threads in THREADS:
        argv = (given.python, str(MEASURE), "--layers", given.layers, "--healthy", str(REPEATS))
        told = _output(argv, threads=threads, may_fail=True)
        last = told.strip().splitlines()[-1]
        found = re.fullmatch(r"(\d+) false alarms in .* s of CPU: ([\d., ]+)", last)
        if found is None:
            raise SystemExit(f"measure.py ended early: {last}")
        alarms.append(float(found[1]))
        seconds[threads] = [float(one) for one in found[2].split(",")]
    return {
        "suite.false_alarms": (alarms, "cases"),
        "suite.cpu_s": (seconds[1], "s"),
        "suite.cpu_two_threads_s": (seconds[2], "s"),
    }


def measure_catalogue(given: argparse.Namespace) -> Figures:
    """Return the share of the catalogue's planted bugs that the suite catches, and how many there are."""
    folder = ROOT / "tests" / "sensitivity"
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.xml"
        pytest = (given.python, "-m", "pytest", "-q", "-c", str(ROOT / "tests" / "device" / "pytest.ini"))
        argv = (*pytest, "--rootdir", str(folder), str(folder / "test_catalogue.py"), f"--junitxml={report}")
        _output(argv, threads=1, may_fail=True)
        planted = [one for one in ET.parse(report).iter("testcase") if "with_the_bug" in str(one.get("name"))]
    caught = [one for one in planted if one.find("failure") is None and one.find("error") is None]
    return {
        "suite.catalogue_caught": ([round(len(caught) / len(planted), 4)], "ratio"),
        "suite.catalogue_plants": ([len(planted)], "plants"),
    }


def measure_generic(given: argparse.Namespace) -> Figures:
    """Return the share of generic plants that are caught, and how many were effective."""
    return judge_plants(_plants(given.python, given.layers, sample=given.sample))


def measure_layers(given: argparse.Namespace) -> Figures:
    """Return how many plants each layer alone catches in a CPU second; the time of those it misses counts too."""
    found: Figures = {}
    for layer in given.layers.split(","):
        plants = _plants(given.python, layer, sample=100)
        caught = sum(plant["verdict"] == "caught" for plant in plants)
        spent = sum(plant["seconds"] for plant in plants)
        found[f"suite.plants_per_second.{layer}"] = ([round(caught / max(spent, 0.001), 2)], "1/s")
    return found


def _plants(python: str, layers: str, *, sample: int) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as temporary:
        found = Path(temporary) / "generic.json"
        argv = (python, str(MEASURE), "--layers", layers, "--generic", str(found))
        print(_output((*argv, "--sample", str(sample), "--minutes", "600"), threads=1))
        plants: list[dict[str, Any]] = json.loads(found.read_text(encoding="utf-8"))
        return plants


def judge_plants(plants: list[dict[str, Any]]) -> Figures:
    """Return the figures of judged plants; what changed no bit is neither caught nor missed."""
    effective = [plant for plant in plants if plant["verdict"] != "without_effect"]
    caught = [plant for plant in effective if plant["verdict"] == "caught"]
    return {
        "suite.generic_caught": ([round(len(caught) / max(len(effective), 1), 4)], "ratio"),
        "suite.generic_plants": ([len(effective)], "plants"),
    }


def measure_full(given: argparse.Namespace) -> Figures:
    """Return the wall seconds of the driver with --full; fail where the rehearsal did not come out clean."""
    with tempfile.TemporaryDirectory() as temporary:
        found = Path(temporary) / "record.json"
        command = (sys.executable, "-m", "mps_build", "verify_mps", "--python", given.python, "--device", "cpu")
        _output((*command, "--full", "--json", str(found)), threads=None, may_fail=True)
        document = json.loads(found.read_text(encoding="utf-8"))
    print(f"verdict {document['verdict']}, {document['counts']}")
    if document["verdict"] != "rehearsed":
        raise SystemExit("the rehearsal failed: its time says nothing")
    return {"suite.full_s": ([document["seconds"]], "s")}


STAGES: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "healthy": measure_healthy,
    "catalogue": measure_catalogue,
    "generic": measure_generic,
    "layers": measure_layers,
    "full": measure_full,
}


def _met(figures: Figures) -> bool:
    bounds = {"suite.false_alarms": 0, "suite.cpu_s": 120, "suite.full_s": 900}
    least = {"suite.catalogue_caught": 1.0, "suite.generic_caught": 0.97}
    return all(max(values) <= bounds.get(name, max(values)) for name, (values, _) in figures.items()) and all(
        min(values) >= least.get(name, min(values)) for name, (values, _) in figures.items()
    )


def _output(argv: tuple[str, ...], *, threads: int | None, may_fail: bool = False) -> str:
    environ = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    if threads is not None:
        environ["OMP_NUM_THREADS"] = str(threads)
    ended = subprocess.run(argv, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    if ended.returncode and not may_fail:
        raise SystemExit(f"{' '.join(argv)} ended with {ended.returncode}:\n{ended.stdout[-2000:]}")
    return ended.stdout


if __name__ == "__main__":
    raise SystemExit(main())
