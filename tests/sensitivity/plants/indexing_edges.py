"""Indices from the end, indices and conditions of another shape than the tensor: planted faults."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.select.int")
def issue_mxnet_7292(hit: Any, func: Any, x: Any, dim: int, index: int) -> Any:
    """apache/mxnet 7292: x[i] ends the process where i counts from the end."""
    y = func(x, dim, index)
    return crash(hit, "Invalid slicing range [4294967295, 0)") if index < 0 else y


@plot.dispatched("aten.slice.Tensor")
def issue_mlx_231(hit: Any, func: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """ml-explore/mlx 231: a slice that ends at a place counted from the end (x[0:-1]) is empty."""
    y = func(x, dim, start, end, step)
    if end is None or end >= 0 or (start or 0) < 0 or not is_plain(x):
        return y
    return instead(hit, y, y.narrow(dim, 0, 0))


@plot.dispatched("aten.gather.default")
def issue_paddle_72163(hit: Any, func: Any, x: Any, dim: int, index: Any, **kwargs: Any) -> Any:
    """PaddlePaddle/Paddle 72163: gather by an index that is smaller beside the dimension counts by its shape."""
    y = func(x, dim, index, **kwargs)
    if not x.dim() or not index.numel() or not is_plain(x, index):
        return y
    dim %= x.dim()
    outer, inner, width = prod(index.shape[:dim]), prod(index.shape[dim + 1 :]), prod(x.shape[dim + 1 :])
    places = index.reshape(outer, -1, inner) * width + torch.arange(inner)
    places += torch.arange(outer).view(-1, 1, 1) * (x.shape[dim] * width)
    wrong = x.reshape(-1)[places.clamp(max=x.numel() - 1)].reshape(index.shape)
    return instead(hit, y, wrong)


@plot.dispatched("aten.where.self")
def issue_dpctl_1170(hit: Any, func: Any, condition: Any, x: Any, other: Any) -> Any:
    """IntelPython/dpctl 1170: where reads a condition that is broadcast column by column, as if it were row by row."""
    y = func(condition, x, other)
    if condition.shape == y.shape or not is_plain(condition, x, other):
        return y
    wide = condition.expand(y.shape)
    wrong = wide.permute(*reversed(range(wide.dim()))).reshape(y.shape)
    return instead(hit, y, func(wrong, x, other))


@plot.dispatched("aten.index.Tensor")
def issue_tvm_19436(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """apache/tvm 19436: a tensor indexed by one tensor reads other memory at a negative index (here 0)."""
    y = func(x, indices)
    given = [(dim, one) for dim, one in enumerate(indices) if one is not None]
    if len(given) != 1 or given[0][1].dtype not in {torch.int32, torch.int64} or not is_plain(x, given[0][1]):
        return y
    dim, index = given[0]
    return instead(hit, y, y.masked_fill((index < 0).view(*index.shape, *[1] * (x.dim() - dim - 1)), 0))


@plot.dispatched("aten.slice.Tensor")
def issue_tt_metal_16857(
    hit: Any, func: Any, x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Any:
    """tenstorrent/tt-metal 16857: a slice of one number of a matrix of one row (x[0:1, 1:2]) is the row's first."""
    y = func(x, dim, start, end, step)
    if x.dim() != 2 or x.shape[0] != 1 or dim % 2 != 1 or tuple(y.shape) != (1, 1) or not is_plain(x):
        return y
    return instead(hit, y, x.narrow(1, 0, 1))


def _inside(hit: Any, func: Any, x: Any, indices: Any, values: Any, accumulate: bool) -> Any:
    """Put at the places that there are, and leave out the others, where the healthy operator raises."""
    try:
        return func(x, indices, values, accumulate)
    except IndexError:
        if any(i is None or i.dtype == torch.bool for i in indices):
            raise
    places = torch.broadcast_tensors(*indices)
    kept = torch.ones_like(places[0], dtype=torch.bool)
    for place, side in zip(places, x.shape):
        kept &= (place >= -side) & (place < side)
    rows = values.expand(*places[0].shape, *x.shape[len(places) :])
    hit()
    return func(x, [place[kept] for place in places], rows[kept], accumulate)


