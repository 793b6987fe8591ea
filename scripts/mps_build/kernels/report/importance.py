"""Findings in the order of what they mean to a user: ordinary inputs first, then accuracy, then extreme inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

# A number is ordinary from a thousandth to ten thousand, and 0; the judge chooses its witness by the same limits.
_ORDINARY = (1e-3, 1e4)
_CLOSE = 0.01  # a result that is off by less than this part of itself is inaccurate, not wrong
_NUMBER = re.compile(r"nan|inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?", re.IGNORECASE)


class Importance(IntEnum):
    """What a finding means to a user, the gravest first."""

    SAFETY = 0
    ORDINARY = 1
    ACCURACY = 2
    EXTREME = 3


def importance(outcome: str, verdict: Mapping[str, Any]) -> Importance:
    """Return how much a finding matters, by its outcome and its witness.

    >>> importance("wrong", {"inputs": {"x": "1000.0", "y": "0.1"}, "where": {"got": "-1e-05", "want": "0.0999"}}).name
    'ORDINARY'
    >>> importance("wrong", {"inputs": {"x": "-3.0", "y": "-inf"}}).name
    'EXTREME'
    >>> importance("wrong", {"inputs": {"x": "0.25"}, "where": {"got": "0.9990", "want": "0.9989"}}).name
    'ACCURACY'
    """
    reason = str(verdict.get("reason", ""))
    if outcome in ("race", "out_of_bounds", "crashed", "timeout") or (outcome == "known" and "race" in reason):
        return Importance.SAFETY
    numbers = [float(each) for value in verdict.get("inputs", {}).values() for each in _NUMBER.findall(str(value))]
    if not all(each == 0 or _ORDINARY[0] <= each <= _ORDINARY[1] for each in numbers):
        return Importance.EXTREME
    where = verdict.get("where", {})
    got, want = (_float(where.get(key)) for key in ("got", "want"))
    if got is not None and want is not None and abs(got - want) <= _CLOSE * abs(want):
        return Importance.ACCURACY
    return Importance.ORDINARY


def _float(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
