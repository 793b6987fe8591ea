"""Layouts and values that the rules have besides: windows, slices of long rows, lazy views; words of many values."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..layouts import Layout
from ..overloads.described import VIEWS

_CUTS = tuple(complex(real, zero) for real in (-4.0, -1.0, -0.25, 0.25, 2.25) for zero in (0.0, -0.0))
# What fills an operand, in turn. `unit`: kinks, poles and ends of domains; the parts of complex numbers: truth is not
# that of one part.
FILLS: dict[str, tuple[Any, ...]] = {
    "unit": (0.0, -0.0, 1.0, -1.0, 0.5, -0.5),
    "every": (0.0, math.nan, 1.0, -1.0, math.inf, -0.0, -math.inf, 0.5),
    "axes": (1.0, 0.0, -2j, 1j, -3.0),
    "real": (1.0, -2.0, 3.0),
    "imaginary": (1j, -2j, 3j),
    "tenths": (0.1, 0.3, -0.3, 0.6, 0.7, -1.1, 0.9, 2.2),
    "ties": (0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.5, 0.0),
    "large": (1e4, -2e4, 12345.0, 3e4, -31000.0, 6e4, 1.0, 2049.0),
    "larger": (1e5, -2e6, 123456.7, 3e9, -1e12, 16777217.0, 1.0, 1e15),
    "low": (-20000.0, -20016.0, -19984.0, -20032.0, -20000.0),
    "small": (1e-4, -3e-4, 2e-3, 7e-5, -1e-3),
    "smaller": (1e-20, -3e-22, 2e-30, 7e-25, -1e-19),
    "counted": (0, 1, 2, 3, 7, 100, 31, 64),
    # Whole numbers that float64 does not hold, and that float32 does not; complex numbers on both sides of each cut.
    "vast": ((1 << 53) + 1, -(1 << 40) - 3, (1 << 24) + 1, 7, (1 << 62) + 5, -(1 << 31) - 9, 1, (1 << 33) + 3),
    "vast32": ((1 << 24) + 1, -(1 << 24) - 3, 7, (1 << 30) + 5, -(1 << 31) + 1, 1, (1 << 25) + 3),
    "cuts": (*_CUTS, *(complex(one.imag, one.real) for one in _CUTS)),
}


def _steps(shape: Any) -> tuple[int, ...]:
    """Return strides of windows: the last two dimensions walk through the same elements."""
    return (*(2,) * max(len(shape) - 2, 0), *(1,) * min(len(shape), 2))


def _reach(shape: Any) -> tuple[int, ...]:
    return (3 + sum((side - 1) * step for side, step in zip(shape, _steps(shape))),)


def _windows(base: torch.Tensor, shape: Any) -> torch.Tensor:
    return base.as_strided(shape, _steps(shape), 1)


# No place is written to through it: several places are one element.
VIEWS.setdefault("windows", Layout("windows", _reach, _windows, writable=False))
VIEWS.setdefault(
    "rows", Layout("rows", lambda shape: (*shape[:-1], shape[-1] + 5), lambda base, shape: base[..., 2:-3])
)
_BESIDE = 67
# In the middle of memory that holds what must not be read: rules.changes fills it.
VIEWS.setdefault(
    "amid",
    Layout(
        "amid",
        lambda shape: (math.prod(shape) + 2 * _BESIDE,),
        lambda base, shape: base[_BESIDE:-_BESIDE].view(shape),
    ),
)
# Views that a device has to read otherwise than they lie in memory: it is told so, and nothing is copied.
VIEWS.setdefault("conjugated", Layout("conjugated", tuple, lambda base, shape: base.conj()))
VIEWS.setdefault("negated", Layout("negated", tuple, lambda base, shape: torch._neg_view(base)))


def overlaps(shape: Any) -> bool:
    """Say whether windows of a shape share elements.

    >>> overlaps((4, 6)), overlaps((6,)), overlaps((6, 1))
    (True, False, False)
    """
    return len(shape) > 1 and min(shape[-2:]) > 1


def filled(word: str, like: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and dtype with the values of a word in turn.

    >>> filled("real", torch.zeros(2, 2)).tolist()
    [[1.0, -2.0], [3.0, 1.0]]
    """
    values = torch.tensor(FILLS[word], dtype=like.dtype)
    return values[torch.arange(like.numel()) % len(values)].reshape(like.shape)


def poison(base: torch.Tensor, view: torch.Tensor) -> None:
    """Fill what lies beside a view with NaN, or with the dtype's largest number."""
    kept = view.clone()
    if base.dtype.is_floating_point or base.dtype.is_complex:
        base.fill_(math.nan)
    else:
        base.fill_(1 if base.dtype == torch.bool else torch.iinfo(base.dtype).max)
    view.copy_(kept)
