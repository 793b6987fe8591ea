"""The one call of each overload that the rules change: of those that the suite's cases make, the one that says most."""

from __future__ import annotations

from typing import Any

import torch

from call_changes import describe
from conditions import Facts
from conditions_reach import name_of
from device_suite.overloads.asking import attempt_answers
from device_suite.overloads.described import changed, shape_of, texts
from device_suite.rules.changes import ChangedCall
from device_suite.runs import Bench


def sample_of(func: Any, facts: Facts) -> Any:
    """Return the kept call that says most: many operands, float32, two dimensions or more, few elements."""

    return best_of(func, [describe(sample) for sample in facts.samples.values()])


def best_of(func: Any, calls: list[Any]) -> Any:
    """Return the described call that says most, in float32; None of none."""
    return in_float32(func, max(calls, key=_score)) if calls else None


def _score(call: Any) -> Any:
    every = texts(call)
    count = max((_numel(text) for text in every), default=0)
    floats = sum(text.startswith("@float32 ") for text in every)
    full = all(_numel(text) for text in every)
    rank = min(len(shape_of(every[0])), 3) if every else 0
    return full, 4 <= count <= 700, len(every), floats, rank, len(call[0]) + len(call[1]), -count


def in_float32(func: Any, call: Any) -> Any:
    """Return a call in half precision as one of float32 with numbers of usual size, where the CPU answers that too.

    So with a gradient of whole numbers, which autograd never makes; it gets numbers that are not all zero.
    """
    halves, every = ("@float16 ", "@bfloat16 "), texts(call)
    first = every[0] if every else ""
    is_whole = "_backward" in name_of(func) and first.startswith(("@int", "@uint"))
    if is_whole:
        halves = (*halves, first.split(" ")[0] + " ")
    if not any(text.startswith(halves) for text in every):
        return call

    def widened(text: str) -> str:
        if not text.startswith(halves):
            return text
        _, sides, layout, low, high = text.split(" ")
        if is_whole and text == first:
            low, high = "-1", "1"
        return " ".join(("@float32", sides, layout, f"{max(float(low), -4):g}", f"{min(float(high), 4):g}"))

    wide = changed(call, widened)
    args, kwargs = (
        list(wide[0]),
        {name: "@dtype float32" if str(one).startswith("@dtype ") else one for name, one in wide[1].items()},
    )
    made = attempt_answers(func, ChangedCall(func, [args, kwargs], []), Bench(torch.device("cpu")).same())
    return call if isinstance(made, Exception) else [args, kwargs]


def _numel(text: str) -> int:
    count = 1
    for side in shape_of(text):
        count *= side
    return count
