"""Errors in units in the last place, of real and of complex results."""

from __future__ import annotations

from typing import Any

import torch

# Significant bits, and the exponent (of frexp) of the smallest normal number.
FORMATS = {torch.float16: (11, -13), torch.bfloat16: (8, -125), torch.float32: (24, -125), torch.float64: (53, -1021),
           torch.float8_e4m3fn: (4, -5), torch.float8_e5m2: (3, -13)}  # fmt: skip
COMPONENT = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}


def ulp_of(want: Any, dtype: Any) -> Any:
    """Return the distance of neighbours of `dtype` at each float64 value."""
    bits, lowest = FORMATS[dtype]
    _, exponent = torch.frexp(torch.where(torch.isfinite(want), want, torch.ones_like(want)))
    return torch.ldexp(torch.ones_like(want), torch.clamp(exponent, min=lowest) - bits)


def error_in_ulp(got: Any, want: Any, dtype: Any, scale: Any, magnitude: Any = None, coarse: Any = False) -> Any:
    """Return each element's error: 0 for equal infinities and two NaNs, infinite where one of the two is not finite.

    Args:
        magnitude: how large the numbers are that the formula adds: errors are in units of that, where it is larger.
        coarse: infinities and NaN are not told apart.
    """
    g = got.to(torch.float64)
    largest, smallest = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal
    unit = ulp_of(
        want if magnitude is None else torch.maximum(want.abs(), magnitude.expand_as(want).nan_to_num(largest)), dtype
    )
    # Rounding may carry a value over the largest number: both answers are right half a step beyond it.
    near_top = (want.abs() > largest * (1 - 2.0 ** (2 - FORMATS[dtype][0]))) & torch.isfinite(want)
    error = (g - want).abs()
    error = torch.clamp(error - scale, min=0) / unit
    error = torch.where(
        want.abs() > largest, torch.where(torch.isinf(g) & (g.sign() == want.sign()), 0.0, error), error
    )
    error = torch.where(near_top & torch.isinf(g) & (g.sign() == want.sign()), torch.zeros_like(error), error)
    # Subnormal results are flushed, in whole or on the way.
    error = torch.where((want.abs() < smallest) & (g.abs() <= 2 * smallest), torch.zeros_like(error), error)
    error = torch.where(torch.isnan(want) & torch.isnan(g), torch.zeros_like(error), error)
    error = torch.where(torch.isinf(want) & (g == want), torch.zeros_like(error), error)
    if coarse:
        either = ~torch.isfinite(g) & (~torch.isfinite(want) | (want.abs() > largest))
        error = torch.where(either, torch.zeros_like(error), error)
    if magnitude is not None:
        error = torch.where(magnitude.expand_as(want) <= largest, error, torch.zeros_like(error))
    return torch.nan_to_num(error, nan=float("inf"), posinf=float("inf"))


def equal(a: Any, b: Any) -> Any:
    """Compare two results as equal, NaN with NaN; types of eight bits are compared in float32."""
    a, b = (
        each.to(torch.float32) if each.dtype.itemsize == 1 and each.dtype.is_floating_point else each for each in (a, b)
    )
    return (a == b) | ((a != a) & (b != b))  # noqa: PLR0124


def complex_error(g: Any, w: Any, size: Any, component: Any, scale: Any) -> Any:
    """Error of complex results in units of the last place of the larger component."""
    unit = ulp_of(size, component)
    error = torch.clamp((g.to(torch.float64) - w).abs() - scale, min=0) / unit
    smallest, largest = torch.finfo(component).smallest_normal, torch.finfo(component).max
    error = torch.where((w.abs() < smallest) & (g == 0), torch.zeros_like(error), error)
    error = torch.where(torch.isnan(w) & torch.isnan(g), torch.zeros_like(error), error)
    error = torch.where((g == w), torch.zeros_like(error), error)
    error = torch.where((w.abs() > largest) & torch.isinf(g), torch.zeros_like(error), error)
    # C's rules for infinite and undefined complex results leave much open: only finite magnitudes are judged.
    finite = (
        ((torch.linalg.vector_norm(w, dim=-1, keepdim=True) <= largest / 4) & (size <= largest))
        .all(-1, keepdim=True)
        .expand_as(w)
    )
    return torch.where(finite, torch.nan_to_num(error, nan=float("inf"), posinf=float("inf")), torch.zeros_like(error))


def all_finite(inputs: Any, error: Any) -> Any:
    """Where the inputs are finite; everywhere, if inputs and result have other shapes."""
    where = torch.ones_like(error, dtype=torch.bool)
    for value in inputs.values():
        if (
            isinstance(value, torch.Tensor)
            and value.shape == error.shape
            and (value.is_complex() or value.is_floating_point())
        ):
            where &= torch.isfinite(value.to(torch.complex64) if value.is_complex() else value.to(torch.float32))
    return where
