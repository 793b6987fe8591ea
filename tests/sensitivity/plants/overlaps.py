"""Operators in place and out=, on memory that overlaps: planted faults."""

from __future__ import annotations

import itertools
import sys
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


class _NewMemory:
    """x += y and the like, as x.data = x.data + y."""

    _NAMES = ("__iadd__", "__isub__", "__imul__", "__itruediv__", "__setitem__")

    def __init__(self, hit: Any) -> None:
        self._hit, self._harm, self._last = hit, 0, None
        self._healthy = {name: getattr(torch.Tensor, name) for name in self._NAMES}
        self._own = {name: torch.Tensor.__dict__[name] for name in self._NAMES if name in torch.Tensor.__dict__}

    def _moved(self, healthy: Any) -> Any:
        def fault(x: Any, y: Any) -> Any:
            learns = torch.is_grad_enabled() and any(torch.is_tensor(one) and one.requires_grad for one in (x, y))
            if learns or not is_plain(x, y) or x.layout != torch.strided or not _is_shared(x):
                return healthy(x, y)
            x.data = healthy(x.detach().clone(), y)
            self._harm, self._last = self._harm + 1, x
            return x

        return fault

    def _stored(self, healthy: Any) -> Any:
        # x[i] += y writes what comes of it to x again: no harm.
        def store(x: Any, key: Any, value: Any) -> None:
            if value is self._last is not None:
                self._harm -= 1
            self._last = None
            healthy(x, key, value)

        return store

    def __enter__(self) -> None:
        for name, healthy in self._healthy.items():
            wrong = self._stored if name == "__setitem__" else self._moved
            setattr(torch.Tensor, name, wrong(healthy))

    def __exit__(self, *args: Any) -> None:
        for name in self._NAMES:
            # What is inherited must not stay as the class's own.
            if name in self._own:
                setattr(torch.Tensor, name, self._own[name])
            else:
                delattr(torch.Tensor, name)
        for _ in range(self._harm):
            self._hit()


_A_VIEW = torch.zeros(2).view(2)
# How often the base of a view is held where nothing but the view holds it.
_ALONE = sys.getrefcount(_A_VIEW._base)


def _is_shared(x: Any) -> bool:
    """Say whether another tensor lies in the same memory: a tensor and its storage's own object hold it once each."""
    others = torch._C._storage_Use_Count(x.untyped_storage()._cdata) - 2
    unseen = x._base is not None and sys.getrefcount(x._base) <= _ALONE
    return others > unseen


@plot.entered()
def issue_pysyft_138(hit: Any) -> Any:
    """OpenMined/PySyft 138: x += y (and -=, *=, /=) gives x other memory: its views, or its base, stay as they were."""
    return _NewMemory(hit)


@plot.dispatched("aten.scatter_.src")
@accepted
def issue_22513(x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 22513: scatter_ into an expanded tensor is accepted: the last number for each place remains."""
    fits = x.dim() == index.dim() == source.dim() and source.dtype == x.dtype and 0 < index.numel() <= 10000
    if not fits or not any(side > 1 and not step for side, step in zip(x.shape, x.stride())):
        return None
    dim %= x.dim()
    small = all(
        n <= m and (d == dim or n <= size) for d, (n, m, size) in enumerate(zip(index.shape, source.shape, x.shape))
    )
    if not small or bool(((index < 0) | (index >= x.shape[dim])).any()):
        return None
    for place in itertools.product(*(range(n) for n in index.shape)):
        x[(*place[:dim], int(index[place]), *place[dim + 1 :])] = source[place]
    return x
