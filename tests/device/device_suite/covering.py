"""Covering: few combinations in which every two values of two factors occur, the same on every machine."""

from __future__ import annotations

import itertools
import random
from typing import Any, Callable, Dict

Row = Dict[str, Any]
Factors = Dict[str, "tuple[Any, ...]"]
# Combinations of which a row is chosen, drawn by a fixed seed where there are more.
_SAMPLE = 400


def covering(factors: Factors, allowed: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """Return few rows: greedily, each takes as many pairs of values that no other has as it can.

    >>> len(covering({"a": (1, 2), "b": (1, 2), "c": (1, 2)}))
    4
    """
    every = list(itertools.product(*(range(len(values)) for values in factors.values())))
    random.Random(0).shuffle(every)
    named = ({key: values[place] for (key, values), place in zip(factors.items(), row)} for row in every)
    pairs = zip(every, named)
    rows = [
        (row, set(itertools.combinations(enumerate(places), 2)))
        for places, row in itertools.islice((one for one in pairs if allowed(one[1])), _SAMPLE)
    ]
    missing: set[Any] = set().union(*(met for _, met in rows))
    chosen = []
    while missing:
        row, met = max(rows, key=lambda one: len(one[1] & missing))
        chosen.append(row)
        missing -= met
    return chosen


def label(row: Row) -> str:
    """Return a row as a part of a case's id: a flag by its name, another value with it.

    >>> label({"bias": True, "mask": None, "p": 2.0})
    'bias-p=2.0'
    """
    parts = []
    for name, value in row.items():
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f"{name}={value}".replace(" ", "").replace(",", "x").replace("torch.", ""))
    return "-".join(parts) or "plain"
