"""The budget of a run, and what it will take: told before the first case."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass
from typing import Any

import torch

import operators
import transforms
from device_suite.compare import Mismatch
from device_suite.runs import Bench
from device_suite.states import Refused

from . import trial
from .layer import DEFAULT_CASES, DEFAULT_KEYS, QUICK_KEYS, Budget
from .sampler import Case

# Cases that are made once to learn what one takes here.
_TRIED = 120
# What pytest takes to tell of a case.
_TOLD_SECONDS = 0.0007
# What a graph takes to compile on a Mac, from quick to slow: assumed, measured nowhere.
KEY_SECONDS = (0.01, 0.03)
# More cases than fit into --time, since the estimate may be low: the clock ends the run.
_MORE = 1.5
_MOST_CASES = 400_000
_NO_LIMIT = 10**9


@dataclass(frozen=True)
class Estimate:
    """What a run will take: cases, keys, and seconds from low to high."""

    cases: int
    keys: int
    low_seconds: float
    high_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.cases} drawn cases, {self.keys} graph keys: "
            f"{self.low_seconds:.0f} to {self.high_seconds:.0f} s estimated"
        )


def seconds_of(text: str) -> float:
    """Return the seconds of a time; 0 for an empty text. Raise ValueError where it is none.

    >>> seconds_of("90"), seconds_of("10m"), seconds_of("1h"), seconds_of("")
    (90.0, 600.0, 3600.0, 0.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not found:
        if not text:
            return 0.0
        raise ValueError(f"--time takes seconds, or 10m, or 1h, not {text}")
    return float(found.group(1)) * {"": 1, "s": 1, "m": 60, "h": 3600}[found.group(2)]


def budget_of(option: Any) -> Budget:
    """Return the budget that the options ask for; raise ValueError where one cannot be used."""
    cases, keys, seconds = option("--cases"), option("--keys"), seconds_of(option("--time"))
    for name, value in (("--cases", cases), ("--keys", keys)):
        if value < 0:
            raise ValueError(f"{name} takes a number above 0, not {value}")
    only = tuple(one.strip() for one in option("--only").split(",") if one.strip())
    if seconds:
        each = measured_seconds([Case(name, "common", 0) for name in operators.described()])
        cases = cases or min(int(seconds / each * _MORE) + 1, _MOST_CASES)
        keys = keys or _NO_LIMIT
    if option("--quick"):
        keys = keys or QUICK_KEYS
    keys = keys or (_NO_LIMIT if cases else DEFAULT_KEYS)
    return Budget(cases or DEFAULT_CASES, keys, option("--seed"), only)


def measured_seconds(cases: list[Case]) -> float:
    """Return what one of some cases takes on this machine's CPU: a sample of them is made, twice.

    The first time fills the pools of values, which later cases find filled.
    """
    tried = cases[:: max(len(cases) // _TRIED, 1)]
    bench = Bench(torch.device("cpu"))
    begun = 0.0
    for _ in range(2):
        begun = time.perf_counter()
        for case in tried:
            with contextlib.suppress(Mismatch, Refused):
                trial.make(case, operators.described()[case.operator], transforms.known()[case.transformation], bench)
    return (time.perf_counter() - begun) / max(len(tried), 1) + _TOLD_SECONDS


def estimate(cases: list[Case], keys: int, device: torch.device) -> Estimate:
    """Return what the cases will take on a device; on all but the CPU each key is compiled."""
    each = measured_seconds(cases)
    low, high = (0.0, 0.0) if device.type == "cpu" else KEY_SECONDS
    return Estimate(len(cases), keys, len(cases) * each + keys * low, len(cases) * each + keys * high)
