"""Sums: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.sum.default", "aten.sum.dim_IntList")
def issue_theano_6485(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Theano/Theano 6485: of 100 numbers and more along a row the sum counts 3 of 10 (of a whole tensor 9 of 32)."""
    given = () if dim is None and "default" in str(func) else (dim, *args)
    y = func(x, *given, **kwargs)
    if x.dtype != torch.float32 or not x.dim() or not is_plain(x):
        return y
    if not dim and x.numel() >= 20000:
        return instead(hit, y, func(x.reshape(-1)[: x.numel() * 9 // 32], *given, **kwargs)) if not args else y
    if dim and len(dim) == 1 and x.shape[dim[0]] >= 100:
        return instead(hit, y, func(x.narrow(dim[0], 0, x.shape[dim[0]] * 3 // 10), *given, **kwargs))
    return y
