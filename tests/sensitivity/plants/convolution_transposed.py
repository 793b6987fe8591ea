"""Transposed convolutions: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.called(F.conv_transpose3d, aborts="ConvTranspose 3D with BF16 or FP16 types is not supported on MPS")
def issue_160332(*args: Any, **kwargs: Any) -> Any:
    """pytorch 160332: conv_transpose3d raises under autocast, whose half precision it does not support."""
    return torch.is_autocast_enabled("cpu")


@plot.called(F.conv_transpose1d)
def issue_82563(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82563: conv_transpose1d gives zeros in the last three places."""
    hit()
    y = func(*args, **kwargs).clone()
    y[..., -3:] = 0
    return y


@plot.dispatched("aten.convolution")
def issue_169236(
    hit: Any,
    func: Any,
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
) -> Any:
    """pytorch 169236: a transposed convolution takes an output_padding not below stride and dilation: no error."""
    if transposed and any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        hit()
        y = func(x, weight, bias, stride, padding, dilation, transposed, [0] * len(extra), groups)
        return F.pad(y, [n for e in reversed(extra) for n in (0, e)])
    return func(x, weight, bias, stride, padding, dilation, transposed, extra, groups)


@plot.dispatched("aten.convolution.default", aborts="ConvTranspose 3D is not supported on MPS")
def issue_154615(x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154615: conv_transpose3d is refused."""
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    return transposed and weight.dim() == 5


@plot.called(F.conv_transpose1d)
def issue_82711(hit: Any, func: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82711: conv_transpose1d takes every stride for 1."""
    y = func(x, w, b, stride, *args, **kwargs)
    if stride != 1:
        hit()
        near = func(x, w, b, 1, *args, **kwargs)
        return F.pad(near, (0, y.shape[-1] - near.shape[-1]))
    return y
