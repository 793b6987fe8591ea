"""Extremes along a dimension: planted faults."""

from __future__ import annotations

from typing import Any

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max.dim", "aten.amax.default", aborts="MethodError: no method matching maximum")
def issue_gpuarrays_180(x: Any, dim: Any = (), *args: Any, **kwargs: Any) -> bool:
    """JuliaGPU/GPUArrays.jl 180: the maximum along a dimension raises, that of the whole tensor does not."""
    return not isinstance(dim, (list, tuple)) or len(dim) > 0
