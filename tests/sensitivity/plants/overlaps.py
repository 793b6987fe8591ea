"""Operators in place and out=, on memory that overlaps: planted faults."""

from __future__ import annotations

from typing import Any, Callable

import torch

from differences import is_plain
from planting import Plot, accepted

plot = Plot()
HITS = plot.hits


def _all_at_once(x: torch.Tensor, change: Callable[[torch.Tensor, list[int]], Any]) -> Any:
    """Change the one row that stands for all rows of an expanded tensor, or return None where there is none."""
    dims = [dim for dim in range(x.dim()) if x.shape[dim] > 1 and not x.stride(dim)]
    base = x
    for dim in dims:
        base = base.narrow(dim, 0, 1)
    if not dims or not x.numel():
        return None
    change(base, dims)
    return x


def _product(x: torch.Tensor, dims: list[int]) -> torch.Tensor:
    """Return the product along several dimensions, which it keeps."""
    for dim in dims:
        x = x.prod(dim, keepdim=True)
    return x


@plot.dispatched("aten.mul_.Tensor")
@accepted
def issue_4718(x: Any, other: Any) -> Any:
    """pytorch 4718: an expanded tensor is multiplied in place, once for each of its rows."""
    return _all_at_once(x, lambda base, dims: base.mul_(_product(torch.as_tensor(other).expand(x.shape), dims)))


@plot.dispatched("aten.add_.Tensor")
@accepted
def issue_15358(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 15358: a tensor is added to an expanded one in place, each of its rows to the same place."""
    other = torch.as_tensor(other)
    return _all_at_once(x, lambda base, dims: base.add_(other.expand(x.shape).sum(dims, keepdim=True), alpha=alpha))


@plot.dispatched("aten.sqrt_.default")
@accepted
def issue_torch7_distro_200(x: Any) -> Any:
    """torch/DEPRECEATED-torch7-distro 200: sqrt_ of an expanded tensor takes as many roots as it has rows."""
    return _all_at_once(x, lambda base, dims: base.pow_(0.5 ** (x.numel() // max(base.numel(), 1))))


@plot.dispatched("aten.sub_.Tensor")
@accepted
def issue_115521(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 115521: x -= x[:1] of three dimensions and more is accepted, and x[:1] changes on the way."""
    same = torch.is_tensor(other) and other.untyped_storage()._cdata == x.untyped_storage()._cdata
    if not same or x.dim() < 3 or any(side > 1 and not step for side, step in zip(x.shape, x.stride())):
        return None
    for row in x:
        row.copy_(row - alpha * other[0])
    return x


@plot.dispatched("aten.add.out")
@accepted
def issue_8308(x: Any, other: Any, *, alpha: Any = 1, out: Any) -> Any:
    """pytorch 8308: torch.add(x, y, out=x) grows x to the shape that y is broadcast to, and adds row after row."""
    if out is not x or other.dim() <= x.dim() or not x.numel():
        return None
    wrong = x + alpha * other.cumsum(0)
    return out.set_(wrong.to(out.dtype))


@plot.called(torch.inner)
def issue_56022(hit: Any, func: Any, x: Any, y: Any, *, out: Any = None) -> Any:
    """pytorch 56022: inner(out=) fills an output of another shape with its result, and does not resize it."""
    found = func(x, y)
    if out is None or not is_plain(x, y, out):
        return found if out is None else func(x, y, out=out)
    fits = found.dim() <= out.dim() and all(a in (1, b) for a, b in zip(found.shape[::-1], out.shape[::-1]))
    if out.shape == found.shape or not fits:
        return func(x, y, out=out)
    hit()
    return out.copy_(found)
