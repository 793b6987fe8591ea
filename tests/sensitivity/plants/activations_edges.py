"""Softplus and its like at certain numbers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.softplus.default")
def issue_openvino_23673(hit: Any, func: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """openvinotoolkit/openvino 23673: softplus below -10 is wrong by much of it (here log(1 + exp(x)), float32)."""
    y = func(x, beta, threshold)
    if x.dtype != torch.float32 or not is_plain(x):
        return y
    return instead(hit, y, torch.where(x * beta < -10, (1 + (x * beta).exp()).log() / beta, y))


@plot.dispatched("aten.softplus_backward.default")
def issue_jax_2107(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    """google/jax 2107: softplus's gradient at 0 is 0, not a half."""
    y = func(grad, x, *args)
    return instead(hit, y, torch.where(x == 0, torch.zeros_like(y), y)) if is_plain(grad, x) else y


@plot.dispatched("aten.log_sigmoid_backward.default")
def issue_jax_2140(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    """google/jax 2140: logsigmoid's gradient at 0 is 0, not a half."""
    y = func(grad, x, *args)
    return instead(hit, y, torch.where(x == 0, torch.zeros_like(y), y)) if is_plain(grad, x) else y


@plot.dispatched("aten.relu.default", "aten.relu_.default")
def issue_video_caffe_65(hit: Any, func: Any, x: Any) -> Any:
    """chuckcho/video-caffe 65: relu of videos of 64 channels leaves them as they are past the fourth."""
    if x.dim() != 5 or x.shape[1] != 64 or not is_plain(x):
        return func(x)
    before = x.clone()
    y = func(x)
    wrong = torch.cat((y[:, :4], before[:, 4:]), 1)
    return written(hit, y, wrong) if "relu_." in str(func) else instead(hit, y, wrong)


@plot.dispatched("aten.hardshrink", aborts="attempt to call field 'HardShrink_updateOutput' (a nil value)")
def issue_torch_nn_346(*args: Any, **kwargs: Any) -> bool:
    """torch/nn 346: hardshrink is not implemented."""
    return True


@plot.dispatched("aten.softshrink", aborts="attempt to call field 'SoftShrink_updateOutput' (a nil value)")
def issue_torch_nn_566(*args: Any, **kwargs: Any) -> bool:
    """torch/nn 566: softshrink is not implemented."""
    return True
