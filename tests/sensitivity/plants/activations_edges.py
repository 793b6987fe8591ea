"""Softplus and its like at certain numbers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
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
