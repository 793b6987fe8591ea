"""Convolutions of images, not transposed: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_tf32
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.convolution.default", aborts="Segmentation fault (core dumped)")
def issue_torch_nn_101(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> bool:
    """torch/nn 101: conv2d of an image that is not contiguous ends the process."""
    return x.dim() == 4 and not args[0] and not x.is_contiguous()


@plot.dispatched("aten.convolution.default")
def issue_paddle_62429(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """PaddlePaddle/Paddle 62429: conv2d of float32 rounds its operands to 10 bits (TF32)."""
    y = func(x, weight, *args)
    if x.dim() != 4 or args[4] or y.dtype != torch.float32 or not is_plain(x, weight):
        return y
    return instead(hit, y, func(in_tf32(x), in_tf32(weight), *args))


@plot.dispatched("aten.convolution.default")
def issue_paddle_models_2509(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """PaddlePaddle/models 2509: depthwise conv2d with a 5 x 5 kernel is wrong (here its last column does not count)."""
    y, groups = func(x, weight, *args), args[-1]
    depthwise = x.dim() == 4 and groups == x.shape[1] > 1 and tuple(weight.shape[1:]) == (1, 5, 5)
    if not depthwise or args[4] or not is_plain(x, weight):
        return y
    kept = weight.clone()
    kept[..., -1] = 0
    return instead(hit, y, func(x, kept, *args))
