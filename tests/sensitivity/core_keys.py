"""What the core of the suite takes: cases, graph keys and CPU seconds of each layer, beside those of a drawn case.

And the graph keys that a case of each transformation dispatches first, on the mean of a default run.

python tests/sensitivity/core_keys.py

engine/budget.py reserves these cases and keys, and engine/estimate.py counts these costs.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

from suite_in_process import Suite, core, drawn_case, requested, seconds_for  # isort: skip  # libtorch reads what it sets
import torch

from engine.cases import Case  # isort: skip
from engine.selection import quick_cases  # isort: skip
from engine import sampler  # isort: skip
from engine.estimate import measured as cost_of  # isort: skip
from engine.keys import Dispatched  # isort: skip
import operators  # isort: skip
import transforms  # isort: skip


@dataclass
class Part:
    """What a layer takes; the keys of a layer are those that no case before it has dispatched."""

    cases: int = 0
    quick_cases: int = 0
    seconds: float = 0.0
    keys: set[object] = field(default_factory=set)
    quick_keys: set[object] = field(default_factory=set)


def measured(suite: Suite, *, timed: bool) -> dict[str, Part]:
    """Return what each layer takes: every case is run for its keys, and `timed` once before, for its seconds."""
    found: dict[str, Part] = {}
    by_file: dict[str, list[Case]] = {}
    for file, case in core():
        by_file.setdefault(file, []).append(case)
    for cases in by_file.values():
        quick = {case.id: case for case in quick_cases(cases)}
        for case in cases:
            part = found.setdefault(case.layer, Part())
            part.cases += 1
            part.seconds += suite.ask(case).seconds if timed else 0.0
            part.keys |= _keys(suite, case)
            if case.id in quick:
                part.quick_cases += 1
                part.quick_keys |= _keys(suite, quick[case.id])
    return found


def _keys(suite: Suite, case: Case) -> set[object]:
    watched = Dispatched()
    suite.ask(case, watched.watching)
    return watched.keys


def by_transformation(seed: int = 0) -> dict[str, tuple[int, float]]:
    """Return of each transformation how many drawn cases the default has, and how many keys each dispatches first."""
    suite = Suite(())
    suite.keep_nothing()
    keys: set[object] = set()
    found: dict[str, tuple[int, float]] = {}
    for name in (name for name, file in requested(seed).ids.items() if file == "drawn"):
        watched = Dispatched()
        suite.ask(drawn_case(name), watched.watching)
        way = sampler.Case.of(name).transformation
        cases, fresh = found.get(way, (0, 0.0))
        found[way] = cases + 1, fresh + len(watched.keys - keys)
        keys |= watched.keys
    return {way: (cases, fresh / cases) for way, (cases, fresh) in found.items()}


def main() -> int:
    """Print the table."""
    torch.set_num_threads(1)
    suite = Suite()
    ids = requested(0).ids
    every = [*suite.cases, *(drawn_case(name) for name, file in ids.items() if file == "drawn")]
    print(
        f"{len(every)} cases are run, those of the core two times: {2 * seconds_for(every):.0f} s or more", flush=True
    )
    begun = time.process_time()
    drawn = sampler.chosen(sampler.Sampler(operators.described(), transforms.known()), cases=6_000, most_keys=10_000)
    each = cost_of([one.case for one in drawn], torch.device("cpu"), time.process_time).case
    print(f"a drawn case: {each * 1000:.1f} ms ({time.process_time() - begun:.1f} CPU s to know)")
    print("layer          cases  keys  CPU s  drawn cases a case  quick cases  quick keys")
    for layer, part in measured(suite, timed=True).items():
        cost = part.seconds / part.cases / each
        print(
            f"{layer:<14} {part.cases:>5} {len(part.keys):>5} {part.seconds:>6.1f} {cost:>19.1f} "
            f"{part.quick_cases:>12} {len(part.quick_keys):>11}"
        )
    print("transformation   cases  new keys a case  as engine/transformation.py has it")
    for way, (cases, fresh) in by_transformation().items():
        print(f"{way:<16} {cases:>5} {fresh:>16.2f} {transforms.known()[way].graphs:>8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
