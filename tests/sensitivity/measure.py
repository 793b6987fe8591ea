"""Measure the suite's sensitivity to generic plants.

python tests/sensitivity/measure.py --generic report.json [--sample 500] [--layers smoke] [--op aten.add.Tensor]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.overrides

import function_plants
import suite_in_process
from function_plants import FunctionPlant, FunctionRecorder, name_of
from generic_plants import KINDS, UNDEFINED, GenericPlant, Traits
from suite_in_process import SLOW_SECONDS, Suite, in_order


@dataclass(frozen=True)
class Recorded:
    """What the cases do when all is well: the overloads each dispatches, its CPU seconds, how overloads are called."""

    touched: dict[str, list[str]]
    seconds: dict[str, float]
    traits: dict[str, set[str]]


def record(suite: Suite) -> Recorded:
    """Return what each case dispatches on its device, and what it costs; all must pass."""
    touched: dict[str, list[str]] = {}
    seconds: dict[str, float] = {}
    together: dict[str, set[str]] = {}
    for case in suite.cases:
        asked = suite.ask(case)  # healthy, and the references come to be
        if asked.failure is not None:
            raise SystemExit(f"{case.id} fails without a plant: {asked.failure}")
        mode = Traits()
        again = suite.ask(case, lambda mode=mode: mode)
        touched[case.id], seconds[case.id] = sorted(mode.seen), again.seconds
        if again.failure is not None:
            raise SystemExit(f"{case.id} fails while it is recorded: {again.failure}")
        if again.seconds <= SLOW_SECONDS:
            for overload, kinds in mode.seen.items():
                together.setdefault(overload, set()).update(kinds)
    return Recorded(touched, seconds, together)


def count_false_alarms(suite: Suite, repeats: int) -> int:
    """Return how many cases failed without a plant, over all repeats, and tell which."""
    alarms, spent = 0, []
    for _ in range(repeats):
        suite.forget_references()
        begun = time.process_time()
        for case in suite.cases:
            asked = suite.ask(case)
            if asked.failure is not None:
                alarms += 1
                print(f"  false alarm: {case.id}: {asked.failure}")
        spent.append(round(time.process_time() - begun, 1))
    each = ", ".join(map(str, spent))
    threads = torch.get_num_threads()
    print(f"{alarms} false alarms in {repeats} x {len(suite.cases)} cases, {threads} threads, s of CPU: {each}")
    return alarms


def measure(suite: Suite, recorded: Recorded, only: str, pick: Pick, until: float) -> list[dict[str, Any]]:
    """Return one row for each generic plant: caught by which case, survived, or without effect."""
    by_operator: dict[str, list[Any]] = {}
    for case in suite.cases:
        for name in recorded.touched[case.id]:
            by_operator.setdefault(name, []).append(case)
    every = [
        (overload, kind)
        for overload in sorted(by_operator)
        if overload.split(".")[1] not in UNDEFINED and overload.startswith(only)
        for kind in KINDS
        if kind in recorded.traits.get(overload, set())
    ]
    chosen = pick.of(every)
    print(f"{len(chosen)} of {len(every)} plants, {pick.told}")
    rows = []
    for overload, kind in chosen:
        if time.monotonic() > until:
            print(f"out of time: {len(chosen) - len(rows)} of them are not measured")
            break
        quick = [case for case in by_operator[overload] if recorded.seconds[case.id] <= SLOW_SECONDS]
        cases = in_order(quick, recorded.seconds)
        rows.append(_in_a_child(suite, overload, kind, cases))
    return rows


@dataclass(frozen=True)
class Pick:
    """Which plants are measured: all, a sample by a fixed seed, and of these every Nth for several processes."""

    sample: int
    seed: int
    part: int
    parts: int

    @property
    def told(self) -> str:
        """Return the choice in words."""
        drawn = f"drawn with seed {self.seed}" if self.sample else "all"
        return drawn + (f", part {self.part} of {self.parts}" if self.parts > 1 else "")

    def of(self, every: list[Any]) -> list[Any]:
        """Return the chosen ones, in their order."""
        drawn = random.Random(self.seed).sample(every, min(self.sample, len(every))) if self.sample else every
        return sorted(drawn)[self.part :: self.parts]


def measure_functions(
    suite: Suite, seconds: dict[str, float], shard: tuple[int, int], until: float
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row for each plant at a public function, and the public functions that no case calls."""
    called: dict[str, tuple[Any, list[Any]]] = {}
    for case in in_order(suite.cases, seconds):
        recorder = FunctionRecorder()
        if seconds[case.id] <= SLOW_SECONDS:
            suite.ask(case, lambda recorder=recorder: recorder)
        for name, function in recorder.seen.items():
            called.setdefault(name, (function, []))[1].append(case)
    every = {name_of(function) for home in torch.overrides.get_overridable_functions().values() for function in home}
    rows = []
    for number, (name, (function, cases)) in enumerate(sorted(called.items())):
        if number % shard[1] == shard[0] and time.monotonic() < until:
            rows += [
                _in_a_child(suite, name, kind, cases, FunctionPlant(function, kind)) for kind in function_plants.KINDS
            ]
    return rows, sorted(every - set(called) - {""})


