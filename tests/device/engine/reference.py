"""The reference: what float64 on the CPU answers to a call, and what the CPU answers in the call's own dtypes."""

from __future__ import annotations

from functools import partial
from typing import Any, Callable

import torch

from .calls import perform
from .description import Operator, Row
from .drawing import Context, Placed, narrowed

_KEPT_ELEMENTS = 5_000
# The harness makes the same calls under hundreds of injected faults: it puts a dict here, and small answers are kept.
KEPT: dict[Any, Any] | None = None


class Gap(Exception):
    """This torch or this back end does not have what a call needs."""


class Truth:
    """The reference's answers to a call.

    Attributes:
        answers: those of float64, in order.
        forms: (shape, dtype) of what is to be written or derived.
        ask_own: makes the CPU's answers in the call's own dtypes.
    """

    def __init__(self, answers: list[Any], forms: list[Any], ask_own: Callable[[], list[Any]] | None = None) -> None:
        self.answers, self.forms, self.ask_own = answers, forms, ask_own
        self.own: Any = None


def truth_of(operator: Operator, row: Row, bench: Any) -> Truth | str:
    """Return the reference's answers, or why there are none."""
    key = operator.name, row.digits
    if KEPT is not None and key in KEPT:
        return KEPT[key]  # type: ignore[no-any-return]
    run = bench.reference()
    try:
        found: Any = reference(operator, row, run)
        found.ask_own = partial(_same, operator, row, bench, found)
        small = sum(one.numel() for one in found.answers if isinstance(one, torch.Tensor)) < _KEPT_ELEMENTS
    except NameError:  # a mistake in the case itself, no refusal
        raise
    except Exception as raised:
        found, small = f"the CPU raises {type(raised).__name__}: {raised}", True
    if KEPT is not None and small:
        KEPT[key] = found
    return found  # type: ignore[no-any-return]


def reference(operator: Operator, row: Row, run: Any) -> Truth:
    """Return what float64 answers to a plain call, in place, with out=, or derived."""
    context = Context(operator, row, precise=True)
    bases, form = context.bases(), row.levels["@form"]
    if form in ("call", "inplace"):
        return Truth(perform(operator, row, run, bases, []), [])
    call = Row(row.digits, row.number, {**row.levels, "@form": "call"})
    results = [one for one in perform(operator, call, run, bases, []) if isinstance(one, torch.Tensor)]
    if form == "grad":
        results = [one for one in results if one.is_floating_point() or one.is_complex()]
    forms = [(tuple(one.shape), narrowed(one.dtype, row)) for one in results]
    places = context.places(forms)
    wide = [(base.to(result.dtype), layout, shape) for (base, layout, shape), result in zip(places, results)]
    if form == "grad":
        return Truth(perform(operator, row, run, bases, wide), forms)
    for (base, layout, shape), result in zip(wide, results):
        if shape == tuple(result.shape):
            layout.cut(base, shape).copy_(result)
    written = [base if shape == tuple(result.shape) else result for (base, _, shape), result in zip(wide, results)]
    return Truth(written, forms)


def _same(operator: Operator, row: Row, bench: Any, truth: Truth) -> list[Any]:
    run = bench.same()
    run.seed(bench.seed)
    return perform(operator, row, run, *drawn(operator, row, truth))


def drawn(operator: Operator, row: Row, truth: Truth) -> tuple[list[Placed], list[Placed]]:
    context = Context(operator, row)
    return context.bases(), context.places(truth.forms) if truth.forms else []


def own_answers(truth: Truth) -> list[Any]:
    """Return the CPU's answers in the call's own dtypes, without any injected fault; raise Gap where it refuses."""
    if truth.own is None and truth.ask_own is not None:
        try:
            truth.own = read(truth.ask_own())
        except Exception as raised:
            raise Gap(f"this torch's CPU raises {type(raised).__name__}: {raised}") from raised
    return truth.own  # type: ignore[no-any-return]


def read(answers: list[Any]) -> list[tuple[Any, str]]:
    """Return each answer on the host, with where it lay."""
    return [(one.detach().cpu(), one.device.type) if isinstance(one, torch.Tensor) else (one, "") for one in answers]
