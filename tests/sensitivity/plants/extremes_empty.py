"""The largest and the smallest of nothing, or of a single number: planted faults."""

from __future__ import annotations

import math
from typing import Any

from planting import Plot, accepted

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.aminmax.default")
def issue_85650(hit: Any, func: Any, x: Any, *, dim: Any = None, keepdim: bool = False) -> Any:
    """pytorch 85650: aminmax(dim=0, keepdim=True) of a tensor of no dimensions has one."""
    least, largest = func(x, dim=dim, keepdim=keepdim)
    if x.dim() or dim is None or not keepdim:
        return least, largest
    hit()
    return least.view(1), largest.view(1)


@plot.dispatched("aten.aminmax.default", aborts="iter.numel() > 0 && iter.noutputs() >= 1 INTERNAL ASSERT FAILED")
def issue_85439(x: Any, *, dim: Any = None, keepdim: bool = False) -> bool:
    """pytorch 85439: aminmax of an empty tensor along a dimension that is not empty raises."""
    return dim is not None and x.dim() > 0 and not x.numel() and x.shape[dim] > 0


@plot.dispatched("aten.amax.default", "aten.amin.default")
@accepted
def issue_73905(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """pytorch 73905: amax and amin of an empty tensor, without dim, give any number (here -1), and do not raise."""
    if x.numel() or len(dim):
        return None
    return x.new_full([1] * x.dim() if keepdim else [], -1)


@plot.dispatched("aten.max.default", "aten.min.default")
def issue_17750(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 17750: max of an empty tensor is -inf (min is inf), where they should raise."""
    if x.numel() or not x.is_floating_point():
        return func(x)
    hit()
    return x.new_full([], -math.inf if "max" in str(func) else math.inf)
