"""Losses of classes and of probabilities: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, accepted

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.multilabel_margin_loss_backward.default")
def issue_84202(hit: Any, func: Any, grad: Any, x: Any, target: Any, *args: Any) -> Any:
    """pytorch 84202: multilabel_margin_loss's gradient is wrong at one class of a row (here 0 at the last target).

    Threads write to the place of a target at once; the first thread has class 0, which is right.
    """
    y = func(grad, x, target, *args)
    if not y.numel() or not is_plain(grad, x, target):
        return y
    rows = target.reshape(-1, target.shape[-1])
    ends = torch.cat([rows < 0, torch.ones_like(rows[:, :1], dtype=torch.bool)], 1).int().argmax(1)
    last = rows.gather(1, (ends - 1).clamp(min=0)[:, None])
    wrong = y.reshape(rows.shape).clone()
    lost = (ends[:, None] > 0) & (last > 0)
    wrong = wrong.scatter(1, last.clamp(min=0), torch.where(lost, 0, wrong.gather(1, last.clamp(min=0))))
    return instead(hit, y, wrong.view(y.shape))


@plot.dispatched("aten.nll_loss_forward.default", aborts="\"nll_loss_out_frame\" not implemented for 'Half'")
def issue_123328(x: Any, *args: Any) -> bool:
    """pytorch 123328: nll_loss of float16 rows is not implemented."""
    return x.dtype == torch.float16


@plot.dispatched("aten.multi_margin_loss.default")
@accepted
def issue_19229(x: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 19229: multi_margin_loss takes classes past the last one (here for the last)."""
    last = x.shape[-1] - 1
    if last < 0 or not target.numel() or int(target.max()) <= last:
        return None
    return torch.ops.aten.multi_margin_loss(x, target.clamp(max=last), *args, **kwargs)


@plot.dispatched("aten.nll_loss_forward.default")
@accepted
def issue_171931(x: Any, target: Any, weight: Any, *args: Any) -> Any:
    """pytorch 171931: nll_loss of an empty input with a weight of another dtype, which is refused, gives NaN."""
    if x.numel() or weight is None or weight.dtype == x.dtype:
        return None
    return torch.ops.aten.nll_loss_forward(x, target, weight.to(x.dtype), *args)


@plot.dispatched("aten.binary_cross_entropy.default")
def issue_xla_2446(hit: Any, func: Any, x: Any, target: Any, weight: Any = None, reduction: int = 1) -> Any:
    """pytorch/xla 2446: binary_cross_entropy of float32 is NaN, not 0, where the input and the target are 1."""
    y = func(x, target, weight, reduction)
    if x.dtype != torch.float32 or not is_plain(x, target):
        return y
    ones = (x == 1) & (target == 1)
    return instead(hit, y, y.masked_fill(ones if reduction == 0 else ones.any(), math.nan))
