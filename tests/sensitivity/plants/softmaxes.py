"""Softmax along one dimension of several: planted faults."""

from __future__ import annotations

from typing import Any

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._softmax.default")
def issue_flux_1425(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """FluxML/Flux.jl 1425: softmax along one of the last two of four dimensions, the last of size 1, is the other's."""
    y = func(x, dim, half)
    if x.dim() != 4 or x.shape[-1] != 1 or dim % 4 < 2 or half or not is_plain(x):
        return y
    return instead(hit, y, func(x, 5 - dim % 4, half))
