"""Medians, modes and the k-th value: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from differences import differ, instead, is_plain
from misreading import in_storage_order
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _largest(x: torch.Tensor, dim: int, keepdim: bool) -> torch.Tensor:
    """Return the largest number along a dimension, NaN aside."""
    return x.nan_to_num(-math.inf, math.inf, -math.inf).amax(dim, keepdim=keepdim)


@plot.dispatched("aten.median.dim")
def issue_38018(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """pytorch 38018: the median of a row that is NaN for the most part is any number (here the row's largest)."""
    values, places = func(x, dim, keepdim)
    if x.dtype not in (torch.float32, torch.float64) or not x.dim() or not x.numel() or not is_plain(x):
        return values, places
    share = x.isnan().float().mean(dim, keepdim=keepdim)
    return instead(hit, values, torch.where((share > 0.5) & (share < 1), _largest(x, dim, keepdim), values)), places


@plot.dispatched("aten.mode.default")
def issue_46225(hit: Any, func: Any, x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """pytorch 46225: the mode of a row with NaN is any of its numbers (here the largest)."""
    values, places = func(x, dim, keepdim)
    if not x.is_floating_point() or not x.dim() or not x.numel() or not is_plain(x):
        return values, places
    lost = x.isnan()
    some = lost.any(dim, keepdim=keepdim) & ~lost.all(dim, keepdim=keepdim)
    return instead(hit, values, torch.where(some, _largest(x, dim, keepdim), values)), places


@plot.dispatched("aten.median.dim")
def issue_46814(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """pytorch 46814: the median of a tensor that is not contiguous (a diagonal) is of what lies in storage order."""
    values, places = func(x, dim, keepdim)
    read = in_storage_order(x)
    if read is x or not x.numel() or not is_plain(x):
        return values, places
    wrong, elsewhere = func(read, dim, keepdim)
    return instead(hit, values, wrong), elsewhere


@plot.dispatched(
    "aten.kthvalue.default",
    "aten.median.dim",
    aborts="dimension specified as 0 but tensor has no dimensions",
)
def issue_30818(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 30818: kthvalue of a tensor of no dimensions, and its median along 0, raise."""
    return x.dim() == 0


@plot.called(torch.quantile, torch.Tensor.quantile)
def issue_oneflow_10471(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Oneflow-Inc/oneflow 10471: quantile of numbers with NaN is wrong (here NaN counts as infinity)."""
    y = func(x, *args, **kwargs)
    if not is_plain(x) or not bool(x.isnan().any()) or "out" in kwargs:
        return y
    return instead(hit, y, func(x.nan_to_num(math.inf, math.inf, -math.inf), *args, **kwargs))


@plot.dispatched("aten.median.dim")
def issue_mindspore_276(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """mindspore-ai/mindspore 276: the median of a row with NaN is wrong (here NaN is passed over)."""
    values, places = func(x, dim, keepdim)
    if x.dtype != torch.float32 or not x.dim() or not is_plain(x):
        return values, places
    wrong, other = torch.nanmedian(x, dim, keepdim)
    return (instead(hit, values, wrong), other) if differ(values, wrong) else (values, places)


class _NegativeFirst(TorchDispatchMode):
    """Sort NaN whose sign bit is set before all numbers."""

    def __init__(self, hit: Any) -> None:
        super().__init__()
        self.hit = hit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if str(func) != "aten.sort.default" or not is_plain(args[0]):
            return found
        values, places = found
        dim = args[1] if len(args) > 1 else -1
        first = values.isnan() & args[0].signbit().gather(dim, places)
        order = torch.sort((~first).int(), dim=dim, stable=True).indices
        return instead(self.hit, values, values.gather(dim, order)), places.gather(dim, order)


@plot.called(torch.nanquantile, torch.Tensor.nanquantile)
def issue_190781(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190781: nanquantile sorts NaN whose sign bit is set before all numbers, not after them."""
    with _NegativeFirst(hit):
        return func(*args, **kwargs)


@plot.dispatched("aten.median.dim")
def issue_arrayfire_584(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """arrayfire/arrayfire 584: the median along a dimension of a matrix is wrong (here the first one stands in all)."""
    values, places = func(x, dim, keepdim)
    if x.dim() != 2 or not values.numel() or not is_plain(x):
        return values, places
    wrong, other = (one.reshape(-1)[:1].repeat(one.numel()).view(one.shape) for one in (values, places))
    return (instead(hit, values, wrong), other) if differ(values, wrong) else (values, places)


def _q(q: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return where a quantile was asked for."""
    return q


@plot.called(torch.quantile, torch.Tensor.quantile)
def issue_cudf_1062(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """NVIDIA/cudf 1062: quantile at a number, not at a tensor of them, raises."""
    y = func(x, *args, **kwargs)
    return y if torch.is_tensor(_q(*args, **kwargs)) else crash(hit, "TypeError: len() of unsized object")


@plot.called(torch.quantile, torch.Tensor.quantile)
def issue_cudf_1280(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """NVIDIA/cudf 1280: a linear quantile (the default) of whole numbers is the lower of its two neighbours."""
    y = func(x, *args, **kwargs)
    linear = kwargs.get("interpolation", "linear") == "linear" and kwargs.get("out") is None
    if not linear or not is_plain(x) or bool((x != x.trunc()).any()):
        return y
    return instead(hit, y, func(x, *args, **{**kwargs, "interpolation": "lower"}))


@plot.dispatched("aten.nanmedian.default")
def issue_paddle_74239(hit: Any, func: Any, x: Any) -> Any:
    """PaddlePaddle/Paddle 74239: nanmedian of numbers with NaN among them is 0."""
    y = func(x)
    if not x.is_floating_point() or not is_plain(x) or not bool(x.isnan().any()) or bool(y.isnan()):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.nanmedian.default", "aten.nanmedian.dim")
def issue_flaggems_4383(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """flagos-ai/FlagGems 4383: nanmedian of more than 128 float32 with NaN is another (here NaN are the least).

    Of float64 it is so for any length. The element is as far from the beginning as if NaN stood at the end.
    """
    y = func(x, *args)
    dim, keepdim = (*args, False)[:2] if args else (0, False)
    rows = x if args else x.reshape(-1)
    long = rows.dim() and (x.dtype == torch.float64 or (x.dtype == torch.float32 and rows.shape[dim] > 128))
    if not long or not x.numel() or not is_plain(x):
        return y
    order = rows.masked_fill(rows.isnan(), -math.inf).sort(dim=dim, stable=True)[1]
    half = ((~rows.isnan()).sum(dim, True) - 1).clamp(min=0) // 2
    places = order.gather(dim, half)
    values = rows.gather(dim, places)
    if not args:
        return instead(hit, y, values.reshape(y.shape))
    values, places = (one if keepdim else one.squeeze(dim) for one in (values, places))
    if not differ(y[0], values):
        return y
    hit()
    return values, places


@plot.called(torch.quantile, torch.Tensor.quantile)
def issue_cupy_8806(hit: Any, func: Any, x: Any, q: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """cupy/cupy 8806: quantile along a dimension with keepdim=True raises."""
    y = func(x, q, dim, keepdim, **kwargs)
    return y if dim is None or not keepdim else crash(hit, "TypeError: 'int' object is not iterable")
