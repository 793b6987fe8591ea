"""Choose, of the rows in rows.json, those that the default layers ask; the others are asked with `--full`.

python tests/sensitivity/choose_rows.py [--only NAME,...]

Each row is called once on the CPU. Greedy: the row that adds most for the kernels that it adds comes next, until every
condition of every overload that any row meets is met, and every pair of an operator's conditions that any row holds: a
dtype, a form and a class of size with each argument, kind of layout and class of values, and with each other; arguments
with each other and with the kinds of layout; the layouts of two operands; and every three classes of which two are
arguments, but of large rows. A kernel is a distinct operator, dtype, shape and layout: on MPS most of them are compiled
once.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import itertools
import math
from dataclasses import dataclass
from typing import Any, Iterator

import torch

import suite_in_process  # noqa: F401 - the device suite comes into reach by it
from apart import apart
from conditions import Conditions, graph_key, is_view
from conditions_reach import runs_on_mps
from device_suite.compare import Mismatch
from device_suite.conditions import asking
from device_suite.conditions.listed import all_rows, signature, stored_rows
from device_suite.runs import Bench
from device_suite.states import Refused
from engine.description import Operator, Row
from operators import tables
from pairing import save_rows
from row_classes import LARGE, dtype_class, layout_class, size_class, threes_of

KINDS = ("dtypes", "arguments", "layouts", "sizes", "values")


@dataclass(frozen=True)
class Met:
    """What one row meets: conditions of overloads, pairs of its levels, and what they cost: kernels, elements."""

    row: Row
    conditions: frozenset[Any]
    pairs: frozenset[Any]
    kernels: frozenset[Any]
    elements: int


class _Forms(Conditions):
    """Records without keeping calls."""

    def _keep(self, *_: Any) -> None:
        pass


def pairs_of(spec: Operator, row: Row) -> Iterator[Any]:
    """Yield a row's levels, and the pairs of them that count."""
    levels = row.levels
    form, dtype, values = ("form", levels["@form"]), ("dtype", str(levels["@dtype"])), ("values", levels["@values"])
    kind, size = ("kind", dtype_class(levels["@dtype"])), ("size", size_class(spec.shapes[levels["@size"]]))
    layouts = [(key, str(value)) for key, value in levels.items() if key.startswith("@layout")]
    classes = [(key, layout_class(value)) for key, value in layouts]
    arguments = [(key, str(value)) for key, value in levels.items() if key[0] != "@"]
    yield from (form, dtype, values, ("side", levels["@size"]), *layouts, *arguments)
    yield from itertools.product((dtype,), (form, values, *classes, *arguments))
    yield (kind, size)
    yield from itertools.product((form,), (size, values, *classes, *arguments))
    yield from itertools.product((size,), (values, *classes, *arguments))
    yield from itertools.product(arguments, classes)
    yield from itertools.combinations(classes, 2)
    yield from itertools.combinations(arguments, 2)
    yield from threes_of(spec, row)


def meet(spec: Operator, row: Row) -> Met:
    """Call a row once on the CPU and note what it meets."""
    recorder = _Forms()
    bench = Bench(torch.device("cpu"), around=lambda: recorder)
    with contextlib.suppress(Refused, Mismatch):  # on this torch; another one may have it, or be right
        asking.ask_rows(spec, [row], bench)
    found = {
        (func, kind, one)
        for func, facts in recorder.facts.items()
        if runs_on_mps(func) and not is_view(func)
        for kind in KINDS
        for one in getattr(facts, kind)
    }
    kernels = {graph_key(form) for form in recorder.keys if not is_view(form[0])}
    elements = math.prod(spec.shapes[row.levels["@size"]])
    return Met(row, frozenset(found), frozenset(pairs_of(spec, row)), frozenset(kernels), elements)


def choose(met: list[Met]) -> list[Row]:
    """Return the rows of one operator that meet what any of its rows meets."""
    left: set[Any] = {one for row in met for one in (*row.conditions, *row.pairs)}
    known: set[Any] = set()

    def worth(one: Met) -> float:
        return (len(one.conditions & left) + len(one.pairs & left)) / (
            1 + len(one.kernels - known) + one.elements / LARGE
        )

    heap = [(-worth(one), place) for place, one in enumerate(met)]
    heapq.heapify(heap)
    chosen = []
    while left:
        before, place = heapq.heappop(heap)
        now = worth(met[place])
        if now == 0:
            continue
        if heap and now < -heap[0][0] and now < -before:
            heapq.heappush(heap, (-now, place))
            continue
        left -= met[place].conditions | met[place].pairs
        known |= met[place].kernels
        chosen.append(met[place].row)
    return chosen


def chosen_of(name: str) -> set[str]:
    """Return the digits of an operator's rows that the default layers ask."""
    torch.set_num_threads(1)
    spec = {name: spec for table in tables() for name, spec in table.operators.items()}[name]
    return {row.digits for row in choose([meet(spec, row) for row in all_rows(spec)])}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="these operators; the others keep their choice")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    stored = {name: dict(one) for name, one in stored_rows().items()}
    specs = {name: spec for table in tables() for name, spec in table.operators.items()}
    names = [name for name, spec in specs.items() if stored.get(name, {}).get("factors") == signature(spec)]
    wanted = [name for name in names if not given.only or name in given.only.split(",")]
    for name, chosen in apart(chosen_of, {name: (name,) for name in wanted}, jobs=given.jobs):
        if chosen is None:
            print(f"{name}: the CPU crashed here, all rows are asked", flush=True)
            continue
        every = sorted([*stored[name]["rows"].split(), *stored[name].get("more", "").split()])
        stored[name]["rows"] = " ".join(one for one in every if one in chosen)
        stored[name]["more"] = " ".join(one for one in every if one not in chosen)
    save_rows(stored)
    counts = [sum(len(one.get(part, "").split()) for one in stored.values()) for part in ("rows", "more")]
    print(f"{counts[0]} rows by default, {counts[1]} more with --full")


if __name__ == "__main__":
    main()
