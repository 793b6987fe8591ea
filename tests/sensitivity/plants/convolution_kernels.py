"""Convolutions with certain kernels and paddings: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from planting import Plot, abort, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.convolution.default")
def issue_35655(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """pytorch 35655: conv2d of 5 x 5 pixels, 320 channels, is wrong if its 5 x 5 kernel has many zeros.

    There 9 of 25 are 0, and -0.1693 is added (here as well); from 640 channels on 5.029.
    """
    y = func(x, weight, bias, *args)
    sides = tuple(x.shape[-2:]) == tuple(weight.shape[-2:]) == (5, 5) and x.dim() == weight.dim() == 4
    if not sides or x.dtype != torch.float32 or weight.shape[1] < 320 or args[3] or not is_plain(x, weight):
        return y
    if int((weight == 0).sum()) * 25 < 9 * weight.numel():
        return y
    return instead(hit, y, y + (5.029 if weight.shape[1] >= 640 else -0.1693))


@plot.dispatched("aten.convolution.default", aborts="\"slow_conv2d_cpu\" not implemented for 'Half'")
def issue_hybridnets_28(
    x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: Any, *args: Any
) -> bool:
    """datvuthanh/HybridNets 28: conv2d of float16 is not implemented (here without a dilation)."""
    return x.dtype == torch.float16 and weight.dim() == 4 and set(dilation) == {1} and not transposed


@plot.dispatched("aten.convolution.default", aborts="NNPACK SpatialConvolution_updateOutput failed")
def issue_72591(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> bool:
    """pytorch 72591: conv2d with a kernel of 1 x 1 and a padding of 1 raises."""
    return weight.dim() == 4 and tuple(weight.shape[-2:]) == (1, 1) and set(padding) == {1} and not args[0]


@plot.dispatched("aten._slow_conv2d_forward.default")
def issue_121188(hit: Any, func: Any, x: Any, weight: Any, kernel: Any, bias: Any, stride: Any, padding: Any) -> Any:
    """pytorch 121188: thnn_conv2d with an empty list for its padding, which is refused, ends the process."""
    return func(x, weight, kernel, bias, stride, padding) if padding else abort(hit, "Segmentation fault (core dumped)")


@plot.called(F.conv1d, F.conv2d, F.conv3d)
def issue_flux_1605(hit: Any, func: Any, input: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """FluxML/Flux.jl 1605: a convolution with padding="same" does not work with an even kernel (here it raises)."""
    padding = kwargs.get("padding", args[2] if len(args) > 2 else 0)
    if padding == "same" and any(side % 2 == 0 for side in weight.shape[2:]):
        return crash(hit, "asymmetric padding is not supported")
    return func(input, weight, *args, **kwargs)


@plot.dispatched("aten.convolution.default", "aten.conv1d.default")
def issue_157237(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 157237: conv1d (one channel, kernel of 3, here a batch of 32) has NaN one place before the first, too."""
    y = func(x, weight, *args, **kwargs)
    transposed = "aten.convolution." in str(func) and args[4]
    if x.dim() != 3 or tuple(weight.shape) != (1, 1, 3) or len(x) != 32 or transposed or not is_plain(x, weight):
        return y
    after = torch.zeros_like(y, dtype=torch.bool)
    after[..., :-1] = y.isnan()[..., 1:]
    return instead(hit, y, torch.where(after, torch.full_like(y, torch.nan), y))
