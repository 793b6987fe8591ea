"""The drawn layer: the cases of a budget, for pytest; what is wrong is shrunk, and reported as a finding."""

from __future__ import annotations

import fnmatch
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
from .sampler import COMMON, MOST_CASES, Case, Sampler, chosen
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
        patterns = [text for text in budget.only if _is_pattern(text)]
        those = {name: one for name, one in every.items() if among is None or name in among}
        if budget.only:
            fitting = {
                (name, way) for name in those for way in ways if any(_may_fit(one, name, way) for one in patterns)
            }
            those = {name: one for name, one in those.items() if any(name == each for each, _ in fitting)}
            used = {COMMON, *(way for _, way in fitting)}
            ways = {name: way for name, way in ways.items() if name in used}
        found = chosen(
            Sampler(those, ways, budget.seed),
            cases=self._most_cases(budget) if those else 0,
            most_keys=budget.keys,
            after=budget.after if budget.seconds and is_id(budget.after) else "",
            wanted=(lambda text: any(fnmatch.fnmatchcase(text, one) for one in patterns)) if budget.only else None,
        )
        self.keys.update((str(drawn.case), drawn.new_keys) for drawn in found)
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
    """Return the drawn cases among ids and patterns: also those of a pattern that ends with a seed, `conv2d:*:17`.

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
    for text in texts:
        seed = text.rpartition(":")[2]
        if _is_pattern(text) and text.count(":") == 2 and seed.isdigit():
            named += [
                Case(name, way.name, int(seed))
                for name, operator in every.items()
                for way in ways.values()
                if _may_fit(text, name, way.name) and way.applies(operator)
            ]
    return named


def _is_pattern(text: str) -> bool:
    return bool(set(text) & set("*?["))


def _may_fit(pattern: str, operator: str, transformation: str) -> bool:
    """Say whether a case of this operator and transformation can have an id that fits the pattern.

    >>> _may_fit("exp:lay*:*", "exp", "layout"), _may_fit("exp*", "expm1", "out"), _may_fit("issue-*", "exp", "out")
    (True, True, False)
    """
    if pattern.count(":") == 2:
        return all(map(fnmatch.fnmatchcase, (operator, transformation), pattern.split(":")))
    loose = pattern.rstrip("0123456789")
    return fnmatch.fnmatchcase(f"{operator}:{transformation}:1", pattern if loose == pattern else f"{loose}*")


def is_id(text: str) -> bool:
    """Say whether a text has the form of a drawn case's id.

    >>> is_id("conv2d:gradient:17"), is_id("conv2d:*:17")
    (True, False)
    """
    return re.fullmatch(r"[^:*?\[]+:[^:*?\[]+:\d+", text) is not None
