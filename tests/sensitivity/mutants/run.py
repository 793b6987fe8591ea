"""Host code made wrong by rule, and whether the device suite notices. Starts in the simulation.

    nox -s simulate -- v2.6.0 -- python tests/sensitivity/mutants/run.py HOME STAGE [options]

STAGE: record   instrument the host code, run the suite over it: the map, and how each case ends without a mutant
       plan     draw the mutants, choose the cases of each, keep both in HOME/plan.json.gz
       try      one compile, one link and one process of the suite for each mutant; a row each in HOME/mutants.jsonl
       cases    which cases run a line: --only FILE:LINE, as in native/mps/operations/Eye.mm:72
       table    what the rows say; --held shows the held-back third too
--suite-seed N: the cases that the suite draws by --seed N; the same mutants and the same instrumented library.
Each stage goes on where it stopped. HOME holds all that is kept: some 100 MB.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Iterable

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutants.coverage_library import blocks_at, build_coverage, read_lines
from mutants.draw import Mutant, drawn, every_mutant
from mutants.judge import Usual, sound, unsteady_cases, usual
from mutants.plan import Plan, planned, reached
from mutants.recording import NEWEST, OLDER, RUNS, folder_of, hold_to_suite, list_cases, read_run, record_runs
from mutants.tables import page, read_rows
from mutants.toolchain import built_folder, host_name, read_toolchain
from mutants.trial import OutOfTime, tried


def main() -> int:
    """Run a stage; return 1 where a row is a fault of our own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("stage", choices=("record", "plan", "try", "cases", "table"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=33)
    parser.add_argument("--suite-seed", type=int, default=0, help="the device suite's own --seed")
    parser.add_argument("--count", type=int, default=340, help="mutants to draw")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth mutant, for machines beside each other")
    parser.add_argument("--only", default="", help="mutants by id, or files by name, with commas between")
    parser.add_argument("--minutes", type=float, default=600.0, help="go on another time after this")
    parser.add_argument("--quick", action="store_true", help="record only the cases of --quick (to try the tool)")
    parser.add_argument("--runs", default=",".join(name for name, _, _ in RUNS))
    parser.add_argument("--mapped", action="store_true", help="ask the seeded tenth only the cases of the map too")
    parser.add_argument("--held", action="store_true", help="show the misses that are held back too")
    given = parser.parse_args()
    given.until = time.monotonic() + 60 * given.minutes
    given.home = given.home.resolve()  # processes of cases have folders of their own
    given.own = folder_of(given.home, given.suite_seed)
    os.environ["MUTANTS_SUITE_SEED"] = str(given.suite_seed)  # for each process that runs cases
    if given.stage != "table":
        hold_to_suite(given.own)
    for stage, needed in (
        ("plan", given.home / "coverage/lines.json.gz"),
        ("cases", given.home / "coverage/lines.json.gz"),
        ("try", given.own / "plan.json.gz"),
    ):
        if given.stage == stage and not needed.is_file():
            raise SystemExit(f"there is no {needed}: run the stage before {stage}, in the order of --help")
    stages = {"record": record, "plan": plan, "try": try_all, "cases": cases_of_a_line, "table": table}
    return stages[given.stage](given)


def record(given: argparse.Namespace) -> int:
    """Record the map and the runs without a mutant."""
    toolchain = read_toolchain(built_folder())
    instrumented = build_coverage(toolchain, given.home, given.jobs, filter(None, given.only.split(",")))
    cases = [case for case in list_cases(given.own) if case[2] or not given.quick]
    print(f"{len(cases)} cases", flush=True)
    left = record_runs(
        given.own,
        cases,
        plain=toolchain.folder,
        instrumented=instrumented,
        jobs=given.jobs,
        runs=given.runs.split(","),
        until=given.until,
        say=lambda text: print(text, flush=True),
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} CPU seconds of this run")
    print(f"{left} parts are left: run the same again" if left else "recorded")
    return 0


def plan(given: argparse.Namespace) -> int:
    """Draw mutants, and choose what runs against each."""
    toolchain, lines = read_toolchain(built_folder()), read_lines(given.home)
    every = [
        mutant
        for file in sorted(toolchain.sources.values())
        for mutant in every_mutant(host_name(file), file.read_text(encoding="utf-8"))
        if host_name(file) in lines or not given.only
    ]
    mutants = drawn(every, given.count, given.seed)
    cases = list_cases(given.own)
    runs = {macos: [name for name, version, _ in RUNS if version == macos] for macos in (NEWEST, OLDER)}
    known = {
        macos: usual(cases, [_rows(given.own, name) for name in names if (given.own / "record" / name).is_dir()])
        for macos, names in runs.items()
    }
    plans = planned(mutants, lines, given.own, known, given.seed)
    document = {
        "seed": given.seed,
        "places": len(every),
        "mutants": [one.as_json() for one in mutants],
        "plans": {name: [asdict(one) for one in ones] for name, ones in plans.items()},
        "known": {macos: [asdict(case) for case in cases.values()] for macos, cases in known.items()},
    }
    (given.own / "plan.json.gz").write_bytes(gzip.compress(json.dumps(document).encode()))
    for macos, all_of_it in known.items():
        tell, steady = (sum(bool(each) for each in ones) for ones in _counted(all_of_it.values()))
        print(
            f"as macOS {macos}: {len(all_of_it)} cases, {tell} pass in each run, {steady} answer the same bits in each"
        )
    print(f"{len(mutants)} of {len(every)} places; no case runs {sum(not ones for ones in plans.values())} of them")
    return 0


def _counted(cases: Iterable[Usual]) -> tuple[list[bool], list[bool]]:
    listed = list(cases)
    return [case.tells for case in listed], [case.digest is not None for case in listed]


def _rows(home: Path, name: str) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in read_run(home, name) if row["id"]}


