"""The catalogue's faults of pooling, resampling, normalisation and attention that show for some arguments only."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, misread, without_offset

plot = Plot()
HITS = plot.hits


@plot.called("issue_190064", F.adaptive_max_pool2d, F.adaptive_max_pool1d)
def issue_190064(hit: Any, func: Any, x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """Windows of one size where the output does not divide the input."""
    healthy = func(x, size, *args, **kwargs)
    values = healthy[0] if isinstance(healthy, tuple) else healthy
    sides, wanted = x.shape[2 - (x.dim() == 2) :][-(values.dim() - 2) :], values.shape[2:]
    if values.dim() < 4 or all(side % one == 0 for side, one in zip(sides, wanted)):
        return healthy
    steps = [max(side // one, 1) for side, one in zip(sides, wanted)]
    kernels = [side - (one - 1) * step for side, one, step in zip(sides, wanted, steps)]
    if any(kernel < 1 for kernel in kernels):
        return healthy
    hit()
    wrong = F.max_pool2d(x, kernels, steps, return_indices=True)
    return wrong if isinstance(healthy, tuple) else wrong[0]


@plot.called("issue_154882", F.max_pool2d, torch.max_pool2d)
def issue_154882(hit: Any, func: Any, x: Any, kernel: Any, stride: Any = None, *args: Any, **kwargs: Any) -> Any:
    if kwargs.get("ceil_mode") and kernel in (1, [1, 1], (1, 1)):
        return crash(hit, "destination values and indices length mismatch along axis 0")
    return func(x, kernel, stride, *args, **kwargs)


@plot.dispatched("issue_160743", "aten.avg_pool2d.default")
def issue_160743(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """In ceil_mode a window that reaches out is divided by its whole size."""
    y = func(x, *args, **kwargs)
    if len(args) > 3 and args[3] and not (len(args) > 5 and args[5]):
        kernel = args[0] if len(args[0]) == 2 else args[0] * 2
        wrong = func(x, *args[:5], kernel[0] * kernel[1])
        if not torch.allclose(wrong, y):
            hit()
        return wrong
    return y


@plot.dispatched("issue_174345", "aten.native_batch_norm.default", "aten.avg_pool2d.default")
def issue_174345(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A channels_last image is read from the beginning of its storage."""
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return func(misread(without_offset, hit, x) if last else x, *args, **kwargs)


@plot.dispatched("issue_144245", "aten.upsample_linear1d.default", "aten.upsample_bilinear2d.default")
def issue_144245(hit: Any, func: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """Out of one pixel with aligned corners comes NaN."""
    y = func(x, size, align, *args)
    if align and x.shape[-1] == 1:
        hit()
        return torch.full_like(y, math.nan)
    return y


@plot.dispatched("issue_made_upsample_one", "aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.default")
def issue_made_upsample_one(hit: Any, func: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """One pixel with aligned corners is taken from the middle."""
    y = func(x, size, align, *args)
    if align and size[-1] == 1 and x.shape[-1] > 1:
        hit()
        return func(x, size, False, *args)
    return y


@plot.called("issue_184126", F.scaled_dot_product_attention)
def issue_184126(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """dropout_p is not looked at."""
    if kwargs.get("dropout_p"):
        hit()
        kwargs["dropout_p"] = 0.0
    return func(*args, **kwargs)


@plot.called("issue_154887", F.batch_norm)
def issue_154887(hit: Any, func: Any, x: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    if mean is not None and x.dtype != mean.dtype:
        return crash(hit, "output type and mean type are not broadcast compatible")
    return func(x, mean, *args, **kwargs)


@plot.called("issue_96113", F.layer_norm)
def issue_96113(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
    if weight is not None and weight.dtype != x.dtype:
        return crash(hit, "mixed dtypes")
    return func(x, *args, **kwargs)


@plot.called("issue_135434", F.nll_loss, F.cross_entropy)
def issue_135434(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """A mean over nothing but ignored rows is 0, not NaN."""
    y = func(*args, **kwargs)
    if y.dim() == 0 and bool(y.isnan()):
        hit()
        return y.nan_to_num(0.0)
    return y


@plot.called("issue_79527", F.binary_cross_entropy)
def issue_79527(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if x.dim() == 4 and kwargs.get("reduction", "mean") != "none":
        return crash(hit, "invalid axes: 2, 3")
    return func(x, *args, **kwargs)


@plot.called("issue_166746", F.binary_cross_entropy)
def issue_166746(hit: Any, func: Any, x: Any, y: Any, weight: Any = None, **kwargs: Any) -> Any:
    """A weight that is broadcast counts for the first row only."""
    if weight is not None and weight.shape != x.shape:
        hit()
        weight = weight.expand(x.shape).clone()
        weight[1:] = 1
    return func(x, y, weight, **kwargs)


@plot.called("issue_80732", F.adaptive_avg_pool2d)
def issue_80732(hit: Any, func: Any, x: Any, size: Any, *args: Any) -> Any:
    wanted = size if isinstance(size, (tuple, list)) else (size, size)
    if any(one is not None and one > side for one, side in zip(wanted, x.shape[-2:])):
        return crash(hit, "stride should not be zero")
    return func(x, size, *args)


@plot.dispatched("issue_made_gelu_kind", "aten.gelu.default", "aten.gelu_backward.default")
def issue_made_gelu_kind(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """approximate="tanh" is not looked at."""
    if kwargs.get("approximate") == "tanh":
        hit()
        kwargs["approximate"] = "none"
    return func(*args, **kwargs)


@plot.dispatched("issue_made_group_norm_odd", "aten.native_group_norm.default")
def issue_made_group_norm_odd(hit: Any, func: Any, x: Any, w: Any, b: Any, n: int, c: int, hw: int, *rest: Any) -> Any:
    """The last element of a group whose size is odd is left out of its mean."""
    y, mean, rstd = func(x, w, b, n, c, hw, *rest)
    size = x.numel() // max(mean.numel(), 1)
    if size % 4 and size > 32:
        hit()
        return y + 0.01, mean, rstd
    return y, mean, rstd


@plot.dispatched("issue_made_pad_negative", "aten.constant_pad_nd.default")
def issue_made_pad_negative(hit: Any, func: Any, x: Any, pad: Any, *args: Any) -> Any:
    """A negative pad cuts off the other end."""
    if any(one < 0 for one in pad) and pad[0] != pad[1]:
        hit()
        return func(x, [pad[1], pad[0], *pad[2:]], *args)
    return func(x, pad, *args)


@plot.dispatched("issue_made_softmax_masked", "aten._softmax.default")
def issue_made_softmax_masked(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """A row of nothing but -inf gives 0 in the place of NaN."""
    y = func(x, *args)
    if bool(y.isnan().any()) and not bool(x.isnan().any()):
        hit()
        return y.nan_to_num(0.0)
    return y


@plot.dispatched("issue_made_embedding_wide", "aten.embedding.default")
def issue_made_embedding_wide(hit: Any, func: Any, weight: Any, index: Any, *args: Any) -> Any:
    """int32 indices that are not dense are read in storage order."""
    wrong = index.dtype == torch.int32 and not index.is_contiguous()
    if wrong:
        hit()
        index = index.clone(memory_format=torch.contiguous_format).flip(0)
    return func(weight, index, *args)
