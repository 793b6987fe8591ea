"""Choose the cases of `--quick`: those that notice most in a second of CPU, written to tests/device/quick.json.

python tests/sensitivity/choose_quick.py [--budget 25] [--gpu OUTCOMES.jsonl ... --gpu-budget 35] [--among quick.json]
python tests/sensitivity/choose_quick.py --keep OLD/quick.json --budget 20

What counts as noticed: each bug of the catalogue (by every case of its entry that fails with it), and each overload in
each way in which a generic fault could touch it (result, strides, offset, lost write), twice where that is possible.
Greedy: the case that adds most for its time comes next. With --gpu, outcomes that one process wrote on a GPU where
nothing was compiled, only the cases among them are chosen, and their time there counts too. (Outcomes of processes side
by side would not do: they share what is compiled.)

Before all others come the cases that run the blocks of PyTorch's MPS host code which `--quick` would not run, and that
caught mutants of it (`mutants/quick_cases.json`, made by `mutants/run.py HOME quick --write`); with --keep those of an
earlier choice too, whose time on a GPU was measured: then only the cases of the catalogue's bugs may join them.
"""

from __future__ import annotations

import argparse
import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import suite_in_process
from catalogue import MUST, cases_of, load_plots, plant_of
from device_suite.cases import Case
from device_suite.selection import load_quick
from generic_plants import UNDEFINED, Traits
from suite_in_process import SLOW_SECONDS, Suite

FRAME_SECONDS = 0.004  # what pytest and the driver add to a case
TIMES = 2
COMPILING_SECONDS = 0.4
ASKED = 40  # cases of a bug, at most
QUICK = suite_in_process.DEVICE_TESTS / "quick.json"
HOST_CODE = Path(__file__).resolve().parent / "mutants" / "quick_cases.json"


@dataclass(frozen=True)
class Measured:
    """What each case costs and could notice."""

    seconds: dict[str, float]
    notices: dict[str, set[Any]]


def measure(suite: Suite, first: set[str]) -> Measured:
    """Ask every case as it is, then under each bug of the catalogue.

    Args:
        first: where some are given, only these are asked, and for a bug that none of its own among them notices others.
    """
    found = Measured({}, {})
    for case in suite.cases:
        if not first or case.id in first:
            _ask_as_it_is(suite, case, found)
    plots = load_plots()
    for issue in sorted(issue for issue in MUST if plant_of(issue) in plots):
        maker = plots[plant_of(issue)].makers[plant_of(issue)]
        own = cases_of(issue, suite.cases)
        among = [case for case in own if case.id in first] if first else own
        if not _notice(suite, issue, maker, among, found) and first:
            _notice(suite, issue, maker, [case for case in own if case.id not in first][:ASKED], found)
    return found


def _ask_as_it_is(suite: Suite, case: Case, found: Measured) -> None:
    suite.forget_references()
    found.seconds[case.id] = suite.ask(case).seconds
    if case.id in suite.refused:
        return
    mode = Traits()
    asked = suite.ask(case, lambda mode=mode: mode)
    if asked.failure is not None:
        return
    known = ((overload, kinds) for overload, kinds in mode.seen.items() if overload.split(".")[1] not in UNDEFINED)
    found.notices[case.id] = {(overload, kind) for overload, kinds in known for kind in kinds}


def _notice(suite: Suite, issue: str, maker: Any, cases: list[Case], found: Measured) -> bool:
    """Note which of some cases, the quickest first, notice a bug; say whether any does."""
    for case in cases:
        if case.id not in found.seconds:
            _ask_as_it_is(suite, case, found)
    able = sorted((case for case in cases if case.id in found.notices), key=lambda one: found.seconds[one.id])
    noticed = [case.id for case in able[:ASKED] if suite.ask(case, maker).failure is not None]
    for name in noticed:
        found.notices[name].add(("issue", issue))
    return bool(noticed)


def cold_seconds(records: list[Path]) -> dict[str, float]:
    """Return what each recorded case takes on a GPU at most: where an operator compiles, as much as its dearest case.

    What is compiled for one case serves the next, so that its time in one record says little about another choice.
    """
    found: dict[str, float] = {}
    for row in (json.loads(line) for record in records for line in record.read_text(encoding="utf-8").splitlines()):
        if row.get("event") == "finished":
            found[row["id"]] = max(row["seconds"], found.get(row["id"], 0.0))
    dearest: dict[str, float] = {}
    for case, seconds in found.items():
        dearest[_operator(case)] = max(seconds, dearest.get(_operator(case), 0.0))
    return {
        case: dearest[_operator(case)] if dearest[_operator(case)] > COMPILING_SECONDS else seconds
        for case, seconds in found.items()
    }


def _operator(case: str) -> str:
    """Return what the cases of one operator have in common.

    >>> _operator("condition-sinc-int8"), _operator("layout-lgamma-inplace"), _operator("condition-limit-nothing")
    ('condition-sinc', 'layout-lgamma', 'condition-limit-nothing')
    """
    return re.sub(r"^((?:condition|layout)-[a-z0-9_]+)-(?:u?int|b?float|complex|bool|in|out|grad).*", r"\1", case)


