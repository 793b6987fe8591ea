"""What each rule asks of each overload: `asked.json`, made by `tests/sensitivity/rule_calls.py`."""

from __future__ import annotations

import functools
import json
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


@functools.lru_cache(maxsize=None)
def stored() -> dict[str, Any]:
    """Return `samples`: the calls of each overload, and for each rule the changes that are asked of them."""
    return json.loads(ASKED.read_text(encoding="utf-8")) if ASKED.is_file() else {}  # type: ignore[no-any-return]


def packet_of(name: str) -> str:
    """Return the operator of an overload, in place or not.

    >>> packet_of("add_.Tensor"), packet_of("__rshift__.Tensor"), packet_of("index_put_.default")
    ('add', '__rshift__', 'index_put')
    """
    packet = name.partition(".")[0]
    return packet if packet.endswith("__") else packet.rstrip("_")


def add_rule(cases: Cases, rule: str, ask: Callable[[list[tuple[str, list[Any]]], Any], Any], **fields: Any) -> None:
    """Register `<rule>-<operator>`: what a rule asks of all overloads of an operator, in one case.

    Args:
        ask: (overloads with their changes, bench) -> None, or an Error.
        fields: of the cases.
    """
    operators: dict[str, list[tuple[str, list[Any]]]] = {}
    for name, changes in sorted(stored().get(rule, {}).items()):
        operators.setdefault(packet_of(name), []).append((name, changes))
    for operator, overloads in operators.items():

        def asked(bench: Any, overloads: Any = overloads) -> Any:
            return ask(overloads, bench)

        cases.add(f"{rule}-{operator}", asked, check=True, may_be_missing=True, **fields)


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
            call = stored()["samples"][name][sample]
            yield name, func, ChangedCall(func, call, changes, choices_of(name)), changes
    if not found:
        raise Refused(f"this torch has none of {', '.join(name for name, _ in overloads)}")
