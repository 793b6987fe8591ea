"""The gradients of pooling: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_miopen_1325(
    hit: Any, func: Any, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, *args: Any
) -> Any:
    """ROCm/MIOpen 1325: max_pool2d's gradient in float16 (3 x 3, stride 2) is wrong (there 0 at 0, here everywhere)."""
    y = func(grad, x, kernel, stride, padding, *args)
    asked = set(kernel) == {3} and set(stride or kernel) == {2} and not any(padding)
    if x.dtype != torch.float16 or not asked or not is_plain(grad, x):
        return y
    return instead(hit, y, torch.zeros_like(y))
