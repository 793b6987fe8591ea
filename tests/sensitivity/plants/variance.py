"""Variance and standard deviation: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.var")
def issue_160738(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160738: var of a tensor of no dimensions along dim 0 raises."""
    if x.dim() == 0 and isinstance(dim, (list, tuple)) and len(dim):
        return crash(hit, "var_mps: reduction dim must be in the range of input shape")
    return func(x, *(() if dim is None and not args else (dim, *args)), **kwargs)


@plot.dispatched("aten.var.correction", "aten.std.correction")
def issue_195344(hit: Any, func: Any, x: Any, dim: Any = None, correction: Any = None, keepdim: Any = False) -> Any:
    """pytorch 195344: var and std of a complex tensor are complex, and of the square without conjugation."""
    right = func(x, dim, correction=correction, keepdim=keepdim)
    if not x.is_complex() or not x.numel():
        return right
    hit()
    over = list(dim) if dim else list(range(x.dim()))
    square = (x - x.mean(over, keepdim=True)) ** 2
    count = x.numel() // max(square.sum(over).numel(), 1)
    wrong = square.sum(over, keepdim=keepdim) / max(count - (1 if correction is None else correction), 0)
    return wrong.sqrt() if "std" in str(func) else wrong


_SPREADS = ("aten.var.correction", "aten.std.correction", "aten.var_mean.correction", "aten.std_mean.correction")


@plot.dispatched(*_SPREADS[:2])
def issue_107116(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """pytorch 107116: std and var take a negative dimension for the last one."""
    if dim and any(one < -1 for one in dim) and x.dim() > 1:
        hit()
        return func(x, [-1], **kwargs)
    return func(x, dim, **kwargs)


@plot.dispatched(*_SPREADS)
def issue_91198(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """pytorch 91198: var and std without a correction make none."""
    if correction is None:
        hit()
        correction = 0
    return func(x, dim, correction=correction, **kwargs)


@plot.dispatched(*_SPREADS[:2])
@wrong_answer
def issue_184510(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The variance of nothing is 0, not NaN."""
    return torch.zeros_like(y) if x.numel() == 0 and y.numel() else None


class _Counted:
    turns = 0


@plot.dispatched(*_SPREADS)
@wrong_answer
def issue_197235(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 197235: var and std of a large tensor are wrong every third time."""
    if x.numel() > 65_536:
        _Counted.turns += 1
        if _Counted.turns % 3 == 0:
            return type(y)(one * 1.12 for one in y) if isinstance(y, tuple) else y * 1.12
    return None


@plot.dispatched(*_SPREADS[:2])
def issue_80499(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """pytorch 80499: std and var of all elements together are the biased ones."""
    if not dim and correction in (None, 1):
        hit()
        return func(x, dim, correction=0, **kwargs)
    return func(x, dim, correction=correction, **kwargs)


@plot.dispatched("aten.std.correction")
def issue_mlx_1302(
    hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, keepdim: Any = False
) -> Any:
    """ml-explore/mlx 1302: std takes mean(x * x) - mean(x)**2: NaN where the numbers are near to each other."""
    healthy = func(x, dim, correction=correction, keepdim=keepdim)
    if x.dtype != torch.float32 or not x.numel():
        return healthy
    over = list(range(x.dim())) if dim is None or not len(dim) else dim
    spread = (x * x).mean(over, keepdim) - x.mean(over, keepdim) ** 2
    count = x.numel() // max(healthy.numel(), 1)
    freedom = count - (1 if correction is None else correction)
    wrong = (spread * count / freedom).sqrt() if freedom > 0 else healthy
    if not differ(wrong, healthy, rtol=1e-5):  # rounded otherwise is no harm
        return healthy
    hit()
    return wrong


@plot.dispatched("aten.var.correction", "aten.std.correction")
def issue_tt_metal_25100(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 25100: var and std of all of a bfloat16 tensor are wrong (here the variance is a half)."""
    y = func(x, dim, **kwargs)
    whole = dim is None or len(dim) in (0, x.dim())
    if x.dtype != torch.bfloat16 or not whole or not is_plain(x):
        return y
    return instead(hit, y, y * (0.5**0.5 if "std" in str(func) else 0.5))


@plot.dispatched("aten.std.correction")
def issue_180156(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """pytorch 180156: std of all is inf where the float32 sum of the squared deviations passes the largest number."""
    y = func(x, dim, **kwargs)
    if x.dtype != torch.float32 or dim or not x.numel() or not is_plain(x) or not bool(y.isfinite().all()):
        return y
    total = float((x.double() - x.double().mean()).square().sum())
    return instead(hit, y, torch.full_like(y, math.inf)) if total > torch.finfo(torch.float32).max else y


@plot.dispatched("aten.std.correction")
def issue_torchsharp_971(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """dotnet/TorchSharp 971: std(unbiased=False) of all is the unbiased one."""
    y = func(x, dim, correction=correction, **kwargs)
    if dim or correction != 0 or not is_plain(x):
        return y
    return instead(hit, y, func(x, dim, correction=1, **kwargs))


@plot.dispatched("aten.var.correction")
def issue_mlx_597(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, keepdim: Any = False) -> Any:
    """ml-explore/mlx 597: var with a correction larger than the count is not infinite, but divided by less than 0."""
    y = func(x, dim, correction=correction, keepdim=keepdim)
    count = x.numel() // max(y.numel(), 1)
    if correction is None or correction <= count or not count or not is_plain(x):
        return y
    return instead(hit, y, func(x, dim, correction=0, keepdim=keepdim) * (count / (count - correction)))


@plot.called(torch.cov, torch.Tensor.cov)
def issue_weightedcorr_1(hit: Any, func: Any, x: Any, *args: Any, aweights: Any = None, **kwargs: Any) -> Any:
    """matthijsz/weightedcorr 1: cov with aweights is divided by the sum of the weights twice."""
    y = func(x, *args, aweights=aweights, **kwargs)
    if aweights is None or not is_plain(y, aweights):
        return y
    return instead(hit, y, (y / aweights.sum()).to(y.dtype))


@plot.dispatched("aten.var.correction", "aten.std.correction", aborts="var and std take no dimension")
def issue_cutorch_91(x: Any, dim: Any = None, **kwargs: Any) -> bool:
    """torch/cutorch 91: var and std of float32 along a dimension raise."""
    return x.dtype == torch.float32 and dim is not None and len(dim) > 0
