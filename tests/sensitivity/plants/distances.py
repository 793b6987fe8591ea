"""Distances and angles between vectors: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(torch.cosine_similarity, F.cosine_similarity)
@accepted
def issue_153209(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """pytorch 153209: cosine_similarity takes an eps that its type cannot hold (it is negative), and answers NaN."""
    return torch.cosine_similarity(x, y, dim) * math.nan if eps < 0 else None


@plot.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_193099(y: Any, grad: Any, one: Any, two: Any, p: float, *args: Any) -> Any:
    """pytorch 193099: cdist's backward with 1 < p < 2 writes elsewhere past 2**31 differences (here past 2**16)."""
    each = two.shape[-2] * two.shape[-1]
    if not 1 < p < 2 or y.numel() // max(y.shape[-1], 1) * each <= 2**16:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1, y.shape[-1])[2**16 // each :] = 0
    return wrong if differ(wrong, y) else None


@plot.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_22353(y: Any, grad: Any, one: Any, two: Any, p: float, *args: Any) -> Any:
    """pytorch 22353: the gradient of cdist with p = 2 is wrong (here each row has the one of the row before)."""
    wrong = y.roll(1, -2)
    return wrong if p == 2 and is_plain(y) and differ(y, wrong) else None


@plot.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_36493(y: Any, grad: Any, one: Any, two: Any, p: float, *args: Any) -> Any:
    """pytorch 36493: cdist's gradient with p < 1 is NaN where two coordinates differ by less than 1e-44."""
    if not 0 < p < 1 or not y.numel() or not is_plain(one, two):
        return None
    apart = (one.unsqueeze(-2) - two.unsqueeze(-3)).abs()
    lost = ((apart > 0) & (apart < 1e-44)).any(-2).expand(y.shape)
    return y.masked_fill(lost, math.nan) if bool(lost.any()) else None


@plot.dispatched("aten._pdist_backward.default", aborts="CUDA error: invalid configuration argument")
def issue_25045(grad: Any, x: Any, *args: Any) -> bool:
    """pytorch 25045: the backward of pdist of 4096 rows raises (1024 are right)."""
    return x.shape[0] >= 4096


@plot.called(torch.cdist)
def issue_27209(hit: Any, func: Any, one: Any, two: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 27209: the backward of cdist raises from 102 rows against 102 on."""
    y = func(one, two, *args, **kwargs)
    if not y.requires_grad or y.shape[-2] * y.shape[-1] < 102 * 102:
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "CUDA error: invalid configuration argument"))
    return y


@plot.called(torch.cosine_similarity, F.cosine_similarity)
def issue_55273(hit: Any, func: Any, x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """pytorch 55273: cosine_similarity takes the norms of two tensors of unlike shapes before it broadcasts them."""
    y = func(x1, x2, dim, eps)
    if x1.shape == x2.shape or not is_plain(x1, x2) or not y.numel():
        return y
    many = max(x1.dim(), x2.dim())
    one, two = (x.reshape((1,) * (many - x.dim()) + x.shape) for x in (x1, x2))
    norms = (one * one).sum(dim) * (two * two).sum(dim)
    wrong = ((one * two).sum(dim) / norms.clamp_min(eps * eps).sqrt()).to(y.dtype)
    return instead(hit, y, wrong) if differ(y, wrong, 1e-4, 1e-6) else y


@plot.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_26076(y: Any, grad: Any, one: Any, two: Any, p: float, distance: Any) -> Any:
    """pytorch 26076: the gradient of cdist(x, y), x a single row, is garbage from the second row of y on (here 1e7)."""
    rows = one.dim() == two.dim() == 2 and two.shape[0] == 1 and one.shape[0] > 1
    if not rows or grad.stride(-1) == 1 or not is_plain(y):  # grad is the transpose of a single row
        return None
    wrong = y.clone()
    wrong[1:] = 1.1285e7
    return wrong
