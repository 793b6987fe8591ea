"""Mutated wheels, logs, recordings, records, recipes and receipts, each read as a stranger's: uncaught errors, slowest.

    nox -s dev -- fuzz [TARGET ...] [--inputs 20000] [--jobs N] [--record]

Each job draws its share of the inputs from a seed of its own, the same in every run, so that what failed fails again;
Hypothesis shrinks it. The exit status is 1 if an error was not caught, or an input took more than its budget.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from fuzzing import MOST_SECONDS, SEED, TARGETS, Figures, run
from mps_build.common.cores import usable_cores
from shared.record import record

# In memory where it can be: each input is a few small files, written, read and removed.
_MEMORY = Path("/dev/shm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--inputs", type=int, default=20_000, help="of each target (default: 20000)")
    parser.add_argument("--jobs", type=int, default=usable_cores(), help="processes (default: the cores)")
    parser.add_argument("--record", action="store_true", help="keep the figures in benchmarks/results.json")
    arguments = parser.parse_args()
    if min(arguments.inputs, arguments.jobs) < 1:
        parser.error("--inputs and --jobs are at least 1")
    failed = False
    for name in arguments.targets or TARGETS:
        if name not in TARGETS:
            parser.error(f"no target {name}: there are {', '.join(TARGETS)}")
        failed |= not _measure(name, inputs=arguments.inputs, jobs=arguments.jobs, keep=arguments.record)
    sys.exit(int(failed))


def _measure(name: str, *, inputs: int, jobs: int, keep: bool) -> bool:
    began = time.monotonic()
    shares = [inputs // jobs + (number < inputs % jobs) for number in range(jobs)]
    seeds = range(SEED, SEED + jobs)
    if jobs == 1:
        done = [_share(name, inputs, SEED)]
    else:
        with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
            done = list(pool.map(_share, [name] * jobs, shares, seeds))
    said = "".join(text for _, text in done)
    figures = Figures(inputs=sum(each.inputs for each, _ in done), slowest=max(each.slowest for each, _ in done))
    print(
        f"{name:<12} {figures.inputs} inputs, seeds {seeds[0]} to {seeds[-1]}, {time.monotonic() - began:.0f} s: "
        f"slowest {figures.slowest:.2f} s of {MOST_SECONDS:.0f} {said}"
    )
    if keep and not said:
        command = f"nox -s dev -- fuzz {name} --inputs {inputs} --jobs {jobs} --record"
        record(f"fuzz.{name}_errors", [0], unit=f"uncaught of {figures.inputs} inputs", command=command, target="<= 0")
        record(f"fuzz.{name}_slowest_s", [figures.slowest], unit="s", command=command, target=f"<= {MOST_SECONDS:.0f}")
    return not said


def _share(name: str, inputs: int, start: int) -> tuple[Figures, str]:
    """Return what came of one job's inputs, and what was not caught, shrunk, with the job's seed."""
    figures, said = Figures(), ""
    with tempfile.TemporaryDirectory(prefix="mps-build-fuzz-", dir=_MEMORY if _MEMORY.is_dir() else None) as folder:
        try:
            figures = run(TARGETS[name](), Path(folder), inputs=inputs, start=start)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            said = f"\nseed {start}: " + "".join(getattr(error, "__notes__", ())) + f"\n{error!r}"
    return figures, said


if __name__ == "__main__":
    main()
