"""Mutated wheels, logs, recordings, records, recipes and receipts, each read as a stranger's: uncaught errors, slowest.

    nox -s fuzz -- [TARGET ...] [--inputs 20000] [--record]

Every run has the same seed, so that what failed fails again; Hypothesis shrinks it. The exit status is 1 if an error
was not caught, or an input took more than its budget.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from fuzzing import MOST_SECONDS, SEED, TARGETS, Figures, run
from shared.record import record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: {', '.join(TARGETS)}")
    parser.add_argument("--inputs", type=int, default=20_000, help="of each target (default: 20000)")
    parser.add_argument("--record", action="store_true", help="keep the figures in benchmarks/results.json")
    arguments = parser.parse_args()
    failed = False
    for name in arguments.targets or TARGETS:
        if name not in TARGETS:
            parser.error(f"no target {name}: there are {', '.join(TARGETS)}")
        failed |= not _measure(name, inputs=arguments.inputs, keep=arguments.record)
    sys.exit(int(failed))


def _measure(name: str, *, inputs: int, keep: bool) -> bool:
    figures, said = Figures(), ""
    with tempfile.TemporaryDirectory(prefix="mps-build-fuzz-") as folder:
        try:
            figures = run(TARGETS[name](), Path(folder), inputs=inputs)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            said = "".join(getattr(error, "__notes__", ())) + f"\n{error!r}"
    print(
        f"{name:<12} {figures.inputs} inputs, seed {SEED}: slowest {figures.slowest:.2f} s of {MOST_SECONDS:.0f} {said}"
    )
    if keep and not said:
        command = f"nox -s fuzz -- {name} --inputs {inputs} --record"
        record(f"fuzz.{name}_errors", [0], unit=f"uncaught of {figures.inputs} inputs", command=command, target="<= 0")
        record(f"fuzz.{name}_slowest_s", [figures.slowest], unit="s", command=command, target=f"<= {MOST_SECONDS:.0f}")
    return not said


if __name__ == "__main__":
    main()
