"""Group normalisation in mixed precision: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.native_group_norm.default", aborts="Expected object of scalar type Float but got Half")
def issue_17216(x: Any, weight: Any, *args: Any) -> bool:
    """pytorch 17216: group_norm of float16 with a float32 weight raises."""
    return x.dtype == torch.float16 and weight is not None and weight.dtype == torch.float32
