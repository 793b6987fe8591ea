"""Further references, asked after a mismatch alone: does the operator leave this answer open?

The CPU is asked again with operands that differ in their last place. Where its own answer then moves as far as the
device's is off, float64 is no reference for this call: a border was met, a matrix is singular, values tie.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from .reference import Truth, read
from .transformation import Call, Transformation

# Of the operands' last place, both ways.
_STEPS = (1.0, -1.0, 4.0)
_WIDER, _ROUNDINGS = 4.0, 16.0


def leave_open(call: Call, truth: Truth, transformation: Transformation, bench: Any, answer: Any) -> bool:
    """Say whether the device's answer is one that the CPU gives, or nearly, where its operands move by so little."""
    if isinstance(answer, Exception):
        return False
    moved = [_moved_answers(call, truth, transformation, bench, units) for units in (0.0, *_STEPS)]
    found = [one for one in moved if one is not None and len(one) == len(answer)]
    return len(found) > 1 and all(
        _is_among(got, [one[number][0] for one in found]) for number, (got, _) in enumerate(answer)
    )


def _is_among(got: Any, others: list[Any]) -> bool:
    """Say whether each number lies where the CPU's answers lie, four times as far apart, but for rounding."""
    if not isinstance(got, torch.Tensor):
        return any(got == one for one in others)
    if any(not isinstance(one, torch.Tensor) or (one.shape, one.dtype) != (got.shape, got.dtype) for one in others):
        return False
    if not got.numel():
        return True
    eps = torch.finfo(got.dtype).eps if got.dtype.is_floating_point or got.dtype.is_complex else 0.0
    wide = [_real(one) for one in (got, *others)]
    value, every = wide[0], torch.stack(wide[1:])
    some, all_ = every.isnan().any(0), every.isnan().all(0)
    low, high = every.nan_to_num(math.inf, math.inf, -math.inf).min(0)[0], every.nan_to_num(-math.inf).max(0)[0]
    # Where all are one infinity, inf - inf is NaN: there is no slack.
    slack = (_WIDER * (high - low) + _ROUNDINGS * eps * torch.maximum(low.abs(), high.abs())).nan_to_num(0.0)
    within = (value >= low - slack) & (value <= high + slack) & ~all_
    return bool((within | (value.isnan() & some)).all())


def _real(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x.resolve_conj()).double() if x.is_complex() else x.double()


def _moved_answers(call: Call, truth: Truth, transformation: Transformation, bench: Any, units: float) -> Any:
    run = bench.same()
    run.seed(bench.seed)
    nudge = _nudging(units)
    try:
        return read(transformation.perform(_Nudged(call, nudge), run, truth))  # type: ignore[arg-type]
    except Exception:
        return None


class _Nudged:
    """A call whose operands are moved by their last place."""

    def __init__(self, call: Call, nudge: Any) -> None:
        self._call, self._nudge = call, nudge

    def __getattr__(self, name: str) -> Any:
        return getattr(self._call, name)

    def changed(self, **levels: Any) -> Any:
        return _Nudged(self._call.changed(**levels), self._nudge)

    def bases(self, run: Any) -> list[Any]:
        return [(self._nudge(base), layout, shape) for base, layout, shape in self._call.bases(run)]


def _nudging(units: float) -> Any:
    def nudge(base: Any) -> Any:
        if isinstance(base, (tuple, list)):
            return type(base)(nudge(one) for one in base)
        if not isinstance(base, torch.Tensor) or not base.is_floating_point() or not base.numel():
            return base
        pattern = (torch.arange(base.numel()) % 3 - 1).reshape(base.shape)
        return (base.double() * (1 + units * torch.finfo(base.dtype).eps * pattern)).to(base.dtype)

    return nudge
