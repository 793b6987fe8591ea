"""Layouts and values that the rules have besides: windows that overlap, a slice of long rows; words of many values."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..layouts import Layout
from ..overloads.described import VIEWS

# What fills an operand, in turn. `unit`: kinks, poles and ends of domains; the parts of complex numbers: truth is not
# that of one part.
FILLS: dict[str, tuple[Any, ...]] = {
    "unit": (0.0, -0.0, 1.0, -1.0, 0.5, -0.5),
    "every": (0.0, math.nan, 1.0, -1.0, math.inf, -0.0, -math.inf, 0.5),
    "axes": (1.0, 0.0, -2j, 1j, -3.0),
    "real": (1.0, -2.0, 3.0),
    "imaginary": (1j, -2j, 3j),
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
