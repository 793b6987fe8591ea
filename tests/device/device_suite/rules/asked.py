"""What each rule asks of each overload.

`asked.json`, made by `tests/sensitivity/rule_calls.py`: overloads that MPS runs. `wider.json`, made by `wider_calls.py`
there: also functions that are made of others, and kernels that MPS has not yet.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Callable, Iterator

from ..cases import Cases
from ..overloads.described import overload
from ..overloads.forwards import choices_of
from ..states import Refused
from .changes import ChangedCall

ASKED = Path(__file__).parent / "asked.json"
RULES = (
    *("refused", "places", "special", "derived", "windows", "written", "broadcast", "rows"),
    *("turns", "chains", "form", "rounding"),
)
WIDER = ASKED.with_name("wider.json")
_ALL = 1 << 30
WIDER_RULES = (
    *("options", "indices", "misfits", "outs", "resized", "strides", "handed", "again", "deterministic"),
    *(
        "sizes",
        "numbers",
        "lazy",
        "typed",
        "wanting",
        "twice",
        "halves",
        "emptied",
        "emptied_refused",
        "dims",
        "amid",
        "vast",
        "cuts",
        "stray",
    ),
)


@functools.lru_cache(maxsize=None)
def stored() -> dict[str, Any]:
    """Return `samples`: the calls of each overload, and for each rule the changes that are asked of them."""
    return json.loads(ASKED.read_text(encoding="utf-8")) if ASKED.is_file() else {}  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=None)
def wider() -> dict[str, Any]:
    """Return the same of the wider rules; `samples` has the calls that `stored` has not."""
    return json.loads(WIDER.read_text(encoding="utf-8")) if WIDER.is_file() else {}  # type: ignore[no-any-return]


def asked_by(rule: str) -> dict[str, Any]:
    """Return what a rule asks: the changes of each overload."""
    found: dict[str, Any] = (wider() if rule in WIDER_RULES else stored()).get(rule, {})
    return found


def samples_of(name: str) -> list[Any]:
    """Return the calls of an overload: that of the plain rules first."""
    return [*stored()["samples"].get(name, ()), *wider().get("samples", {}).get(name, ())]


def packet_of(name: str) -> str:
    """Return the operator of an overload, in place or not.

    >>> packet_of("add_.Tensor"), packet_of("__rshift__.Tensor"), packet_of("index_put_.default")
    ('add', '__rshift__', 'index_put')
    """
    packet = name.partition(".")[0]
    return packet if packet.endswith("__") else packet.rstrip("_")


def first_of_each(changes: list[Any], most: int) -> tuple[list[Any], list[Any]]:
    """Return the first so many changes of each call, and the others.

    >>> first_of_each([[0, "a"], [0, "b"], [1, "a"]], 1)
    ([[0, 'a'], [1, 'a']], [[0, 'b']])
    """
    seen: Counter[int] = Counter()
    asked: list[Any] = []
    later: list[Any] = []
    for one in changes:
        (asked if seen[one[0]] < most else later).append(one)
        seen[one[0]] += 1
    return asked, later


def add_rule(
    cases: Cases,
    rule: str,
    ask: Callable[[list[tuple[str, list[Any]]], Any], Any],
    most: int = _ALL,
    *,
    in_all: int = _ALL,
    **fields: Any,
) -> None:
    """Register `<rule>-<operator>`: what a rule asks of all overloads of an operator, in one case.

    Args:
        most, in_all: the default layers ask no more than the first so many changes of each call, or of an overload;
            `<rule>-<operator>-rest`, with `--full`, asks the others.
        ask: (overloads with their changes, bench) -> None, or an Error.
        fields: of the cases.
    """
    operators: dict[str, list[tuple[str, list[Any]]]] = {}
    rest: dict[str, list[tuple[str, list[Any]]]] = {}
    for name, changes in sorted(asked_by(rule).items()):
        asked, later = first_of_each(changes, most)
        asked, later = asked[:in_all], asked[in_all:] + later
        operators.setdefault(packet_of(name), []).append((name, asked))
        if later:
            rest.setdefault(packet_of(name), []).append((name, later))
    for operator, overloads in operators.items():
        fields_of: dict[str, Any] = {"check": True, "may_be_missing": True, **fields}
        cases.add(f"{rule}-{operator}", partial(ask, overloads), **fields_of)
        if operator in rest:
            cases.add(f"{rule}-{operator}-rest", partial(ask, rest[operator]), full=True, quiet=True, **fields_of)


def calls_of(overloads: list[tuple[str, list[Any]]]) -> Iterator[tuple[str, Any, ChangedCall, Any]]:
    """Yield (name, overload, call, changes) of each call; what this torch does not have is left out.

    Raises:
        Refused: this torch has none of the overloads.
    """
    found = False
    for name, asked in overloads:
        func = overload(name)
        if func is None:
            continue
        found = True
        for sample, *changes in asked:
            call = samples_of(name)[sample]
            yield name, func, ChangedCall(func, call, changes, choices_of(name)), changes
    if not found:
        raise Refused(f"this torch has none of {', '.join(name for name, _ in overloads)}")
