"""Judge plants by all cases, whatever issue a case names: caught by any, missed, or not exercised.

python tests/sensitivity/judge_plants.py [FILE ...] [--sample NAME,...] [--blind] [--json report.json]

Without FILE the plants of the catalogue are judged (plants/); catalogue.json says of which sample each is, and which
samples were written blind.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from pathlib import Path
from typing import Any

import torch

from catalogue import FILES, SAMPLES, plants_of
from device_suite.plants import load
from function_plants import FunctionRecorder
from generic_plants import Traits
from suite_in_process import Suite, in_order


class Record:
    """What each case dispatches and calls, and its CPU seconds: one healthy pass over the suite."""

    def __init__(self, suite: Suite) -> None:
        self.seconds: dict[str, float] = {}
        self.by_place: dict[Any, list[Any]] = {}
        for case in suite.cases:
            self._record(suite, case)

    def _record(self, suite: Suite, case: Any) -> None:
        asked = suite.ask(case)
        self.seconds[case.id] = asked.seconds
        if asked.failure is not None:
            print(f"{case.id} fails without a plant: {asked.failure[:200]}", flush=True)
            return
        operators, functions = Traits(), FunctionRecorder()
        suite.ask(case, lambda: operators)
        suite.ask(case, lambda: functions)
        names = {*operators.seen, *(name.rpartition(".")[0] for name in operators.seen)}
        for place in (*names, *functions.called):
            self.by_place.setdefault(place, []).append(case)

    def cases_for(self, places: tuple[Any, ...], suite: Suite) -> list[Any]:
        """Return the cases that meet a plant's operators or functions, the quickest first."""
        found = {case.id: case for place in places for case in self.by_place.get(place, ())}
        return in_order(found.values() if places else suite.cases, self.seconds)


def judge(suite: Suite, plot: Any, name: str, cases: list[Any]) -> dict[str, Any]:
    """Return the verdict on one plant, asked in a forked process."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            caught = first_catch(suite, plot, name, cases)
            sender.send((caught.case.id if caught else None, caught.failure[:160] if caught else "", plot.hits[name]))
        finally:
            os._exit(0)
    sender.close()
    try:
        case, text, hits = receiver.recv()
    except EOFError:
        case, text, hits = "a crash", "", 1
    os.waitpid(child, 0)
    verdict = "caught" if case else "missed" if hits else "not exercised"
    return {"plant": name, "verdict": verdict, "case": case, "text": text, "hits": hits, "asked": len(cases)}


def first_catch(suite: Suite, plot: Any, name: str, cases: list[Any]) -> Any:
    """Return the first case that fails because a plant did harm, or None: what fails before it did is no catch."""
    for case in cases:
        asked = suite.ask(case, plot.makers[name])
        if asked.failure and plot.hits[name] and not _is_the_plants_own(asked.failure, name):
            return asked
    return None


def _is_the_plants_own(failure: str, name: str) -> bool:
    """Whether a plant could not take the call: it imitates one form of a function, and others pass by it."""
    return f"TypeError: {name}() " in failure


def load_plot(path: Path) -> Any:
    """Return the plants of a file; files of two folders may have the same name."""
    return load(path, f"{path.resolve().parent.name}_{path.stem}").plot


def choose(files: list[str], only: str, samples: str, *, blind: bool) -> list[tuple[Any, str]]:
    """Return the plants that are wanted, each with its plot.

    Raises:
        ValueError: there is no such sample, or nothing is left to judge.
    """
    listed = plants_of([name for name in samples.split(",") if name], blind=blind) if samples or blind else None
    plots = [load_plot(path) for path in (map(Path, files) if files else FILES)]
    chosen = [
        (plot, name)
        for plot in plots
        for name in plot.makers
        if any(part in name for part in only.split(",")) and (listed is None or name in listed)
    ]
    if not chosen:
        raise ValueError("no plant is chosen")
    return chosen


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of plants (default: those of the catalogue)")
    parser.add_argument("--only", default="", metavar="PART,...", help="parts of the plants' names")
    parser.add_argument("--sample", default="", metavar="NAME,...", help=f"only these samples: {', '.join(SAMPLES)}")
    parser.add_argument("--blind", action="store_true", help="only the samples that were written blind")
    parser.add_argument("--json", default="")
    given = parser.parse_args()
    try:
        chosen = choose(given.files, given.only, given.sample, blind=given.blind)
    except ValueError as wrong:
        parser.error(str(wrong))
    torch.set_num_threads(1)
    suite = Suite()
    record = Record(suite)
    print(f"{len(suite.cases)} cases, {sum(record.seconds.values()):.0f} s of CPU for a first pass", flush=True)
    rows = []
    for plot, name in chosen:
        rows.append(judge(suite, plot, name, record.cases_for(plot.places[name], suite)))
        print(json.dumps(rows[-1]), flush=True)
    for verdict in ("caught", "missed", "not exercised"):
        names = [row["plant"] for row in rows if row["verdict"] == verdict]
        print(f"{verdict}: {len(names)} {'' if verdict == 'caught' else ' '.join(names)}")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
