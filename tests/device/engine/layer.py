"""The drawn layer: the cases of a budget, for pytest; what is wrong is shrunk, and reported as a finding."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import Any, Callable, Sequence

import torch

import operators
import transforms

from . import findings, trial
from .budget import Budget
from .cases import Cases
from .compare import Error, Mismatch
from .estimate import measured
from .known import Answer
from .sampler import MOST_CASES, Case, Sampler, chosen
from .transformation import Transformation

# What a session may take to shrink.
_SHRINKING_SECONDS = 120.0
# More cases than fit into --time, since what one takes is measured on a few: the clock ends the run.
_MORE = 2.0


class Drawn(Cases):
    """The cases of a budget; ids that are named are cases whatever the budget."""

    def __init__(self) -> None:
        super().__init__("drawn")
        self._left = _SHRINKING_SECONDS
        self.keys: dict[str, float] = {}

    def draw(self, budget: Budget, among: frozenset[str] | None = None) -> None:
        """Choose the cases; `among`: only of these operators.

        Raises:
            ValueError: an id names what is not there.
        """
        every, ways = operators.described(), transforms.known()
        named = named_cases(budget.only)
        self.keys = {str(case): ways[case.transformation].graphs for case in named}
        if not named:
            those = {name: one for name, one in every.items() if among is None or name in among}
            found = chosen(
                Sampler(those, ways, budget.seed),
                cases=self._most_cases(budget),
                most_keys=budget.keys,
                after=budget.after if budget.seconds and is_id(budget.after) else "",
            )
            self.keys = {str(drawn.case): drawn.new_keys for drawn in found}
        for text in self.keys:
            self.add(text, partial(self._make, Case.of(text)), check=True, may_be_missing=True)

    @staticmethod
    def _most_cases(budget: Budget) -> int:
        if not budget.seconds:
            return budget.cases
        each = measured((), torch.device("cpu")).case / budget.parts
        return min(budget.cases, int(budget.seconds / each * _MORE) + 1, MOST_CASES)

    def _make(self, case: Case, bench: Any) -> Error:
        operator, transformation = operators.described()[case.operator], transforms.known()[case.transformation]
        try:
            return trial.make(case, operator, transformation, bench)
        except trial.Wrong as wrong:
            raise WrongCase(wrong, partial(self._found, wrong, transformation, bench)) from None

    def _found(self, wrong: trial.Wrong, transformation: Transformation, bench: Any) -> findings.Found:
        begun = time.monotonic()
        found = findings.found(wrong, transformation, bench, min(self._left, findings.SECONDS))
        self._left = max(self._left - (time.monotonic() - begun), 0.0)
        return found


class WrongCase(Mismatch):
    """A wrong case. `answers`: each wrong answer; `found` shrinks it to a finding: what is known need not be."""

    def __init__(self, wrong: trial.Wrong, found: Callable[[], findings.Found]) -> None:
        super().__init__(str(wrong), wrong.error)
        self.answers = [Answer(str(one), findings.levels_of(one.call)) for one in (wrong, *wrong.others)]
        self.found = found


def named_cases(texts: Sequence[str]) -> list[Case]:
    """Return the drawn cases among ids and patterns.

    Raises:
        ValueError: an id names an operator or a transformation that is not there, or that do not go together.
    """
    every, ways = operators.described(), transforms.known()
    named = [Case.of(text) for text in texts if is_id(text)]
    for case in named:
        if case.operator not in every or case.transformation not in ways:
            raise ValueError(f"{case}: no such operator or transformation")
        if not ways[case.transformation].applies(every[case.operator]):
            raise ValueError(f"{case}: {case.operator} is not used so")
    return named


def is_id(text: str) -> bool:
    """Say whether a text has the form of a drawn case's id.

    >>> is_id("conv2d:gradient:17"), is_id("conv2d:*:17")
    (True, False)
    """
    return re.fullmatch(r"[^:*?\[]+:[^:*?\[]+:\d+", text) is not None
