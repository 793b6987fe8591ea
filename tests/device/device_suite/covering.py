"""Covering: few combinations in which every three values of three factors occur, kept as data.

`coverings.json` is made by `python tests/sensitivity/cover.py`; the suite only reads it.
"""

from __future__ import annotations

import functools
import itertools
import json
import random
from pathlib import Path
from typing import Any, Callable, Dict

STORE = Path(__file__).parent / "coverings.json"
_SAMPLE = 6000  # rows of which the greedy search chooses, where there are more

Row = Dict[str, Any]
Factors = Dict[str, "tuple[Any, ...]"]
made: dict[str, Any] = {}
making = False


def covering(name: str, factors: Factors, allowed: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """Return the rows kept under `name`; they cover every three values that an allowed row can hold.

    Raises:
        ValueError: what is kept was made of other factors.
    """
    if making:
        made[name] = {"factors": _named(factors), "rows": cover(factors, allowed, _kept(name, factors))}
    kept = made.get(name) or _store().get(name)
    if kept is None or kept["factors"] != _named(factors):
        raise ValueError(f"{STORE.name} does not know these factors of {name}: run python tests/sensitivity/cover.py")
    return [{key: values[place] for (key, values), place in zip(factors.items(), row)} for row in kept["rows"]]


def cover(factors: Factors, allowed: Callable[[Row], bool], kept: Any = ()) -> list[list[int]]:
    """Return rows of places, one for each factor: greedily, each takes as much that is uncovered as it can.

    `kept`: rows to begin with, so that a case keeps its name.

    >>> len(cover({"a": (1, 2), "b": (1, 2), "c": (1, 2), "d": (1, 2)}, lambda row: True))
    8
    """
    every = list(itertools.product(*(range(len(values)) for values in factors.values())))
    random.Random(0).shuffle(every)

    def fits(row: Any) -> bool:
        return allowed(dict(zip(factors, map(_value, factors.values(), row))))

    fitting = filter(fits, every)
    together = min(3, len(factors))
    keyed = [(row, set(itertools.combinations(enumerate(row), together))) for row in itertools.islice(fitting, _SAMPLE)]
    missing: set[Any] = set().union(*(met for _, met in keyed))
    chosen = [list(row) for row in kept if fits(row)]
    for row in chosen:
        missing -= set(itertools.combinations(enumerate(row), together))
    while missing:
        row, met = max(keyed, key=lambda one: len(one[1] & missing))
        chosen.append(list(row))
        missing -= met
    return chosen


def in_pairs(rows: list[Row]) -> list[Row]:
    """Return few of some rows, in which every two values occur that occur in any.

    >>> in_pairs([{"a": 1, "b": 2}, {"a": 1, "b": 3}, {"a": 1, "b": 2}])
    [{'a': 1, 'b': 2}, {'a': 1, 'b': 3}]
    """
    pairs = [set(itertools.combinations(((key, str(value)) for key, value in row.items()), 2)) for row in rows]
    missing: set[Any] = set().union(*pairs)
    chosen = []
    while missing:
        place = max(range(len(rows)), key=lambda one: len(pairs[one] & missing))
        chosen.append(place)
        missing -= pairs[place]
    return [rows[place] for place in sorted(chosen)]


def _kept(name: str, factors: Factors) -> Any:
    """Return the rows that are there, where they are of these factors."""
    stored = _store().get(name, {})
    return stored["rows"] if stored.get("factors") == _named(factors) else ()


def _value(values: Any, place: int) -> Any:
    return values[place]


def _named(factors: Factors) -> dict[str, list[str]]:
    return {key: [str(value) for value in values] for key, values in factors.items()}


@functools.lru_cache(maxsize=None)
def _store() -> Any:
    return json.loads(STORE.read_text(encoding="utf-8")) if STORE.is_file() else {}


def label(row: Row) -> str:
    """Return a row as a part of a case's id: a flag by its name, another value with it."""
    parts = []
    for name, value in row.items():
        if value is True:
            parts.append(name)
        elif value is not None and value is not False:
            parts.append(f"{name}={value}".replace(" ", "").replace(",", "x").replace("torch.", ""))
    return "-".join(parts) or "plain"