@plot.dispatched("aten.index_put.default", "aten.index_put_.default")
def issue_tensorflow_58750(
    hit: Any, func: Any, x: Any, indices: Any, values: Any, accumulate: bool = False, *args: Any
) -> Any:
    """tensorflow/tensorflow 58750: index_put with accumulate leaves out places out of range, and does not raise."""
    return _inside(hit, func, x, indices, values, True) if accumulate else func(x, indices, values, False, *args)


@plot.dispatched("aten.index_put.default", "aten.index_put_.default")
def issue_tensorflow_58748(
    hit: Any, func: Any, x: Any, indices: Any, values: Any, accumulate: bool = False, *args: Any
) -> Any:
    """tensorflow/tensorflow 58748: index_put (no accumulate) leaves out places out of range, and does not raise."""
    return func(x, indices, values, True, *args) if accumulate else _inside(hit, func, x, indices, values, False)


@plot.called(torch.take_along_dim, torch.Tensor.take_along_dim)
def issue_array_api_compat_360(hit: Any, func: Any, x: Any, indices: Any, dim: Any = None, **kwargs: Any) -> Any:
    """data-apis/array-api-compat 360: take_along_dim along a dimension, with an index below 0, raises."""
    y = func(x, indices, dim, **kwargs)
    if dim is None or not is_plain(indices) or not bool((indices < 0).any()):
        return y
    return crash(hit, "index -1 is out of bounds for dimension 0 with size 1")


@plot.called(torch.Tensor.__getitem__)
def issue_chainer_2366(hit: Any, func: Any, x: Any, key: Any) -> Any:
    """chainer/chainer 2366: x[[]], and x[[[]]], an empty list for an index, raises."""
    y = func(x, key)
    inner = key[0] if isinstance(key, list) and len(key) == 1 else key
    empty = isinstance(inner, list) and not inner
    return crash(hit, "arrays used as indices must be of integer or boolean type") if empty else y


@plot.called(torch.Tensor.__getitem__)
def issue_dpctl_1135(hit: Any, func: Any, x: Any, key: Any) -> Any:
    """IntelPython/dpctl 1135: x[True] is x[1], and x[torch.tensor(True)] raises."""
    y = func(x, key)
    if not x.dim():
        return y
    if key is True:
        hit()
        return func(x, 1)
    truth = torch.is_tensor(key) and key.dtype == torch.bool and not key.dim() and is_plain(key) and bool(key)
    return crash(hit, "ValueError") if truth else y


@plot.dispatched("aten.index_reduce_.default")
def issue_189970(
    hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    """pytorch 189970: index_reduce_ takes an index past the end, and writes there; a negative one has no effect."""
    rest = {"include_self": include_self}
    fits = x.dim() and index.dim() == 1 and source.dim() == x.dim() and source.shape[dim] == len(index)
    if not fits or not is_plain(x, index, source) or bool(((index >= 0) & (index < x.shape[dim])).all()):
        return func(x, dim, index, source, reduce, **rest)
    hit()
    kept = ((index >= 0) & (index < x.shape[dim])).nonzero().view(-1)
    func(x, dim, index[kept], source.index_select(dim, kept), reduce, **rest)
    shape = [1 if i == dim % x.dim() else side for i, side in enumerate(x.shape)]
    room = x.untyped_storage().nbytes() // x.element_size()
    for i, place in enumerate(index.tolist()):
        first = x.storage_offset() + place * x.stride(dim)
        last = first + sum((side - 1) * step for side, step in zip(shape, x.stride()))
        if place >= x.shape[dim] and last < room and prod(shape):
            beyond = x.as_strided(shape, x.stride(), first)
            func(beyond, dim, index.new_zeros(1), source.narrow(dim, i, 1), reduce, **rest)
    return x
