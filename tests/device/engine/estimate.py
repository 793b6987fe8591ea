"""What a run will take: stated before the first case, of what some of its cases took here."""

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
from .keys import Dispatched
from .runs import Bench
from .sampler import Case
from .states import Refused

# Cases that are made to learn what one takes here: so many, and of a short run one in so many.
_TRIED, _SHARE = 48, 60
# What pytest takes to report a case.
_REPORT_SECONDS = 0.0007
# How many drawn cases a case of the core takes as long as, and one that may take more than a minute:
# `python tests/sensitivity/core_keys.py`.
CORE_COST = {"smoke": 12.0, "regressions": 2.0, "scenarios": 2.0}
LONG_COST, _LONG_SECONDS = 150.0, 60.0
# On a GPU others use it at the same time, and what is compiled is not alike: a third less or more.
_APART = 1.3
# One first call in so many may take long for a reason of its own: CUDA compiles a special function for up to 16 s.
_RARE = 8
# Odd calls, after which a process need not live: they are quick, and none is made before the first case is reported.
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


@dataclass(frozen=True)
class Cost:
    """What things take here, in seconds: a drawn case whose graphs are there, and a graph that is not."""

    case: float
    key: float = 0.0


def measured(cases: Sequence[Case], device: torch.device, clock: Callable[[], float] = time.perf_counter) -> Cost:
    """Return what one of some drawn cases takes on this machine: a sample of them is made.

    On the CPU two times: the first fills the pools of values, which later cases find filled. On another device every
    second one is made first, since libraries are loaded then, once and for all; then the rest two times: the first
    compiles their graphs.
    """
    safe = [case for case in cases if case.transformation not in _NOT_TRIED]
    share = _SHARE // 3 if device.type == "cpu" else _SHARE  # where no graph is compiled, more can be tried
    tried = safe[:: max(len(safe) // _TRIED, min(share, len(safe) // 4), 1)] or [
        Case(name, "common", 0) for name in ("add", "exp", "sum")
    ]
    if device.type == "cpu":
        bench = Bench(device)
        _made(tried, bench, clock)
        return Cost(sum(_made(tried, bench, clock)) / len(tried) + _REPORT_SECONDS)
    loading, counted = tried[1::2], tried[::2]
    met, bench = Dispatched(), Bench(device)
    _made(loading, bench, clock)
    _made(counted, Bench(torch.device("cpu"), around=met.watching), clock)
    first, again = (_made(counted, bench, clock) for _ in range(2))
    longer = sorted(one - two for one, two in zip(first, again))
    usual = longer[: len(longer) - len(longer) // _RARE]
    compiling = sum(usual) / len(usual) * len(counted)
    return Cost(sum(again) / len(counted) + _REPORT_SECONDS, max(compiling, 0.0) / max(len(met.keys), 1))


def _made(cases: Sequence[Case], bench: Bench, clock: Callable[[], float]) -> list[float]:
    """Make cases; return the seconds of each."""
    seconds = []
    for case in cases:
        begun = clock()
        with contextlib.suppress(Mismatch, Refused):
            trial.make(case, operators.described()[case.operator], transforms.known()[case.transformation], bench)
        bench.settle()
        seconds.append(clock() - begun)
    return seconds


def estimate(core: Sequence[Any], drawn: Sequence[Case], drawn_keys: float, device: torch.device) -> Estimate:
    """Return what cases will take on a device; on all but the CPU each key is compiled.

    Args:
        core: cases of the other layers.
        drawn_keys: what the drawn cases compile.
    """
    cost, keys, cases = measured(drawn, device), drawn_keys, float(len(drawn))
    for case in core:
        part = CORE.get(case.layer, CORE["scenarios"])
        keys += part.keys / part.cases
        usual = CORE_COST.get(case.layer, CORE_COST["scenarios"])
        cases += LONG_COST if case.limit_seconds > _LONG_SECONDS else usual
    seconds, apart = cases * cost.case + keys * cost.key, 1.0 if device.type == "cpu" else _APART
    return Estimate(len(core) + len(drawn), round(keys), round(seconds / apart, 1), round(seconds * apart, 1))
