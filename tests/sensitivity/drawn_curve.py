"""What the drawn cases catch of the catalogue's injected faults, over cases, graph keys and CPU seconds.

python tests/sensitivity/drawn_curve.py [--faults 240] [--cases 8000] [--seed 0] [--json FILE]
python tests/sensitivity/drawn_curve.py --old [--share 8] ...                   # the other cases beside it

The faults are every n-th of each sample of the catalogue, the same for every seed. A fault is caught at the first case,
in the order of worth, that fails under it and passes without. A case's seconds are those of a pass without faults. With
--old one of SHARE cases of the other layers stand in their place, in an order by chance.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from pathlib import Path
from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import suite_in_process
from catalogue import ENTRIES, plant_of
from function_plants import FunctionRecorder
from generic_plants import Traits
from judge_plants import choose, judge
from suite_in_process import Suite

from device_suite.cases import Case, Cases  # isort: skip
from engine import sampler, trial  # isort: skip
import operators  # isort: skip
import transforms  # isort: skip

# Copies and fills: MPS has kernels for them, and compiles no graph.
_WITHOUT_A_GRAPH = frozenset(
    {"_to_copy", "copy", "clone", "detach", "alias", "empty", "empty_like", "empty_strided", "new_empty", "set"}
    | {"new_empty_strided", "zeros", "zeros_like", "zero", "fill", "full", "ones", "ones_like", "new_zeros", "new_ones"}
    | {"resize", "_local_scalar_dense", "lift_fresh", "_reshape_copy"}
)
# The last of the samples: few descriptions have changed since.
LATE = ("torch-issues-5", "torch-issues-6", "torch-issues-7", "other-back-ends-14", "other-back-ends-15")
POINTS = (500, 1000, 2000, 4000, 6000, 8000, 12000, 16000)


class Compiled(TorchDispatchMode):
    """Collects the distinct (operator, dtypes, shapes, layouts, options) that are dispatched; views make no graph."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: set[Any] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        schema = func._schema
        name = schema.name.split("::")[1].rstrip("_")
        is_view = any(one.alias_info is not None and not one.alias_info.is_write for one in schema.returns)
        if not is_view and name not in _WITHOUT_A_GRAPH:
            self.keys.add((func, *_facts((args, list((kwargs or {}).values())))))
        return answer


def _facts(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value.dtype, tuple(value.shape), value.is_contiguous()
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _facts(one)
    else:
        yield str(value)


def faults_of(count: int) -> list[str]:
    """Return so many names of faults, spread over all samples of the catalogue."""
    rows = sorted((row.get("sample") or "", plant_of(row["issue"])) for row in ENTRIES)
    step = max(len(rows) / count, 1.0)
    return [rows[int(place * step)][1] for place in range(min(count, len(rows)))]


def drawn_cases(count: int, seed: int) -> tuple[list[Case], list[float]]:
    """Return the first drawn cases of a seed, and how many keys each adds as estimated."""
    every, ways = operators.described(), transforms.known()
    found = sampler.chosen(sampler.Sampler(every, ways, seed), cases=count, most_keys=10**9)
    cases = Cases("drawn")
    for drawn in found:
        case = drawn.case
        cases.add(
            str(case),
            lambda bench, case=case: trial.make(case, every[case.operator], ways[case.transformation], bench),
            check=True,
            may_be_missing=True,
        )
    return list(cases), [drawn.new_keys for drawn in found]


class Pass:
    """One pass over cases without faults: seconds, keys so far, and which cases meet an operator or a function."""

    def __init__(self, suite: Suite, cases: list[Case]) -> None:
        self.cases, self.seconds, self.keys = cases, [], []
        self.alarms: list[str] = []
        self._by_place: dict[Any, list[int]] = {}
        compiled = Compiled()
        for number, case in enumerate(cases):
            asked = suite.ask(case)
            self.seconds.append(asked.seconds)
            if asked.failure is not None:
                self.alarms.append(f"{case.id}: {asked.failure[:200]}")
            else:
                self._meet(suite, number, case, compiled)
            self.keys.append(len(compiled.keys))

    def _meet(self, suite: Suite, number: int, case: Case, compiled: Compiled) -> None:
        met, functions = Traits(), FunctionRecorder()

        @contextlib.contextmanager
        def around() -> Iterator[None]:
            with functions, met, compiled:
                yield

        suite.ask(case, around)
        for place in (*met.seen, *{name.rpartition(".")[0] for name in met.seen}, *functions.called):
            self._by_place.setdefault(place, []).append(number)

    def cases_for(self, places: tuple[Any, ...]) -> list[int]:
        """Return the numbers of the cases that meet a fault's places, in order."""
        if not places:
            return list(range(len(self.cases)))
        return sorted({number for place in places for number in self._by_place.get(place, ())})


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=240)
    parser.add_argument("--cases", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--old", action="store_true")
    parser.add_argument("--share", type=int, default=8)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    suite = Suite(suite_in_process.DEFAULT_LAYERS if given.old else ())
    if not given.old:
        cases, _ = drawn_cases(given.cases, given.seed)
    else:
        cases = random.Random(given.seed).sample(suite.cases, len(suite.cases))
        cases = cases[:: given.share]
    done = Pass(suite, cases)
    print(f"{len(cases)} cases, {sum(done.seconds):.1f} CPU s, {done.keys[-1]} keys dispatched", flush=True)
    for alarm in done.alarms:
        print(f"fails without a fault: {alarm}", flush=True)
    number_of = {case.id: number for number, case in enumerate(cases)}
    wanted = set(faults_of(given.faults))
    rows = []
    for plot, name in choose([], "", "", blind=False):
        if name not in wanted:
            continue
        row = judge(suite, plot, name, [cases[number] for number in done.cases_for(plot.places[name])])
        row["rank"] = number_of.get(row["case"])
        rows.append(row)
        print(json.dumps({key: row[key] for key in ("plant", "verdict", "case", "rank", "asked")}), flush=True)
    result = {
        "kind": "default" if given.old else "drawn",
        "seed": given.seed,
        "faults": len(rows),
        "alarms": done.alarms,
        "points": points(rows, done, len(cases)),
        "rows": rows,
    }
    for point in result["points"]:
        print(point)
    if given.json:
        given.json.write_text(json.dumps(result) + "\n", encoding="utf-8")


def points(rows: list[dict[str, Any]], done: Pass, count: int) -> list[dict[str, Any]]:
    """Return the curve: what the first cases catch, of all faults and of those of the last samples."""
    late = {plant_of(row["issue"]) for row in ENTRIES if row.get("sample") in LATE}
    found = []
    for cases in (*(point for point in POINTS if point < count), count):
        caught = [row for row in rows if row["rank"] is not None and row["rank"] < cases]
        of_late = [row for row in rows if row["plant"] in late]
        found.append(
            {
                "cases": cases,
                "keys": done.keys[cases - 1],
                "cpu_s": round(sum(done.seconds[:cases]), 1),
                "caught": round(len(caught) / len(rows), 3),
                "late_caught": round(sum(row in caught for row in of_late) / max(len(of_late), 1), 3),
                "late": len(of_late),
            }
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
