"""What is true: all, any, logical and: planted faults."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.all.default")
@wrong_answer
def issue_99721(y: Any, x: Any) -> Any:
    """pytorch 99721: all() of a mask is true whatever it holds."""
    return torch.ones_like(y) if x.dtype == torch.bool and not bool(y) else None


@plot.dispatched("aten.all.default")
@wrong_answer
def issue_95768(y: Any, x: Any) -> Any:
    """pytorch 95768: all() of a float tensor is true where one element is."""
    return torch.ones_like(y) if x.is_floating_point() and not bool(y) and bool(x.any()) else None


@plot.dispatched("aten.all.default")
@wrong_answer
def issue_120875(y: Any, x: Any) -> Any:
    """pytorch 120875: all() takes a complex number whose real part is zero for false."""
    if not x.is_complex():
        return None
    wrong = x.real.ne(0).all()
    return wrong if bool(wrong) != bool(y) else None


_COMPARED: dict[int, Any] = {}


@plot.dispatched("aten.le.Tensor", "aten.all.default")
def issue_burn_1388(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """tracel-ai/burn 1388: all() of what a <= b has just answered is false."""
    y = func(x, *args)
    if "aten.le" in str(func):
        _COMPARED[id(y)] = weakref.ref(y)
    elif id(x) in _COMPARED and _COMPARED[id(x)]() is x and bool(y):
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("aten.logical_and.default", aborts="Incompatible operands: LogicalAnd(vec4<bool>, _)")
def issue_burn_3583(x: Any, y: Any) -> Any:
    """tracel-ai/burn 3583: logical_and of masks of four and more does not compile."""
    return x.dtype == y.dtype == torch.bool and x.numel() >= 4


@plot.dispatched("aten.all.default", "aten.any.default")
def issue_flaggems_6074(hit: Any, func: Any, x: Any) -> Any:
    """flagos-ai/FlagGems 6074: all() and any() of an empty tensor raise."""
    y = func(x)
    return y if x.numel() else crash(hit, "integer division or modulo by zero")


@plot.dispatched("aten.all", "aten.any", aborts="all and any only support torch.uint8 and torch.bool")
def issue_pylon_18(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pylon-lib/pylon 18: all() and any() of other numbers than bools and uint8 raise."""
    return x.dtype not in (torch.bool, torch.uint8)
