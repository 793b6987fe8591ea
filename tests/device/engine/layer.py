"""The drawn layer: the cases of a budget, for pytest; what is wrong is shrunk, and told as a finding."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

import operators
import transforms
from device_suite.cases import Cases
from device_suite.compare import Error, Mismatch
from device_suite.known import Answer

from . import findings, shrink, trial
from .sampler import Case, Sampler, chosen
from .transformation import Call, Transformation

DEFAULT_CASES, DEFAULT_KEYS = 8_000, 10_000
QUICK_KEYS = 2_000
# What a session may take to shrink, and what one finding may.
_SHRINKING_SECONDS = 120.0


@dataclass(frozen=True)
class Budget:
    """How many cases are drawn: as many as all limits allow."""

    cases: int = DEFAULT_CASES
    keys: int = DEFAULT_KEYS
    seed: int = 0
    only: tuple[str, ...] = ()


class Drawn(Cases):
    """The cases of a budget; ids that are named are cases whatever the budget."""

    def __init__(self) -> None:
        super().__init__("drawn")
        self._left = _SHRINKING_SECONDS
        self.new_keys = 0

    def draw(self, budget: Budget) -> None:
        """Choose the cases.

        Raises:
            ValueError: an id names an operator or a transformation that is not there.
        """
        every, ways = operators.described(), transforms.known()
        named = [Case.of(text) for text in budget.only if text.count(":") == 2 and text.rpartition(":")[2].isdigit()]
        for case in named:
            if case.operator not in every or case.transformation not in ways:
                raise ValueError(f"{case}: no such operator or transformation")
        if not named:
            found = chosen(Sampler(every, ways, budget.seed), cases=budget.cases, most_keys=budget.keys)
            named = [drawn.case for drawn in found]
            self.new_keys = round(sum(drawn.new_keys for drawn in found))
        for case in named:
            self.add(str(case), partial(self._make, case), check=True, may_be_missing=True)

    def _make(self, case: Case, bench: Any) -> Error:
        operator, transformation = operators.described()[case.operator], transforms.known()[case.transformation]
        try:
            return trial.make(case, operator, transformation, bench)
        except trial.Wrong as wrong:
            raise WrongCase(wrong, partial(self._told, wrong.call, transformation, bench)) from None

    def _told(self, call: Call, transformation: Transformation, bench: Any) -> str:
        begun = time.monotonic()
        told = findings.told(call, transformation, bench, min(self._left, shrink.SECONDS))
        self._left = max(self._left - (time.monotonic() - begun), 0.0)
        return told


class WrongCase(Mismatch):
    """A wrong case. `answers`: each wrong answer. `told` shrinks it to a finding: what is known need not be."""

    def __init__(self, wrong: trial.Wrong, told: Callable[[], str]) -> None:
        super().__init__(str(wrong), wrong.error)
        self.answers = [Answer(str(one), findings.levels_of(one.call)) for one in (wrong, *wrong.others)]
        self.told = told
