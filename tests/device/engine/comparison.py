"""Judges one answer: within the bound of float64, or of the CPU's own answer in the call's dtype."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from .answers import says_missing
from .compare import Error, Leaf, Mismatch, compare_leaf, is_far, largest
from .description import Operator, Row
from .drawing import narrowed
from .reference import Gap, own_answers

# Sums are accumulated in float32 or broader whatever the dtype: a longer one costs half precision next to nothing.
_MOST_TERMS = {torch.float16: 4, torch.bfloat16: 4}
_MOST_FACTOR = {torch.float16: 16.0, torch.bfloat16: 6.0}


def judge(operator: Operator, row: Row, bench: Any, truth: Any, answer: Any) -> Error:
    """Return the error of one answer: within bounds of float64, or of the CPU in the row's own dtype.

    The second opinion is for operators that round between their parts, and for what CPU builds do by design.
    """
    if isinstance(answer, Exception):
        if says_missing(answer) and bench.device.type != "cpu":
            raise Gap(f"not on this device: {answer}")
        own_answers(truth)  # what this torch's CPU refuses too is a gap
        raise Mismatch(f"raised {type(answer).__name__}: {answer}")
    quick = _quick(operator, row, bench, truth, answer)
    if quick is not None:
        return quick
    worst = Error()
    if len(answer) != len(truth.answers):
        raise Mismatch(f"{len(answer)} answers, the CPU gives {len(truth.answers)}")
    for number, (got, want) in enumerate(zip(answer, truth.answers)):
        path = f"answer {number}"

        def own(path: str = path, number: int = number) -> Leaf:
            return Leaf(path, own_answers(truth)[number][0])

        _check_form(path, row, bench, got, want, own)
        worst = max(worst, _leaf(operator, row, Leaf(path, got[0]), want, own), key=lambda one: one.max_rel_scaled)
    return worst


def _quick(operator: Operator, row: Row, bench: Any, truth: Any, answer: list[Any]) -> Error | None:
    """Return the error where every answer is plainly right, None where a closer look is needed."""
    if len(answer) != len(truth.answers):
        return None
    off = scale = bound = 0.0
    for (got, device), want in zip(answer, truth.answers):
        if not isinstance(got, torch.Tensor) or not isinstance(want, torch.Tensor):
            if got != want:
                return None
            continue
        if got.shape != want.shape or got.dtype != narrowed(want.dtype, row) or device != bench.device.type:
            return None
        if want.dtype not in (torch.float64, torch.complex128):
            if not torch.equal(got, want):
                return None
        elif got.numel():
            off, scale = largest(got - want), largest(want)
            bound = _bound(operator, row, got.dtype, scale)
            if not off <= bound or math.isinf(off):
                return None
    return Error(off, off / scale if scale else 0.0, bound)


def _bound(operator: Operator, row: Row, dtype: torch.dtype, scale: float) -> float:
    return (
        factor_of(operator, row)
        * torch.finfo(dtype).eps
        * math.sqrt(terms_of(operator, row))
        * max(scale, _floor(operator, row))
    )


def factor_of(operator: Operator, row: Row) -> float:
    return min(operator.factor, _MOST_FACTOR.get(row.levels["@dtype"], operator.factor))


def _floor(operator: Operator, row: Row) -> float:
    return max(operator.floor, operator.wide_floor) if row.levels["@values"] == "wide" else operator.floor


def terms_of(operator: Operator, row: Row) -> int:
    count = math.prod(row.shape(operator)) if operator.terms == "all" else operator.terms
    return int(min(max(count, 1), _MOST_TERMS.get(row.levels["@dtype"], count + 1)))


def _check_form(path: str, row: Row, bench: Any, got: Any, want: Any, own: Callable[[], Leaf]) -> None:
    value, device = got
    if not isinstance(value, torch.Tensor) or not isinstance(want, torch.Tensor):
        return
    if device != bench.device.type:
        raise Mismatch(f"{path}: lies on {device}, not on {bench.device.type}")
    if value.dtype != narrowed(want.dtype, row) and value.dtype != own().value.dtype:
        raise Mismatch(f"{path}: dtype {value.dtype}, the CPU gives {own().value.dtype}")


def _leaf(operator: Operator, row: Row, got: Leaf, want: Any, own: Callable[[], Leaf]) -> Error:
    """Return the error of one answer; the CPU's own is computed only where float64's is far."""
    bounds: Any = {"terms": terms_of(operator, row), "factor": factor_of(operator, row), "floor": _floor(operator, row)}

    def opinion() -> Leaf | None:
        """Some CPU kernels write an out= that is not dense as if it were: that is no measure of rounding."""
        mine = own()
        return None if row.levels["@form"] == "out" and is_far(mine.value, want) else mine

    try:
        return compare_leaf(got, Leaf(got.path, want), opinion, **bounds)
    except Mismatch as wrong:
        try:
            return compare_leaf(got, own(), own, **bounds)
        except Mismatch:
            raise wrong from None