def _in_a_child(suite: Suite, overload: str, kind: str, cases: list[Any], plant: Any = None) -> dict[str, Any]:
    """Judge one plant in a forked process: some faults (a wrong index) kill it, and that is noticed too."""
    plant = plant or GenericPlant(overload, kind)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            sender.send(_judge(suite, overload, kind, cases, plant))
            sender.close()
        finally:
            os._exit(0)
    sender.close()
    try:
        row: dict[str, Any] = receiver.recv()
    except EOFError:
        row = {"overload": overload, "kind": kind, "verdict": "caught", "case": "crashed", "layer": None}
        row.update(changed=1, cases=len(cases), seconds=0.0)
    os.waitpid(child, 0)
    return row


def _judge(suite: Suite, overload: str, kind: str, cases: list[Any], plant: Any) -> dict[str, Any]:
    begun = time.process_time()
    caught = suite.first_failure(cases, lambda: plant)
    verdict = "caught" if caught else "without_effect" if plant.changed == 0 else "survived"
    return {
        "overload": overload,
        "kind": kind,
        "verdict": verdict,
        "case": caught.case.id if caught else None,
        "layer": caught.case.layer if caught else None,
        "changed": plant.changed,
        "cases": len(cases),
        "seconds": round(time.process_time() - begun, 3),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generic", metavar="FILE", help="write one row for each generic plant")
    parser.add_argument("--healthy", type=int, metavar="N", help="ask every case N times without a plant: false alarms")
    parser.add_argument("--functions", metavar="FILE", help="write one row for each plant at a public function")
    parser.add_argument("--layers", default=",".join(suite_in_process.DEFAULT_LAYERS))
    parser.add_argument("--op", default="", help="only overloads that begin with this")
    parser.add_argument("--shard", default="0/1", help="I/N: every Nth overload, for several processes side by side")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="only N generic plants, drawn with --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=60.0, help="then stop and report what there is")
    given = parser.parse_args()
    until = time.monotonic() + given.minutes * 60
    part, parts = (int(one) for one in given.shard.split("/"))
    suite = Suite(given.layers.split(","))
    if given.healthy:
        raise SystemExit(count_false_alarms(suite, given.healthy))
    recorded = record(suite)
    spent = sum(recorded.seconds.values())
    print(f"{len(suite.cases)} cases, {spent:.1f} s of CPU for one pass while recorded, {len(suite.refused)} refused")
    if given.functions:
        rows, silent = measure_functions(suite, recorded.seconds, (part, parts), until)
        Path(given.functions).write_text(json.dumps({"rows": rows, "not_called": silent}, indent=0), encoding="utf-8")
        _tell(rows)
    if given.generic:
        pick = Pick(given.sample, given.seed, part, parts)
        rows = measure(suite, recorded, given.op, pick, until)
        Path(given.generic).write_text(json.dumps(rows, indent=0) + "\n", encoding="utf-8")
        _tell(rows)


def _tell(rows: list[dict[str, Any]]) -> None:
    caught = sum(row["verdict"] == "caught" for row in rows)
    survived = [row for row in rows if row["verdict"] == "survived"]
    spent = sum(row["seconds"] for row in rows)
    print(f"{caught} of {caught + len(survived)} plants that change a bit are caught, in {spent:.0f} s of CPU")
    for row in survived:
        print(f"  survived: {row['overload']} {row['kind']} ({row['changed']} calls changed, {row['cases']} cases)")


if __name__ == "__main__":
    main()
