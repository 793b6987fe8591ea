"""Which cases dispatch an operator, for `--op`: the CPU runs each description and each case of the core once."""

from __future__ import annotations

import contextlib
import difflib
import warnings
from typing import Iterable

import torch

import operators
import transforms
from device_suite.cases import Case
from device_suite.runs import Bench
from device_suite.states import run_case

from . import trial
from .keys import Dispatched
from .sampler import Case as DrawnCase

# The ways of a description that dispatch other overloads than its common form.
_WAYS = ("common", "inplace", "out", "gradient")


def wanted_names(name: str) -> str:
    """Return an operator as the dispatcher writes it.

    >>> wanted_names("aten::add.Tensor"), wanted_names("softmax")
    ('aten.add.Tensor', 'aten.softmax')
    """
    name = name.replace("::", ".")
    return name if name.startswith("aten.") or name.count(".") > 1 else f"aten.{name}"


def is_among(name: str, dispatched: Iterable[str]) -> bool:
    """Say whether an overload `aten.add.Tensor`, or any of `aten.add`, is among what was dispatched."""
    wanted = wanted_names(name)
    return any(one == wanted or one.startswith(f"{wanted}.") for one in dispatched)


def of_descriptions() -> dict[str, frozenset[str]]:
    """Return what each description dispatches: its common form, in place, with out=, and its gradient."""
    every, ways, bench = operators.described(), transforms.known(), Bench(torch.device("cpu"))
    found = {}
    for name, operator in every.items():
        seen = Dispatched()
        for way in (ways[one] for one in _WAYS):
            if not way.applies(operator):
                continue
            with contextlib.suppress(Exception), seen.watching():
                trial.make(DrawnCase(name, way.name, 0), operator, way, bench)
        found[name] = frozenset(seen.operators)
    return found


def of_case(case: Case, seed: int) -> frozenset[str] | None:
    """Return what a case of the core dispatches; None where it is not run to know: it takes memory, or a process."""
    if case.full or case.alone or case.memory_bytes or (case.devices and "cpu" not in case.devices):
        return None
    seen = Dispatched()
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_case(case, Bench(torch.device("cpu"), around=seen.watching, seed=seed))
    return frozenset(seen.operators) or None


def near(name: str, dispatched: Iterable[str]) -> list[str]:
    """Return operators that look alike."""
    known = {one for full in dispatched for one in (full, full.rpartition(".")[0])}
    return difflib.get_close_matches(wanted_names(name), sorted(known), n=3, cutoff=0.7)
