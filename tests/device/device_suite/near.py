"""Beside the CPU's own answers of the same dtypes: for operands of which a float64 reference would take too long."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from .compare import Error, Leaf, Mismatch, kept, read_back


def demand_near(act: Callable[..., Any], operands: Any, bench: Any, share: float) -> Error:
    """Return the largest error over what an act answers of copies of some operands.

    Args:
        share: of the largest number of an answer: how far each of its numbers may be off.

    Raises:
        Mismatch: an answer is not there, lies elsewhere, has another form, or is further off.
    """
    found, wanted = (_answers(act, operands, run) for run in (bench.device_run(), bench.same()))
    if len(found) != len(wanted):
        raise Mismatch(f"{len(found)} answers, the CPU gives {len(wanted)}")
    errors = [_error(got, want, bench.device.type, share) for got, want in zip(found, wanted)]
    return max(errors, key=lambda one: one.max_rel_scaled, default=Error())


def _answers(act: Callable[..., Any], operands: Any, run: Any) -> list[Leaf]:
    copies = run.copy(operands)
    with run:
        leaves = read_back(act(*run.bring(copies)))
    return kept(leaves)  # outside of the run: it is no call of the case


def _error(got: Leaf, want: Leaf, device: str, share: float) -> Error:
    one, other = got.value, want.value
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        if type(one) is not type(other) or one != other:
            raise Mismatch(f"{got.path}: {one!r:.80}, the CPU gives {other!r:.80}")
        return Error()
    if got.device != device:
        raise Mismatch(f"{got.path}: lies on {got.device}, not on {device}")
    if one.dtype != other.dtype or one.shape != other.shape:
        form = f"{other.dtype} {tuple(other.shape)}"
        raise Mismatch(f"{got.path}: {one.dtype} {tuple(one.shape)}, the CPU gives {form}")
    if not one.numel():
        return Error()
    off, scale = (float(x.abs().max()) for x in (one.double() - other.double(), other.double()))
    error = Error(off, off / scale if scale else 0.0, share * scale)
    if not off <= error.bound or math.isinf(off):
        raise Mismatch(f"{got.path}: off by {off:.3g}, the CPU's largest number is {scale:.3g}", error)
    return error
