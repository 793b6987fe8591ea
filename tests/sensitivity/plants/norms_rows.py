"""Normalisation of rows of certain lengths: planted faults."""

from __future__ import annotations

from typing import Any

import torch

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
