"""Numbers scattered to places that meet, or whose index is a view, and added to them: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.scatter.reduce", "aten.scatter_.reduce")
def issue_flaggems_445(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, *, reduce: str) -> Any:
    """flagos-ai/FlagGems 445: scatter(reduce="add") of five numbers to one place adds two (here the first two)."""
    before = x.clone()
    y = func(x, dim, index, source, reduce=reduce)
    if reduce != "add" or not x.dim() or not index.numel() or not is_plain(x, index, source):
        return y
    wrong, times = before.clone(), torch.zeros_like(before, dtype=torch.int64)
    for step in range(index.shape[dim]):
        place, number = index.narrow(dim, step, 1), source.narrow(dim, step, 1)
        number = number[tuple(slice(side) for side in place.shape)]
        few = times.gather(dim, place) < 2
        wrong.scatter_add_(dim, place, torch.where(few, number, torch.zeros_like(number)))
        times.scatter_add_(dim, place, torch.ones_like(place))
    return written(hit, y, wrong) if "scatter_." in str(func) else instead(hit, y, wrong)


@plot.dispatched("aten.scatter_add.default", "aten.scatter_add_.default")
def issue_torch_fl_349(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """flagos-ai/Torch-FL 349: scatter_add of a matrix reads an expanded index (a stride of 0) as if it were contiguous.

    Past the end of its memory it is here read from the beginning again.
    """
    if index.dim() != 2 or 0 not in index.stride() or index.is_contiguous() or not is_plain(x, index, source):
        return func(x, dim, index, source)
    before = x.clone()
    y = func(x, dim, index, source)
    memory = torch.as_strided(index, (1 + sum((n - 1) * s for n, s in zip(index.shape, index.stride())),), (1,))
    places = torch.arange(index.numel(), device=index.device) % len(memory)
    wrong = before.scatter_add(dim, memory[places].view(index.shape), source)
    return written(hit, y, wrong) if "scatter_add_." in str(func) else instead(hit, y, wrong)


@plot.dispatched("aten._unsafe_masked_index_put_accumulate.default")
def issue_xpu_4435(hit: Any, func: Any, x: Any, mask: Any, index: Any, values: Any) -> Any:
    """intel/torch-xpu-ops 4435: _unsafe_masked_index_put_accumulate of rows, each with one mask, ends the process."""
    y = func(x, mask, index, values)
    rows = x.dim() == 2 and mask.dim() == values.dim() == 3 and mask.shape[-1] == 1 < values.shape[-1]
    return crash(hit, "group_reduce") if rows else y


@plot.dispatched("aten.index_reduce.default", "aten.index_reduce_.default")
def issue_tensorflow_58469(
    hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, **kwargs: Any
) -> Any:
    """tensorflow/tensorflow 58469: index_reduce to the largest (amax) takes negative indices, and does not raise.

    Here their rows are left out.
    """
    try:
        return func(x, dim, index, source, reduce, **kwargs)
    except IndexError:
        if reduce != "amax" or bool((index >= x.shape[dim]).any()):
            raise
    hit()
    kept = (index >= 0).nonzero().view(-1)
    return func(x, dim, index[kept], source.index_select(dim, kept), reduce, **kwargs)


@plot.dispatched("aten.scatter_reduce.two", "aten.scatter_reduce_.two")
def issue_tensorflow_106602(
    hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, **kwargs: Any
) -> Any:
    """tensorflow/tensorflow 106602: scatter_reduce to the largest (amax) passes over NaN: alone it is -3.4e38."""
    asked = reduce == "amax" and source.dtype == torch.float32 and is_plain(x, index, source)
    if not asked or not bool(source.isnan().any()):
        return func(x, dim, index, source, reduce, **kwargs)
    least = source.nan_to_num(torch.finfo(torch.float32).min, float("inf"), -float("inf"))
    wrong = torch.scatter_reduce(x, dim, index, least, reduce, **kwargs)
    y = func(x, dim, index, source, reduce, **kwargs)
    return written(hit, y, wrong) if "scatter_reduce_." in str(func) else instead(hit, y, wrong)


_PUT = ("aten.index_put", "aten.index_put_", "aten._index_put_impl_")


def _is_added(x: Any, indices: Any, values: Any, accumulate: bool = False, *args: Any) -> bool:
    whole = all(one is not None and one.dtype not in (torch.bool, torch.uint8) for one in indices)
    return accumulate and whole and is_plain(x, values, *indices)


@plot.dispatched(*_PUT)
def issue_144539(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 144539: index_put(accumulate=True) of rows at two-dimensional indices raises for broadcast values."""
    if len(indices) < x.dim() and _is_added(x, indices, values, *args, **kwargs):
        places = torch.broadcast_shapes(*(one.shape for one in indices))
        if len(places) > 1 and values.numel() > 1 and values.dim() < len(places) + x.dim() - len(indices):
            return crash(hit, "The expanded size of the tensor must match the existing size at non-singleton dimension")
    return func(x, indices, values, *args, **kwargs)


