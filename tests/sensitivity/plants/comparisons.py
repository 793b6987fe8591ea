"""Comparisons and questions of special numbers, NaN, infinity and -0.0: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, wrong_answer

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
