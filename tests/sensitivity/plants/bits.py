"""Bitwise operators and shifts: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from misreading import lost
from planting import Plot

plot = Plot()
HITS = plot.hits


_BITS = tuple(f"aten.bitwise_{name}" for name in ("and", "or", "xor"))


@plot.dispatched(*(name + "_.Tensor" for name in _BITS), *(name + ".Tensor_out" for name in _BITS))
def issue_145203(hit: Any, func: Any, x: Any, other: Any, out: Any = None) -> Any:
    """pytorch 145203: bitwise operators write nothing into an output that is not contiguous."""
    if out is None:
        return lost(hit, func, x, other)
    if out.is_contiguous():
        return func(x, other, out=out)
    hit()
    func(x, other, out=torch.empty_like(out, memory_format=torch.contiguous_format))
    return out


@plot.dispatched("aten.bitwise_left_shift.Scalar_Tensor", "aten.bitwise_right_shift.Scalar_Tensor")
def issue_147889(hit: Any, func: Any, number: Any, x: Any) -> Any:
    """pytorch 147889: a number shifted by a tensor (1 << x) is the tensor shifted by the number."""
    if x.numel():
        hit()
    return torch.bitwise_left_shift(x, number) if "left" in str(func) else torch.bitwise_right_shift(x, number)


@plot.dispatched("aten.bitwise_and", "aten.bitwise_or", "aten.bitwise_xor")
def issue_182822(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182822: a bool operand of no dimensions inside a larger storage is read from the storage's beginning."""

    def read(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dtype == torch.bool and x.dim() == 0 and x.storage_offset():
            hit()
            return x.as_strided((), (), 0)
        return x

    return func(*(read(x) for x in args), **kwargs)


@plot.dispatched("aten.__rshift__.Scalar", "aten.bitwise_right_shift.Tensor_Scalar")
def issue_144190(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 144190: uint8 is shifted to the right as a signed number: past 127 nothing but ones come in."""
    if x.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y).view(torch.uint8)
    return func(x, y)


@plot.dispatched("aten.bitwise_right_shift.Tensor", "aten.__rshift__.Tensor")
def issue_made_shift_tensor(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """uint8 is shifted by a tensor as a signed number: past 127 nothing but ones come in."""
    if x.dtype == torch.uint8 and y.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y.view(torch.int8)).view(torch.uint8)
    return func(x, y)
