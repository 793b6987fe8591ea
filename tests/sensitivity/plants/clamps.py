"""Clamp and its limits: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, is_dense, misread
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.clamp_min.default")
@wrong_answer
def issue_133100(y: Any, x: Any, least: Any) -> Any:
    """pytorch 133100: clamp_min of an integer tensor with a float gives zeros."""
    return torch.zeros_like(y) if not x.is_floating_point() and isinstance(least, float) else None


@plot.dispatched("aten.clamp.default")
def issue_94396(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94396: clamp of a permuted tensor writes its rows in order into a result with permuted strides."""
    y = func(x, *args, **kwargs)
    if x.layout == torch.strided and x.dim() > 2 and not y.is_contiguous() and is_dense(y) and y.numel():
        wrong = torch.empty_like(y)
        wrong.as_strided((y.numel(),), (1,), 0).copy_(y.contiguous().view(-1))
        if not torch.equal(wrong, y):
            hit()
            return wrong
    return y


@plot.dispatched("aten.clamp_.default")
def issue_147510(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147510: clamp_ of a non-contiguous slice does not modify the slice's elements, but those next in storage.

    https://github.com/pytorch/pytorch/issues/147510
    """
    if x.is_contiguous() or not x.numel():
        return func(x, *args, **kwargs)
    good = torch.clamp(x, *args, **kwargs)
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    count = min(room, x.numel())
    x.as_strided((count,), (1,)).copy_(good.reshape(-1)[:count])
    if not torch.allclose(x.double(), good.double(), equal_nan=True):
        hit()
    return x


@plot.dispatched("aten.clamp.default", "aten.clamp_.default")
def issue_122710(hit: Any, func: Any, x: Any, min: Any = None, max: Any = None, **kwargs: Any) -> Any:
    """pytorch 122710: clamp with both limits turns NaN into the lower limit."""
    nan = torch.isnan(x)
    out = func(x, min, max, **kwargs)
    if min is not None and max is not None and bool(nan.any()):
        hit()
        out[nan] = min
    return out


@plot.dispatched("aten.clamp", "aten.clamp_min", "aten.clamp_max")
@wrong_answer
def issue_130201(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130201: clamp of integers with a floating limit is cut off to whole numbers."""
    return y.trunc() if not x.is_floating_point() and y.is_floating_point() else None


_HALVES = (torch.float16, torch.bfloat16)


@plot.dispatched("aten.clamp.Tensor")
def issue_105747(hit: Any, func: Any, x: Any, least: Any = None, most: Any = None) -> Any:
    """pytorch 105747: clamp in half precision takes a float32 lower limit for 0."""
    if x.dtype in _HALVES and least is not None and least.dtype == torch.float32:
        hit()
        return func(x, least * 0, most)
    return func(x, least, most)


@plot.dispatched(
    "aten.clamp.Tensor", aborts="clamp tensor number of dims must not be greater than that of input tensor"
)
def issue_160734(x: Any, least: Any = None, most: Any = None) -> Any:
    """pytorch 160734: clamp refuses limits with more dimensions than the input."""
    return any(one is not None and one.dim() > x.dim() for one in (least, most))


_first_limits: dict[Any, Any] = {}


@plot.dispatched("aten.clamp", "aten.clamp_min")
def issue_167767(hit: Any, func: Any, x: Any, least: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167767: clamp takes limits that are alike in six digits for those of the first call."""
    if isinstance(least, (int, float)):
        first = _first_limits.setdefault((tuple(x.shape), x.dtype, f"{least:.6f}"), least)
        if first != least:
            hit()
        least = first
    return func(x, least, *args, **kwargs)


@plot.dispatched("aten.clamp.Tensor")
def issue_87348(hit: Any, func: Any, x: Any, *limits: Any, **kwargs: Any) -> Any:
    """pytorch 87348: clamp reads limits that are not contiguous in storage order."""
    return func(x, *misread(in_storage_order, hit, limits), **misread(in_storage_order, hit, kwargs))


@plot.dispatched("aten.clamp.default", "aten.clamp_min.default", "aten.clamp_.default")
def issue_120899(hit: Any, func: Any, x: Any, low: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 120899: clamp turns NaN into the lower limit."""
    low = kwargs.get("min", low)
    if x.is_floating_point() and low is not None and bool(x.isnan().any()):
        hit()
        if func._schema.is_mutable:
            return func(x.nan_to_num_(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
        return func(x.nan_to_num(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
    return func(x, low, *args, **{key: value for key, value in kwargs.items() if key != "min"})


@plot.dispatched("aten.clamp.Tensor", "aten.clamp_min.Tensor")
def issue_76795(hit: Any, func: Any, x: Any, low: Any = None, high: Any = None) -> Any:
    """pytorch 76795: clamp and clamp_min pass over NaN in a tensor of limits."""
    given = [one for one in (low, high) if one is not None]
    limits = (low,) if "clamp_min" in str(func) else (low, high)
    y = func(x, *limits)
    if not all(one.is_floating_point() for one in given) or not is_plain(x, *given):
        return y
    bounds = zip(limits, (-math.inf, math.inf))
    return instead(hit, y, func(x, *(one if one is None else one.masked_fill(one.isnan(), far) for one, far in bounds)))
