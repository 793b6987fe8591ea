"""What a run will take: told before the first case."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import torch

import operators
import transforms

from . import trial
from .budget import CORE
from .compare import Mismatch
from .runs import Bench
from .sampler import Case
from .states import Refused

# Cases that are made once to learn what one takes here.
_TRIED = 160
# What pytest takes to tell of a case.
_TOLD_SECONDS = 0.0007
# What a graph takes to compile on a Mac, from quick to slow: assumed, measured nowhere.
KEY_SECONDS = (0.01, 0.03)
# How many drawn cases a case of the core takes as long as: `python tests/sensitivity/core_keys.py`.
CORE_COST = {"smoke": 1.0, "regressions": 12.0, "scenarios": 2.2}
# Odd calls, after which a process need not live: they are quick, and none is made before the first case is told.
_NOT_TRIED = ("refusal", "alias", "memory")


@dataclass(frozen=True)
class Estimate:
    """What a run will take: cases, keys, and seconds from low to high."""

    cases: int
    keys: int
    low_seconds: float
    high_seconds: float

    def __str__(self) -> str:
        low, high = f"{self.low_seconds:.0f}", f"{self.high_seconds:.0f}"
        return f"{self.cases} cases, {self.keys} graph keys: {low if low == high else f'{low} to {high}'} s estimated"


def measured_seconds(cases: Sequence[Case], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return what one of some drawn cases takes on this machine's CPU: a sample of them is made, twice.

    The first time fills the pools of values, which later cases find filled.
    """
    safe = [case for case in cases if case.transformation not in _NOT_TRIED]
    tried = safe[:: max(len(safe) // _TRIED, 1)] or [Case(name, "common", 0) for name in ("add", "exp", "sum")]
    bench = Bench(torch.device("cpu"))
    begun = 0.0
    for _ in range(2):
        begun = clock()
        for case in tried:
            with contextlib.suppress(Mismatch, Refused):
                trial.make(case, operators.described()[case.operator], transforms.known()[case.transformation], bench)
    return (clock() - begun) / len(tried) + _TOLD_SECONDS


def estimate(core: Sequence[Any], drawn: Sequence[Case], drawn_keys: float, device: torch.device) -> Estimate:
    """Return what cases will take on a device; on all but the CPU each key is compiled.

    Args:
        core: cases of the other layers.
        drawn_keys: what the drawn cases compile.
    """
    each, keys = measured_seconds(drawn), drawn_keys
    seconds = len(drawn) * each
    for case in core:
        part = CORE.get(case.layer, CORE["scenarios"])
        keys += part.keys / part.cases
        seconds += CORE_COST.get(case.layer, CORE_COST["scenarios"]) * each
    low, high = (0.0, 0.0) if device.type == "cpu" else KEY_SECONDS
    return Estimate(
        len(core) + len(drawn), round(keys), round(seconds + keys * low, 1), round(seconds + keys * high, 1)
    )
