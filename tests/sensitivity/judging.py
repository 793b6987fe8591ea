"""Judge injected faults by the suite's cases: which case catches each, and what that takes.

python tests/sensitivity/judging.py [--faults catalogue,fresh:SEED:COUNT] [--seed 0] [--keys 20000] [--only PART,...]

The cases are run in one order: those of --quick, what the default has besides, further drawn ones up to --keys. A
fault is caught by the first case that fails under it and passes without. So one pass gives what --quick, the default
and every other budget catch: the curve. Keys are counted as they are dispatched; seconds are those of a pass without
faults.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import itertools
import json
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Sequence

import suite_in_process  # isort: skip  # first: libtorch reads what it sets
import torch
from torch.overrides import TorchFunctionMode

import fresh_faults
from catalogue import ENTRIES, fault_of, keep_caught, load_faults
from mutants.judge import wilson
from suite_in_process import Request, Suite, core_cases, drawn_case, requested

from engine.cases import Case  # isort: skip
from engine.states import Refused  # isort: skip
from engine.keys import Dispatched  # isort: skip

# Before any test of the process that imports this: forked off a process with threads of OpenMP, a child waits for ever.
torch.set_num_threads(1)
POINTS = (1_000, 2_000, 5_000, 10_000, 20_000)
# How many times as long a case takes when what it dispatches and calls is collected.
_WATCHED = 3.0


@dataclass(frozen=True)
class Injected:
    """A fault to be judged: what holds it, how often it did harm, and where it is (nothing: anywhere)."""

    name: str
    maker: Callable[[], Any]
    hits: Callable[[], int]
    places: tuple[Any, ...]
    kind: str = ""


def faults_of(text: str) -> list[Injected]:
    """Return the faults of the catalogue, or of a fresh sample: `fresh:SEED:COUNT`.

    Raises:
        ValueError: it is neither.
    """
    if text == "catalogue":
        return list(_of_catalogue())
    kind, _, rest = text.partition(":")
    seed, _, count = rest.partition(":")
    if kind != "fresh" or not seed.isdigit() or not count.isdigit():
        raise ValueError(f"--faults takes catalogue or fresh:SEED:COUNT, not {text}")
    sample = fresh_faults.drawn(int(seed), int(count))
    return [
        Injected(str(one), one, lambda one=one: one.hits, (one.overload,), one.mechanism.name)  # type: ignore[misc]
        for one in sample.faults
    ]


def _of_catalogue() -> Iterator[Injected]:
    files = load_faults()
    for entry in ENTRIES:
        name = fault_of(entry["issue"])
        own = files[name]
        yield Injected(
            entry["issue"],
            own.makers[name],
            lambda own=own, name=name: own.hits[name],  # type: ignore[misc]
            own.places[name],
            entry["mechanism"],
        )


def cases_of(request: Request) -> list[Case]:
    """Return the cases that the CPU can run, in order; one that it cannot leaves its place to what skips it."""
    core = {case.id: case for case in core_cases()}
    skipped = {name for name, file in request.ids.items() if file != "drawn" and name not in core}
    return [_skipping(name) if name in skipped else core.get(name) or drawn_case(name) for name in request.ids]


def _skipping(name: str) -> Case:
    def skip(bench: Any) -> Any:
        raise Refused("not for the CPU")

    return Case(name, "smoke", skip, check=True)


class Pass:
    """One pass over cases without faults: seconds, keys so far, and which cases meet an operator or a function.

    Attributes:
        seconds, keys: before each case and after the last. Seconds are those of a plain run: what watching costs is
            known from every tenth case, which is run again without it.
        alarms: cases that failed.
    """

    def __init__(self, suite: Suite, cases: Sequence[Case]) -> None:
        self.cases, self.keys = cases, [0]
        self.alarms: list[str] = []
        self._by_place: dict[Any, list[int]] = {}
        keys: set[Any] = set()
        watched, again, plain = [], 0.0, 0.0
        for number, case in enumerate(cases):
            met, called = Dispatched(), Called()
            outcome = suite.ask(case, functools.partial(_both, called, met))
            watched.append(outcome.seconds)
            if outcome.failure is not None:
                # A few answer otherwise under any dispatch mode (conjugated views, autocast): they judge no fault.
                plain_failure = suite.ask(case).failure
                self.alarms += [f"{case.id}: {plain_failure[:200]}"] if plain_failure else []
            else:
                self._meet(number, met, called)
            keys |= met.keys
            self.keys.append(len(keys))
            if number % 10 == 0:  # both with the reference at hand
                again += suite.ask(case, functools.partial(_both, Called(), Dispatched())).seconds
                plain += suite.ask(case).seconds
        share = plain / again if again else 1.0
        self.seconds = [0.0, *itertools.accumulate(seconds * share for seconds in watched)]

    def _meet(self, number: int, met: Dispatched, called: Called) -> None:
        packets = {name.rpartition(".")[0] for name in met.operators}
        for place in ((), *met.operators, *packets, *called.functions):
            self._by_place.setdefault(place, []).append(number)

    def cases_for(self, places: tuple[Any, ...]) -> list[int]:
        """Return the numbers of the cases that meet a fault's places, in order."""
        return sorted({number for place in places or ((),) for number in self._by_place.get(place, ())})


