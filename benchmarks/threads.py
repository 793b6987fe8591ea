"""The rate of verify_mps by default, over that of the best of several settings of processes and threads.

    nox -s benchmark -- threads --python PYTHON_WITH_TORCH [--device cuda] [--layers LAYERS] [--minutes 9] [--keep FILE]
    nox -s benchmark -- threads --rows FILE...      # what was measured on another machine: into results.json

A part of the suite is run (--layers), the first time only to warm caches up; then by default, then with each setting.
The rate is cases that were run, by the seconds from the start of the first process to the last outcome. No setting is
begun that would not end in --minutes: each one that is left out is named. --keep writes the row into a file, for a
machine whose files do not stay.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.cores import THREAD_VARIABLES, usable_cores
from shared.record import machine, record

LAYERS = "layouts,neural,sequences,promotion"
TARGET = ">= 0.8"
# Of the machine whose row has the plain name.
CORES = 16
UNASKED = ("skipped",)


@dataclass(frozen=True)
class Setting:
    """How many processes, with how many threads each; None: what the command chooses."""

    processes: int | None = None
    threads: int | None = None

    def __str__(self) -> str:
        return "default" if self.processes is None else f"{self.processes} x {self.threads}"


@dataclass(frozen=True)
class Run:
    """What a run of the suite came to: `tested` cases in so many seconds; `chosen` is how it shared the `cores`."""

    setting: Setting
    cores: int
    tested: int
    seconds: float
    chosen: Setting
    torch: str

    @property
    def rate(self) -> float:
        """Cases a second."""
        return self.tested / self.seconds


def main() -> int:
    """Run the settings, or take rows of elsewhere; return 1 where the default is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has torch")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda", "mps"))
    parser.add_argument("--layers", default=LAYERS, help=f"of the suite; '' for all (default: {LAYERS})")
    parser.add_argument("--minutes", type=float, default=9.0, help="of all runs together")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the row there")
    parser.add_argument("--write", action="store_true", help="put the row into results.json")
    parser.add_argument(
        "--rows", type=Path, nargs="*", default=[], help="rows that were measured elsewhere: write them"
    )
    given = parser.parse_args()
    if given.rows:
        for file in given.rows:
            print(record(**json.loads(file.read_text(encoding="utf-8"))))
        return 0
    runs, left_out = measure(given)
    row = row_of(runs, left_out, given)
    print(json.dumps(row))
    if given.keep is not None:
        given.keep.write_text(json.dumps(row) + "\n", encoding="utf-8")
    if given.write:
        record(**row)
    return 0 if row["values"][0] >= float(TARGET.rsplit(maxsplit=1)[-1]) else 1


def settings(cores: int) -> list[Setting]:
    """Return what to try on so many cores, the most processes first: none exceeds the cores.

    >>> print(*settings(16), sep=", ")
    16 x 1, 12 x 1, 8 x 2, 8 x 1, 4 x 4, 4 x 1
    >>> print(*settings(2), sep=", ")
    2 x 1, 1 x 2, 1 x 1
    """
    counts = sorted({max(1, cores * quarters // 4) for quarters in (1, 2, 3, 4)}, reverse=True)
    return list(dict.fromkeys(Setting(count, threads) for count in counts for threads in (cores // count, 1)))


def measure(given: argparse.Namespace) -> tuple[list[Run], list[Setting]]:
    """Return the runs, by default first, and the settings for which no time was left."""
    until = time.monotonic() + 60 * given.minutes
    warm = _run(Setting(), given)
    print(f"to warm up: {warm.seconds:.0f} s", flush=True)
    runs: list[Run] = []
    left_out: list[Setting] = []
    for setting in (Setting(), *settings(usable_cores())):
        longest = max(run.seconds for run in (warm, *runs))
        # Fewer processes are slower: half as much again, and torch's start.
        if runs and time.monotonic() + 1.5 * longest + 20 > until:
            left_out.append(setting)
            continue
        runs.append(_run(setting, given))
        print(f"{setting}: {runs[-1].tested} cases, {runs[-1].seconds:.1f} s, {runs[-1].rate:.1f}/s", flush=True)
    return runs, left_out


def row_of(runs: Sequence[Run], left_out: Sequence[Setting], given: argparse.Namespace) -> dict[str, Any]:
    """Return the row: the default's rate over the best's, which may be its own."""
    default, best = runs[0], max(runs, key=lambda run: run.rate)
    rates = "; ".join(f"{run.setting} {run.rate:.1f}" for run in runs[1:])
    missing = f"; not run for want of time: {', '.join(map(str, left_out))}" if left_out else ""
    part = f"the layers {given.layers}" if given.layers else "the default layers"
    return {
        "name": f"threads.{given.device}_rate_ratio" + ("" if default.cores == CORES else f".{default.cores}_cores"),
        "values": [round(default.rate / best.rate, 3)],
        "unit": "ratio",
        "command": f"nox -s benchmark -- threads --python PYTHON --device {given.device}"
        + (f" --layers {given.layers}" if given.layers != LAYERS else ""),
        "target": TARGET,
        "versions": f"torch {default.torch}, {default.tested} cases of {part}; cases a second: by default "
        f"({default.chosen}) {default.rate:.1f}; processes x threads {rates}{missing}",
        "on": machine(),
    }


def _run(setting: Setting, given: argparse.Namespace) -> Run:
    argv = [sys.executable, "-m", "mps_build", "verify_mps", "--python", given.python, "--device", given.device]
    argv += ["--offline", *(["--layer", given.layers] if given.layers else [])]
    environ = {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}
    if setting.processes is not None:
        argv += ["--jobs", str(setting.processes)]
        environ["OMP_NUM_THREADS"] = str(setting.threads)
    with tempfile.TemporaryDirectory(prefix="mps-build-threads-") as work:
        found = Path(work) / "record.json"
        ended = subprocess.run(
            [*argv, "--json", str(found)],
            env={**environ, "MPS_BUILD_WORK": work},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not found.is_file():
            raise SystemExit(f"{setting}: no record:\n{ended.stdout[-2000:]}")
        document = json.loads(found.read_text(encoding="utf-8"))
        if not document.get("cases") or document.get("partial"):
            raise SystemExit(f"{setting}: {document.get('message') or document['cause']}\n{ended.stdout[-2000:]}")
        return run_of(document, setting, seconds=_seconds(Path(work)))


def _seconds(work: Path) -> float:
    """Return the seconds from the start of the suite, where known.json is written, to its last outcome."""
    (begun,) = work.glob("verify/*/known.json")
    ends = [path.stat().st_mtime for path in begun.parent.glob("*.outcomes.jsonl")]
    return max(ends) - begun.stat().st_mtime


def run_of(document: Mapping[str, Any], setting: Setting, *, seconds: float) -> Run:
    """Return what a record says of a run."""
    together = document["concurrency"]
    return Run(
        setting=setting,
        cores=together["cores"],
        tested=sum(case["outcome"] not in UNASKED for case in document["cases"]),
        seconds=seconds,
        chosen=Setting(together["processes"], together["threads"]),
        torch=document["torch"]["version"],
    )


if __name__ == "__main__":
    sys.exit(main())