def host_code_cases() -> list[str]:
    """Return the cases that stand for the host code of MPS, of which a recording on the CPU knows nothing."""
    listed: dict[str, list[str]] = json.loads(HOST_CODE.read_text(encoding="utf-8"))
    return [case for cases in listed.values() for case in cases]


def choose(
    measured: Measured, budget: float, gpu: dict[str, float], gpu_budget: float, first: Iterable[str] = ()
) -> list[str]:
    """Return ids until everything is noticed as often as asked, or the budget in seconds is spent.

    A case that would go beyond the GPU's budget is left out.

    Args:
        first: cases that are chosen before all others, whatever they cost.
    """
    wanted = Counter(thing for things in measured.notices.values() for thing in things)
    wanted = Counter({thing: min(count, 1 if thing[0] == "issue" else TIMES) for thing, count in wanted.items()})
    left = {case: things for case, things in measured.notices.items() if measured.seconds[case] <= SLOW_SECONDS}
    left = {case: things for case, things in left.items() if case in gpu} if gpu else left
    chosen = sorted(set(first))
    gpu_spent = sum(gpu.get(case, 0.0) for case in chosen)
    spent = sum(measured.seconds.get(case, 0.0) + FRAME_SECONDS for case in chosen)
    print(f"{len(chosen)} cases of the host code and of an earlier choice, {spent:.1f} s")
    for case in chosen:
        wanted.subtract([thing for thing in measured.notices.get(case, ()) if wanted[thing] > 0])
        left.pop(case, None)

    def worth(case: str) -> float:
        seconds = measured.seconds[case] + gpu.get(case, 0.0)
        return _gain(left[case], wanted) / (seconds + FRAME_SECONDS)

    # What a case adds only shrinks: one whose old worth is not reached by others is measured anew, the rest wait.
    heap = [(-worth(case), case) for case in left]
    heapq.heapify(heap)
    while heap and spent < budget:
        before, case = heapq.heappop(heap)
        now = worth(case)
        if heap and now < -heap[0][0] and now < -before:
            heapq.heappush(heap, (-now, case))
            continue
        if now == 0:
            continue
        if gpu_spent + gpu.get(case, 0.0) > gpu_budget:
            continue
        wanted.subtract([thing for thing in left[case] if wanted[thing] > 0])
        gpu_spent += gpu.get(case, 0.0)
        spent += measured.seconds[case] + FRAME_SECONDS
        chosen.append(case)
    missed = sorted({thing[1] for thing, count in wanted.items() if count > 0 and thing[0] == "issue"})
    print(f"{len(chosen)} cases, {spent:.1f} s, {gpu_spent:.1f} s on the recorded GPU")
    print(f"bugs not noticed by them: {missed}")
    return chosen


def _gain(things: set[Any], wanted: Counter[Any]) -> float:
    # A bug that users met weighs more than all the ways in which a few overloads may be wrong.
    return sum(20.0 if thing[0] == "issue" else 1.0 for thing in things if wanted[thing] > 0)


def main() -> None:
    """Measure, choose and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=25.0, metavar="SECONDS")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="all cases of this quick.json, and some more")
    parser.add_argument("--among", type=Path, metavar="FILE", help="only cases of this quick.json")
    parser.add_argument(
        "--gpu", type=Path, nargs="*", default=[], metavar="FILE", help="outcomes of a cold GPU, by one process"
    )
    parser.add_argument("--gpu-budget", type=float, default=35.0, metavar="SECONDS")
    parser.add_argument(
        "--measured", type=Path, metavar="FILE", help="keep what was measured, and read it if it is there"
    )
    given = parser.parse_args()
    suite = Suite()
    if given.among:
        among = load_quick(given.among)
        suite.cases = [case for case in suite.cases if case.id in among]
    first = {*host_code_cases(), *(load_quick(given.keep) if given.keep else ())}
    if gone := sorted(first - set(suite.file_of)):
        raise SystemExit(f"no case any more: {', '.join(gone)}")
    measured = _kept(given.measured) or measure(suite, first if given.keep else set())
    if given.measured:
        rows = {case: [measured.seconds[case], sorted(map(list, things))] for case, things in measured.notices.items()}
        given.measured.write_text(json.dumps(rows), encoding="utf-8")
    chosen = set(choose(measured, given.budget, cold_seconds(given.gpu), given.gpu_budget, first))
    files: dict[str, list[str]] = {}
    for case, file in suite.file_of.items():  # what only MPS is asked too
        if case in chosen:
            files.setdefault(file, []).append(case)
    body = ",\n".join(f"{json.dumps(name)}: {json.dumps(cases, indent=0)}" for name, cases in sorted(files.items()))
    QUICK.write_text(f'{{"files": {{\n{body}\n}}}}\n', encoding="utf-8")


def _kept(path: Path | None) -> Measured | None:
    if path is None or not path.is_file():
        return None
    rows = json.loads(path.read_text(encoding="utf-8"))
    seconds = {case: row[0] for case, row in rows.items()}
    notices = {case: {tuple(thing) for thing in row[1]} for case, row in rows.items()}
    return Measured(seconds, notices)


if __name__ == "__main__":
    main()
