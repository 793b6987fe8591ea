"""How fast the simulated device is: a small `add`, Metal kernels of 1,000 x 1,000 elements, and a cached start.

    nox -s benchmark -- simulated_speed [--recipe v2.6.0] [--write]

Medians; the kernels as times of torch's CPU on one thread. For a quiet machine: all of it is wall time.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from shared.record import record

CALLS = Path(__file__).resolve().parent / "shared" / "simulated_calls.py"
STARTS = 5


def main() -> int:
    """Measure, print, and write what was tested for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="v2.6.0")
    parser.add_argument("--write", action="store_true", help="put the rows into benchmarks/results.json")
    given = parser.parse_args()
    said = json.loads(run(given.recipe, str(CALLS)).splitlines()[-1])  # also what builds it, where it is not there
    starts = []
    for _ in range(STARTS):
        begin = time.perf_counter()
        run(given.recipe, "-c", "import torch; torch.ones(3, device='mps').sum().item()")
        starts.append(time.perf_counter() - begin)
    ratios = {name: value for name, value in said.items() if name != "add_s"}
    print(f"add: {said['add_s'] * 1e6:.0f} us; start: {sorted(starts)[STARTS // 2]:.2f} s; ", end="")
    print("1,000 x 1,000: " + ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items()), "times the CPU")
    if given.write:
        command, torch = "nox -s benchmark -- simulated_speed --write", f"torch {given.recipe.removeprefix('v')}"
        each = ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items())
        versions = f"{torch}; one thread of the CPU: {each}"
        record("simulation.add_us", [said["add_s"] * 1e6], unit="us", command=command, target="<= 100", versions=torch)
        record("simulation.start_s", starts, unit="s", command=command, target="<= 3", versions=torch)
        record(
            "simulation.kernel_ratio",
            list(ratios.values()),
            unit="ratio",
            command=command,
            target="<= 3",
            versions=versions,
        )
    return 0


def run(recipe: str, *arguments: str) -> str:
    """Return what a program prints on the simulated device."""
    command = (sys.executable, "-m", "mps_build", "simulate", recipe, "--", "python", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