def try_all(given: argparse.Namespace) -> int:
    """Try each mutant that has no row yet."""
    document = json.loads(gzip.decompress((given.own / "plan.json.gz").read_bytes()))
    toolchain, target = read_toolchain(built_folder()), given.own / "mutants.jsonl"
    mutants = [Mutant(**{**one, "lines": tuple(one["lines"])}) for one in document["mutants"]]
    plans = {
        name: [Plan(**{**one, "cases": tuple(one["cases"])}) for one in ones]
        for name, ones in document["plans"].items()
    }
    known = {macos: {case["id"]: Usual(**case) for case in cases} for macos, cases in document["known"].items()}
    part, parts = (int(one) for one in given.shard.split("/"))
    objects = given.home / "objects"  # of all seeds of the suite
    rows = read_rows(target)
    unsteady = unsteady_cases(rows)
    for macos, cases in known.items():
        known[macos] = {name: replace(case, tells=case.tells and name not in unsteady) for name, case in cases.items()}
    if given.mapped:
        plans = {
            name: [one if one.starts else replace(one, cases=one.cases[: one.by_map]) for one in ones]
            for name, ones in plans.items()
        }
    done = {row["id"] for row in sound(rows)}
    only = set(filter(None, given.only.split(",")))
    todo = [
        one
        for number, one in enumerate(mutants)
        if number % parts == part and one.id not in done and (not only or only & {one.id, one.file.split("/")[-1]})
    ]
    todo.sort(key=lambda one: -sum(len(plan.cases) for plan in plans[one.id]))  # the longest first: none is last alone
    print(f"{len(todo)} mutants to try, {len(done)} have a row", flush=True)
    with ProcessPoolExecutor(given.jobs) as pool:
        waiting = list(todo)
        running: dict[Future[dict[str, Any]], Mutant] = {}
        while waiting or running:
            while waiting and len(running) < given.jobs and time.monotonic() < given.until:
                one = waiting.pop(0)
                work = pool.submit(tried, one, plans[one.id], known, toolchain, given.own, given.until, objects)
                running[work] = one
            if not running:
                break
            for work in wait(running, return_when=FIRST_COMPLETED).done:
                one = running.pop(work)
                if isinstance(work.exception(), OutOfTime):
                    waiting.append(one)
                    continue
                row = {**_row_of(work, one), "suite_seed": given.suite_seed}
                with target.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                shown = "held back" if one.held else row["outcome"]
                print(f"  {one.id}: {shown}, {row.get('cpu_seconds', 0)} s", flush=True)
    if waiting:
        print(f"{len(waiting)} are left: run the same again")
    return 0


def _row_of(work: Any, mutant: Mutant) -> dict[str, Any]:
    """Return the row of a mutant; a fault of ours is one too, and no verdict."""
    try:
        row: dict[str, Any] = work.result()
        return row
    except Exception as fault:
        return {**mutant.as_json(), "outcome": "own_fault", "why": f"{type(fault).__name__}: {fault}"}


def cases_of_a_line(given: argparse.Namespace) -> int:
    """Print the cases that run a line of host code."""
    file, _, line = given.only.rpartition(":")
    blocks = blocks_at(read_lines(given.home), file, int(line), int(line))
    for macos in (NEWEST, OLDER):
        found, starts = reached(read_run(given.own, f"cover-{macos}"), {given.only: blocks})
        ends = ", and each start of a process" if starts else ""
        print(f"as macOS {macos}: {len(found[given.only])} cases{ends}", *found[given.only], sep="\n  ")
    return 0


def table(given: argparse.Namespace) -> int:
    """Print what the rows say."""
    rows = read_rows(given.own / "mutants.jsonl")
    print(page(rows, held=given.held))
    return int(any(row["outcome"] == "own_fault" for row in rows))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    sys.exit(main())
