"""Normalisation of rows of certain lengths: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.native_layer_norm.default")
def issue_tt_metal_33527(hit: Any, func: Any, x: Any, shape: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 33527: layer_norm of 3584 rows and more of 4608 bfloat16 numbers raises."""
    y = func(x, shape, *args)
    if x.dtype != torch.bfloat16 or list(shape) != [4608] or x.numel() < 3584 * 4608:
        return y
    return crash(hit, "Buffer size in0_t (60) must be divisible by block_size (8)")


@plot.dispatched("aten.native_layer_norm.default")
def issue_141642(hit: Any, func: Any, x: Any, shape: Any, *args: Any) -> Any:
    """pytorch 141642: layer_norm of tiny float32 numbers (here of rows below 1e-9, not all zero) is NaN."""
    y, *rest = func(x, shape, *args)
    if x.dtype != torch.float32 or not x.numel() or not is_plain(x):
        return y, *rest
    size = x.abs().amax(list(range(-len(shape), 0)), keepdim=True)
    tiny = (size < 1e-9) & (size > 0)
    return instead(hit, y, torch.where(tiny, torch.full_like(y, math.nan), y)), *rest
