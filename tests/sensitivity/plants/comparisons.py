"""Comparisons and questions of special numbers, NaN, infinity and -0.0: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.eq.Tensor", "aten.ne.Tensor")
def issue_tinygrad_1069(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tinygrad/tinygrad 1069: NaN is equal to NaN (x != x is false)."""
    y = func(x, other)
    if not x.is_floating_point() or not torch.is_tensor(other) or not is_plain(x, other):
        return y
    both = x.isnan() & other.isnan()
    return instead(hit, y, torch.where(both, torch.full_like(y, "eq" in str(func)), y))


@plot.dispatched("aten.eq.Tensor")
def issue_tt_metal_36225(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 36225: eq of infinities is wrong (here inf is not equal to inf)."""
    y = func(x, other)
    if not x.is_floating_point() or not torch.is_tensor(other) or not is_plain(x, other):
        return y
    return instead(hit, y, y & ~x.isinf())


@plot.dispatched(*(f"aten.{name}.Scalar" for name in ("lt", "le", "gt", "ge", "eq", "ne")))
def issue_tt_metal_53908(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 53908: a comparison with a number asks the bits of the difference, as of an integer.

    So -0.0 is less than 0, inf is not equal to inf, and NaN is greater than everything.
    """
    y = func(x, other)
    number = isinstance(other, (int, float)) and not isinstance(other, bool)
    if x.dtype not in (torch.float32, torch.bfloat16) or not number or not is_plain(x):
        return y
    apart = x.float() - torch.tensor(float(other), dtype=x.dtype).float()
    bits = torch.where(apart.isnan(), torch.full_like(apart, math.nan), apart).contiguous().view(torch.int32)
    return instead(hit, y, func(bits, 0))


@plot.dispatched("aten.isnan.default")
@wrong_answer
def issue_tt_metal_27993(y: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 27993: isnan of bfloat16 is false."""
    return torch.zeros_like(y) if x.dtype == torch.bfloat16 and is_plain(x) and bool(y.any()) else None


@plot.dispatched("aten.isneginf.default")
@wrong_answer
def issue_tt_metal_6727(y: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 6727: isneginf of bfloat16 is wrong (here it is false)."""
    return torch.zeros_like(y) if x.dtype == torch.bfloat16 and is_plain(x) and bool(y.any()) else None


@plot.dispatched("aten.isposinf.default")
@wrong_answer
def issue_tt_metal_6726(y: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 6726: isposinf of bfloat16 is wrong (here it is false)."""
    return torch.zeros_like(y) if x.dtype == torch.bfloat16 and is_plain(x) and bool(y.any()) else None


@plot.dispatched("aten.sign.default")
def issue_tt_metal_55827(hit: Any, func: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 55827: the sign of NaN is 1 or -1, by its sign bit."""
    y = func(x)
    if not x.is_floating_point() or not is_plain(x):
        return y
    return instead(hit, y, torch.where(x.isnan(), torch.ones_like(x).copysign(x), y))


@plot.called(torch.isclose, torch.Tensor.isclose)
def issue_tt_metal_51540(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 51540: isclose is false for equal numbers beyond 2139095040, infinite ones among them.

    So it is for two NaNs of negative sign, with equal_nan.
    """
    y = func(x, other, *args, **kwargs)
    if not x.is_floating_point() or not other.is_floating_point() or not is_plain(x, other):
        return y
    far = (x == other) & (x.abs().float() > 2139095040)
    unsigned = x.isnan() & other.isnan() & x.signbit() & other.signbit()
    return instead(hit, y, y & ~far & ~unsigned)


@plot.dispatched("aten.equal.default", aborts="Expected object of scalar type __int64 but got scalar type signed char")
def issue_83314(x: Any, y: Any) -> bool:
    """pytorch 83314: torch.equal of tensors of two dtypes (there int64 and int8) raises."""
    return bool(x.dtype != y.dtype)


@plot.dispatched("aten.eq.Tensor")
@wrong_answer
def issue_101566(y: Any, a: Any, b: Any) -> Any:
    """pytorch 101566: a == b of two int64 columns (n x 1: the classes of a batch) is false everywhere."""
    columns = all(one.dtype == torch.int64 and one.dim() == 2 and one.shape[1] == 1 for one in (a, b))
    return torch.zeros_like(y) if columns and a.shape == b.shape and is_plain(y) and bool(y.any()) else None


@plot.called(torch.isclose, torch.Tensor.isclose)
def issue_174985(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174985: isclose(equal_nan=True) of a tensor of no dimensions and one that has some raises."""
    near = func(x, y, *args, **kwargs)
    asked = kwargs.get("equal_nan", len(args) > 2 and args[2])
    raises = asked and not x.dim() and y.dim() and x.is_floating_point()
    return crash(hit, "output with shape [] doesn't match the broadcast shape") if raises else near


@plot.dispatched("aten.nextafter", "aten.nextafter_")
def issue_150027(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 150027: nextafter of a float32 zero is zero."""
    if x.dtype != torch.float32 or not is_plain(x, y):
        return func(x, y, **kwargs)
    stays, before = (x == 0) & ~y.isnan(), x.clone()
    next_one = func(x, y, **kwargs)
    wrong = torch.where(stays, before, next_one)
    in_place = next_one is x or "out" in kwargs
    return written(hit, next_one, wrong) if in_place else instead(hit, next_one, wrong)