class Called(TorchFunctionMode):
    """Collects the public functions that are called, properties too."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: set[Any] = set()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.functions.add(func)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def _both(called: Called, met: Dispatched) -> Iterator[None]:
    with called, met.watching():
        yield


def judge(suite: Suite, fault: Injected, cases: Sequence[Case]) -> dict[str, Any]:
    """Return the verdict on one fault, tested in a forked process: some faults end it, and that is noticed too."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            caught = first_catch(suite, fault, cases)
            sender.send((caught.case.id if caught else None, caught.failure[:160] if caught else "", fault.hits()))
        finally:
            os._exit(0)
    sender.close()
    try:
        case, text, hits = receiver.recv()
    except EOFError:
        case, text, hits = "a crash", "", 1
    os.waitpid(child, 0)
    verdict = "caught" if case else "missed" if hits else "not reached"
    facts = {"fault": fault.name, "kind": fault.kind, "verdict": verdict, "case": case, "text": text}
    return {**facts, "hits": hits, "cases": len(cases)}


def first_catch(suite: Suite, fault: Injected, cases: Iterable[Case]) -> Any:
    """Return the first case that fails because a fault did harm in it, or None."""
    for case in cases:
        before = fault.hits()
        outcome = suite.ask(case, fault.maker)
        if outcome.failure and fault.hits() > before and not _is_its_own(outcome.failure, fault.name):
            return outcome
    return None


def _is_its_own(failure: str, name: str) -> bool:
    """Whether a fault could not take the call: it imitates one form of a function, and others pass by it."""
    return f"TypeError: {fault_of(name)}() " in failure


class Judge:
    """Cases that were run once without a fault, and any faults that they are then run with."""

    def __init__(self, request: Request, say: Callable[[str], None] = functools.partial(print, flush=True)) -> None:
        self._suite, self._cases, self.request, self._say = Suite(()), cases_of(request), request, say
        seconds = suite_in_process.seconds_for(self._cases) * _WATCHED
        say(f"{len(self._cases)} cases are first run without a fault, to know what each meets: {seconds:.0f} s or more")
        self.done = Pass(self._suite, self._cases)
        say(f"{len(self._cases)} cases, {self.done.seconds[-1]:.1f} CPU s, {self.done.keys[-1]} keys dispatched")
        gc.freeze()  # a fork that walks what is kept copies it
        for alarm in self.done.alarms:
            say(f"fails without a fault: {alarm}")

    def judged(self, faults: Sequence[Injected]) -> dict[str, Any]:
        """Return the verdict on each fault, and the curve."""
        number_of = {case.id: number for number, case in enumerate(self._cases)}
        rows = []
        for fault in faults:
            cases = [self._cases[number] for number in self.done.cases_for(fault.places)]
            row = judge(self._suite, fault, cases)
            row["rank"] = number_of.get(row["case"], 0 if row["case"] else None)
            rows.append(row)
            self._say(json.dumps({key: row[key] for key in ("fault", "kind", "verdict", "case", "rank", "cases")}))
        keys = self.done.keys
        at = {str(most): _last_within(keys, most) for most in POINTS if most <= keys[-1]}
        counts = {"quick": self.request.quick, "default": self.request.default, **at}
        return {
            "faults": len(rows),
            "points": {name: point(rows, self.done, count) for name, count in counts.items()},
            "rows": rows,
        }


def _last_within(keys: Sequence[int], most: int) -> int:
    return max(count for count, number in enumerate(keys) if number <= most)


def point(rows: Sequence[dict[str, Any]], done: Pass, count: int) -> dict[str, Any]:
    """Return what the first cases catch, and what they cost."""
    caught = sum(row["rank"] is not None and row["rank"] < count for row in rows)
    low, high = wilson(caught, len(rows))
    return {
        "cases": count,
        "keys": done.keys[count],
        "cpu_s": round(done.seconds[count], 1),
        "caught": caught,
        "share": round(caught / max(len(rows), 1), 4),
        "interval": [round(low, 3), round(high, 3)],
    }


def _by(row: dict[str, Any], request: Request) -> str:
    """Return which case caught a fault, and who has that case."""
    if row["rank"] is None:
        return ""
    has = "--quick" if row["rank"] < request.quick else "the default" if row["rank"] < request.default else "--keys"
    return f" by {row['case']}, which {has} has"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", default="catalogue", metavar="SET,...", help="catalogue, fresh:SEED:COUNT")
    parser.add_argument("--only", default="", metavar="PART,...", help="parts of the faults' names")
    parser.add_argument("--seed", type=int, default=0, help="of the drawn cases")
    parser.add_argument("--keys", type=int, default=0, help="go on to so many (as estimated)")
    parser.add_argument("--keep", action="store_true", help="write what is caught of the catalogue into catalogue.json")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    try:
        sets = {name: faults_of(name) for name in given.faults.split(",")}
    except ValueError as wrong:
        parser.error(str(wrong))
    parts = given.only.split(",")
    sets = {name: [one for one in faults if any(part in one.name for part in parts)] for name, faults in sets.items()}
    if not all(sets.values()):
        parser.error(f"no fault's name holds {given.only}")
    judge_of_all = Judge(requested(given.seed, given.keys))
    found = {
        "seed": given.seed,
        "alarms": judge_of_all.done.alarms,
        "sets": {name: judge_of_all.judged(faults) for name, faults in sets.items()},
    }
    for name, result in found["sets"].items():
        for verdict in ("missed", "not reached"):
            rows = [row for row in result["rows"] if row["verdict"] == verdict]
            print(f"{name}, {verdict}: {len(rows)}", *(row["fault"] for row in rows), sep="\n  ")
        for row in result["rows"] if given.only else ():
            print(f"{row['fault']}: {row['verdict']}{_by(row, judge_of_all.request)}")
        for place, figures in result["points"].items() if not given.only else ():
            print(name, place, figures)
    if given.keep and not given.only and "catalogue" in found["sets"]:
        result = found["sets"]["catalogue"]
        places = result["points"]["default"]["cases"]
        keep_caught(row["fault"] for row in result["rows"] if row["rank"] is not None and row["rank"] < places)
    if given.json:
        given.json.write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
