"""Host code of the simulation made wrong by rule: how much of it the device suite notices, and its --quick cases.

    nox -s benchmark -- host_mutants [--recipe v2.6.0] [--home DIR] [--jobs N] [--count 110] [--seed 51] [--minutes M]
                                    [--suite-seeds 0 1 2]
    nox -s benchmark -- host_mutants --rows FILE.jsonl... --ran-on "MACHINE, JOBS" --write

Each stage (tests/sensitivity/mutants/run.py: record, plan, try), at each seed of the suite, goes on where it stopped;
HOME is a folder of the cache unless it is named. --rows takes what was tried elsewhere. --write puts both figures into
results.json and the tables on docs/verify/simulated_mutants.md. What of the held-back third is missed is counted and
not listed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mps_build.common.cores import usable_cores
from mps_build.common.files import write_whole
from mps_build.common.workspace import cache_folder
from shared.record import record

ROOT = Path(__file__).resolve().parents[1]
SENSITIVITY = ROOT / "tests" / "sensitivity"
sys.path.append(str(SENSITIVITY))

from mutants.judge import by_suite_seed, figures, wilson  # noqa: E402
from mutants.recording import folder_of  # noqa: E402
from mutants.tables import FEWEST, document, page, read_rows  # noqa: E402

PAGE = ROOT / "docs" / "verify" / "simulated_mutants.md"
STAGES = ("record", "plan", "try")
TARGETS = {"simulation.mutants_caught": ">= 0.9", "simulation.quick_mutants_caught": ">= 0.8"}


def main() -> int:
    """Run what is not there yet; return 1 where nothing was judged or a mutant met a fault of ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="v2.6.0")
    parser.add_argument("--home", type=Path, default=cache_folder() / "simulation" / "host_mutants")
    parser.add_argument("--jobs", type=int, default=usable_cores())
    parser.add_argument("--count", type=int, default=110, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=51, help="of the draw of mutants")
    parser.add_argument("--suite-seeds", type=int, nargs="+", default=[0, 1, 2], help="the suite's own --seed, in turn")
    parser.add_argument("--minutes", type=float, default=600.0, help="of each stage: begin nothing new after it")
    parser.add_argument("--rows", type=Path, nargs="*", help="records of mutants that were tried elsewhere")
    parser.add_argument("--ran-on", default="", help="the machine that tried them, in words for the page")
    parser.add_argument("--write", action="store_true", help="put figures into results.json, tables on the page")
    given = parser.parse_args()
    for suite_seed in () if given.rows else given.suite_seeds:
        for stage in STAGES:
            if not _run(stage, suite_seed, given):
                return 1
    own = [folder_of(given.home, suite_seed) / "mutants.jsonl" for suite_seed in given.suite_seeds]
    rows = [row for file in given.rows or own for row in read_rows(file)]
    kept = by_suite_seed(rows)
    print(page(rows, machine=given.ran_on))
    if not kept or not all(figures(ones).effective for ones in kept.values()):
        print("no mutant that changes a result was judged")
        return 1
    fewest = min(len(ones) for ones in kept.values())
    if given.write and fewest < FEWEST:
        print(f"{fewest} of {FEWEST} mutants are tried: no figure is written")
        return 1
    if given.write:
        write(rows, given.recipe.removeprefix("v"), given.ran_on)
    return int(any(row["outcome"] == "own_fault" for ones in kept.values() for row in ones))


def write(rows: Sequence[Mapping[str, Any]], release: str, machine: str) -> None:
    """Put the figures and the page where they belong."""
    kept = by_suite_seed(rows)
    found = {seed: figures(ones) for seed, ones in kept.items()}
    first = kept[min(kept)]
    for name, caught, what in (
        ("simulation.mutants_caught", {seed: one.caught for seed, one in found.items()}, "the default cases"),
        ("simulation.quick_mutants_caught", {seed: one.caught_by_quick for seed, one in found.items()}, "--quick"),
    ):
        of = [
            f"{caught[seed]} of {one.effective} at --seed {seed} (Wilson 95 % {{:.3f}} to {{:.3f}})".format(
                *wilson(caught[seed], one.effective)
            )
            for seed, one in found.items()
        ]
        record(
            name,
            [round(caught[seed] / one.effective, 4) for seed, one in found.items()],
            unit="share",
            command="nox -s benchmark -- host_mutants --write",
            target=TARGETS[name],
            versions=f"torch {release}: of the mutants that change a result, by {what}: {', '.join(of)}; {len(first)} "
            f"mutants of {len({row['file'] for row in first})} files, {found[min(kept)].counts.get('not_reached', 0)} "
            f"run by no case{f'; {machine}' if machine else ''}",
        )
    write_whole(PAGE, document(rows, release, machine))


def _run(stage: str, suite_seed: int, given: argparse.Namespace) -> bool:
    """Run one stage at a seed of the suite in the simulation; say whether it came to its end."""
    own = (str(SENSITIVITY / "mutants" / "run.py"), str(given.home), stage, "--suite-seed", str(suite_seed))
    options = ("--jobs", given.jobs, "--count", given.count, "--seed", given.seed, "--minutes", given.minutes)
    simulate = (sys.executable, "-m", "mps_build", "simulate", given.recipe)
    return subprocess.run((*simulate, "--", "python", *own, *map(str, options)), check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
