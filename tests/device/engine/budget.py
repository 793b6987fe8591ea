"""How much a run asks: graph keys, cases or seconds in all. The core takes its part first, drawn cases the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, Sequence

DEFAULT_CASES, DEFAULT_KEYS, QUICK_KEYS = 8_000, 10_000, 2_000
# With --op, or with patterns of --only, all cases are of one operator, or of a few.
OPERATOR_CASES = 500
NO_LIMIT = 10**9


class Part(NamedTuple):
    """What a layer of the core has at most: cases, and the graph keys that they dispatch."""

    cases: int
    keys: int
    quick_cases: int
    quick_keys: int


# Reserved, not counted in each run: the drawn cases of a wheel must not depend on which other cases a process has.
# `python tests/sensitivity/core_keys.py` counts; suite/test_budget.py there holds these bounds against what it finds.
# They have room: drawn cases dispatch a twentieth more keys than they are counted for.
CORE: dict[str, Part] = {
    "smoke": Part(20, 30, 20, 30),
    "regressions": Part(350, 2_450, 20, 100),
    "scenarios": Part(650, 1_500, 0, 0),
}


@dataclass(frozen=True)
class Budget:
    """How many cases are drawn: as many as all limits allow.

    Attributes:
        seconds: what the whole run may take, 0 without such a limit: the clock ends it, not a number of cases.
        only: ids that are cases whatever the budget, and patterns: all else that is drawn fits one.
        after: the case behind which this process goes on.
        parts: how many processes share the cases.
    """

    cases: int = DEFAULT_CASES
    keys: int = DEFAULT_KEYS
    seconds: float = 0.0
    seed: int = 0
    only: tuple[str, ...] = ()
    after: str = ""
    parts: int = 1


def seconds_of(text: str) -> float:
    """Return the seconds of a time; 0 for an empty text. Raise ValueError where it is none.

    >>> seconds_of("90"), seconds_of("10m"), seconds_of("1h"), seconds_of("")
    (90.0, 600.0, 3600.0, 0.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found or not float(found.group(1)):
        if not text:
            return 0.0
        raise ValueError(f"--time takes seconds, or 10m, or 1h, not {text}")
    return float(found.group(1)) * {"": 1, "s": 1, "m": 60, "h": 3600}[found.group(2)]


def budget_of(option: Any) -> Budget:
    """Return the budget of the drawn cases that the options leave; raise ValueError where one cannot be used."""
    cases, keys, seconds = option("--cases"), option("--keys"), seconds_of(option("--time"))
    for name, value in (("--cases", cases), ("--keys", keys)):
        if value < 0:
            raise ValueError(f"{name} takes a number above 0, not {value}")
    quick, is_given = option("--quick"), bool(cases or keys or seconds)
    only = words(option("--only"))
    is_narrow = bool(option("--op") or only)  # what is drawn is of these, and nothing of the core is reserved
    if is_narrow:
        cases = cases or (NO_LIMIT if is_given else OPERATOR_CASES)
    cases = cases or (NO_LIMIT if is_given else DEFAULT_CASES)
    keys = keys or (NO_LIMIT if is_given else QUICK_KEYS if quick else DEFAULT_KEYS)
    layers = words(option("--layer"))
    for name, part in CORE.items():
        if not is_narrow and (not layers or name in layers):
            cases -= part.quick_cases if quick else part.cases
            keys -= part.quick_keys if quick else part.keys
    shard = option("--shard").partition("/")[2]
    return Budget(
        cases=max(cases, 0),
        keys=max(keys, 0),
        seconds=seconds,
        seed=option("--seed"),
        only=only,
        after=option("--after"),
        parts=int(shard) if shard.isdigit() else 1,
    )


def words(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return the words of a list with commas, or of an option that may be given again.

    >>> words("smoke, drawn"), words(["smoke", "drawn,scenarios"]), words("")
    (('smoke', 'drawn'), ('smoke', 'drawn', 'scenarios'), ())
    """
    texts = [given] if isinstance(given, str) else given
    return tuple(one.strip() for text in texts for one in text.split(",") if one.strip())