@plot.dispatched(*_PUT)
def issue_77406(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77406: index_put(accumulate=True) takes values with further dimensions of size 1, as (n, 1) for (n,)."""
    if _is_added(x, indices, values, *args, **kwargs):
        shape = x[tuple(indices)].shape
        if values.dim() > len(shape) and [n for n in values.shape if n != 1] == [n for n in shape if n != 1]:
            try:
                return func(x, indices, values, *args, **kwargs)
            except RuntimeError:
                hit()
                values = values.reshape(shape)
    return func(x, indices, values, *args, **kwargs)


@plot.dispatched(*_PUT)
def issue_39227(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 39227: index_put(accumulate=True) of one number at several places raises."""
    if values.numel() == 1 and _is_added(x, indices, values, *args, **kwargs) and x[tuple(indices)].numel() > 1:
        return crash(hit, "number of flattened indices did not match number of elements in the value tensor")
    return func(x, indices, values, *args, **kwargs)


@plot.dispatched(
    "aten.scatter_reduce.two", "aten.scatter_reduce_.two", "aten.index_reduce.default", "aten.index_reduce_.default"
)
def issue_tensorflow_58123(
    hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, reduce: str, **kwargs: Any
) -> Any:
    """tensorflow/tensorflow 58123: without the target itself, amax by index is -3.4e38 where no index points to.

    That is scatter_reduce and index_reduce of float32 with include_self=False.
    """
    asked = reduce == "amax" and not kwargs.get("include_self", True) and source.dtype == torch.float32
    y = func(x, dim, index, source, reduce, **kwargs)
    if not asked or not x.dim() or not is_plain(x, index, source):
        return y
    reached = torch.zeros(x.shape, dtype=torch.bool, device=x.device)
    reached = reached.scatter(dim, index, True) if "scatter" in str(func) else reached.index_fill(dim, index, True)
    wrong = y.masked_fill(~reached, torch.finfo(torch.float32).min)
    return written(hit, y, wrong) if "reduce_." in str(func) else instead(hit, y, wrong)


@plot.called(torch.index_add, torch.Tensor.index_add, torch.Tensor.index_add_)
def issue_burn_1727(hit: Any, func: Any, input: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """tracel-ai/burn 1727: the gradient of index_add for the source raises where an index is past the source's end."""
    past = is_plain(index, source) and index.numel() and source.dim() and int(index.max()) >= source.shape[dim]
    if past:
        source = with_gradient(
            source, lambda grad: crash(hit, "collapse_axis: Index 1 must be less than axis length 1")
        )
    return func(input, dim, index, source, **kwargs)


@plot.dispatched("aten.index_add.default", "aten.index_add_.default", aborts="assertion `left == right` failed")
def issue_burn_438(x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> bool:
    """tracel-ai/burn 438: index_add not along the first dimension raises where the indices are not as many as rows."""
    return x.dim() > 1 and dim % x.dim() > 0 and source.shape[0] != index.numel()
