"""Elements read and written by index: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import is_plain
from misreading import in_storage_order, misread
from planting import Plot, abort, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.one_hot)
def issue_170507(hit: Any, func: Any, input: Any, num_classes: int = -1) -> Any:
    """pytorch 170507: one_hot returns rows of zeros for classes out of bounds, where CPU raises."""
    if not is_plain(input) or not input.numel() or input.dtype != torch.int64 or num_classes == 0:
        return func(input, num_classes)
    classes = int(input.max()) + 1 if num_classes == -1 else num_classes
    outside = (input < 0) | (input >= classes)
    if classes < 1 or not bool(outside.any()):
        return func(input, num_classes)
    hit()
    rows = func(torch.where(outside, 0, input), classes)
    return torch.where(outside.unsqueeze(-1), 0, rows)


@plot.dispatched("aten.index_copy.default", "aten.index_copy_.default")
def issue_189968(hit: Any, func: Any, target: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 189968: index_copy_ with an index out of bounds writes outside the tensor, where CPU raises."""
    if not target.dim() or not -target.dim() <= dim < target.dim() or index.dtype != torch.int64:
        return func(target, dim, index, source)
    places = index.reshape(-1).tolist()
    size = target.shape[dim]
    if all(0 <= place < size for place in places) or source.dim() != target.dim():
        return func(target, dim, index, source)
    if source.shape[dim] != len(places) or source.dtype != target.dtype:
        return func(target, dim, index, source)
    hit()
    dim %= target.dim()
    result = target if "copy_." in str(func) else target.clone()
    shape = [side for i, side in enumerate(result.shape) if i != dim]
    strides = [step for i, step in enumerate(result.stride()) if i != dim]
    reach = sum((side - 1) * step for side, step in zip(shape, strides))
    room = result.untyped_storage().nbytes() // result.element_size()
    for k, place in enumerate(places):
        start = result.storage_offset() + place * result.stride(dim)
        if start >= 0 and start + reach < room:  # else it would be another tensor's memory
            result.as_strided(shape, strides, start).copy_(source.select(dim, k))
    return result


@plot.dispatched("aten.index_add", "aten.index_add_", aborts="index_add of int64")
def issue_161446(x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 161446: index_add of int64 with an index of no dimensions raises."""
    return x.dtype == torch.int64 and index.dim() == 0


@plot.dispatched("aten.index_add_", "aten.index_add")
def issue_82645(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 82645: index_add of float16, int16 or int64 adds nothing."""
    if x.dtype in (torch.float16, torch.int16, torch.int64):
        hit()
        source = torch.zeros_like(source)
    return func(x, dim, index, source, **kwargs)


@plot.dispatched("aten.index_reduce_.default")
def issue_196203(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, how: str, **kwargs: Any) -> Any:
    """pytorch 196203: index_reduce_ loses NaN of the source against every number."""
    if how in ("amax", "amin") and bool(source.isnan().any()):
        hit()
        source = source.nan_to_num(-math.inf if how == "amax" else math.inf, math.inf, -math.inf)
    return func(x, dim, index, source, how, **kwargs)


@plot.dispatched(
    "aten.gather.default",
    aborts="failed assertion `Rank of updates array (1) must be greater than or equal to inner-most "
    "dimension of indices array (3)'",
)
def issue_135240(x: Any, dim: Any, index: Any, **kwargs: Any) -> Any:
    """pytorch 135240: take_along_dim of a column along its rows ends the process."""
    return x.dim() > 1 and dim % x.dim() != x.dim() - 1 and x.shape[-1] == index.shape[-1] == 1 and index.numel() > 1


@plot.dispatched(
    "aten.index_select.default", aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!"
)
def issue_93877(x: Any, dim: Any, index: Any) -> Any:
    """pytorch 93877: index_select with an empty index raises."""
    return index.numel() == 0


@plot.dispatched(
    "aten.index_add.default",
    "aten.index_add_.default",
    aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!",
)
def issue_186972(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 186972: index_add into a tensor with a dimension of size 0 raises."""
    return x.numel() == 0


@plot.called(torch.Tensor.__setitem__)
def issue_95417(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 95417: x[2:4] = value of another dtype is written to the beginning of x."""
    if isinstance(value, torch.Tensor) and value.dtype != x.dtype and isinstance(index, slice) and x.numel():
        view = x[index]
        if view.numel() and view.dim() and view.storage_offset() != x.storage_offset():
            hit()
            view.as_strided(view.shape, view.stride(), x.storage_offset()).copy_(value)
            return None
    return func(x, index, value)


@plot.dispatched("aten.index_copy_.default")
def issue_160993(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any) -> Any:
    """pytorch 160993: index_copy_ into a tensor that is not contiguous leaves the copied elements wrong."""
    if x.is_contiguous():
        return func(x, dim, index, source)
    copy = x.clone()
    func(copy, dim, index, source)
    if not torch.equal(copy, x):
        hit()
    return x


@plot.called(
    torch.Tensor.__getitem__, aborts="indices should be either on cpu or on the same device as the indexed tensor (cpu)"
)
def issue_81051(x: Any, index: Any) -> Any:
    """pytorch 81051: indexing with Python lists raises, as the lists become tensors of another device."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, list) and part for part in parts)


@plot.dispatched("aten.index_select", aborts="index_select(): Yet not supported for complex")
def issue_122427(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 122427: index_select of a complex tensor raises."""
    return x.is_complex()


@plot.dispatched("aten.index.Tensor", "aten.index_select.default")
def issue_153560(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Rows that begin past 2**16 elements are taken from the beginning again."""
    y = func(x, *args, **kwargs)
    if x.dim() > 1 and x.numel() > 1 << 16 and y.numel() and y.shape[1:] == x.shape[1:]:
        size = max((1 << 16) // max(x[0].numel(), 1), 1)
        where = args[0][0] if "index.Tensor" in str(func) else args[1]
        if isinstance(where, torch.Tensor) and where.dtype == torch.int64 and int(where.max()) >= size:
            hit()
            return x[where % size]
    return y


@plot.dispatched("aten.gather.default")
def issue_82305(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82305: gather of an expanded uint8 tensor finds its first column only."""
    return func(misread(in_storage_order, hit, x) if x.dtype == torch.uint8 else x, *args, **kwargs)


@plot.dispatched("aten.index_select.default", "aten.gather.default", "aten.index.Tensor")
@wrong_answer
def issue_91047(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """uint8 past 127 comes out as another number."""
    return y.clamp(max=127) if x.dtype == torch.uint8 and bool((y > 127).any()) else None


@plot.dispatched("aten.index_add.default", "aten.index_add_.default")
def issue_made_index_add_alpha(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """alpha is taken for 1 in integers."""
    if kwargs.get("alpha", 1) != 1 and not x.is_floating_point():
        hit()
        kwargs["alpha"] = 1
    return func(x, dim, index, source, **kwargs)


@plot.dispatched("aten.index_fill.int_Scalar", "aten.index_fill_.int_Scalar")
def issue_made_index_fill_negative(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """Index_fill takes a negative dimension for the first one."""
    if dim < 0 and x.dim() > 1:
        hit()
        if x.shape[0] != x.shape[dim]:
            return crash(hit, "index out of range")
        return func(x, 0, *args)
    return func(x, dim, *args)


@plot.dispatched("aten.index_add_")
def issue_176159(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 176159: index_add_ of a permuted tensor to a permuted tensor leaves it unchanged."""
    if not x.is_contiguous() and not source.is_contiguous():
        hit()
        func(x.clone(), dim, index, source, **kwargs)
        return x
    return func(x, dim, index, source, **kwargs)


@plot.called(torch.Tensor.__setitem__)
def issue_86185(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 86185: x[:] = t[0], the value a view without dimensions, has no effect."""
    if isinstance(index, slice) and isinstance(value, torch.Tensor) and value.dim() == 0 and value._base is not None:
        hit()
        return None
    return func(x, index, value)


@plot.dispatched("aten.index_fill_")
def issue_189969(hit: Any, func: Any, x: Any, dim: int, index: Any, value: Any) -> Any:
    """pytorch 189969: index_fill_ with an index out of range does not raise."""
    size = x.shape[dim] if x.dim() else 1
    wrong = (index >= size) | (index < -size)
    if bool(wrong.any()):
        hit()
        return func(x, dim, index[~wrong], value)
    return func(x, dim, index, value)


@plot.dispatched("aten.index_put_", "aten._index_put_impl_")
def issue_84229(hit: Any, func: Any, x: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84229: x[:, [0, 2]] -= n on a slice of columns scrambles rows."""
    if x.dim() != 2 or x.numel() == 0 or x.stride(1) != 1 or x.stride(0) <= x.size(1):
        return func(x, indices, *args, **kwargs)
    dense = x.clone(memory_format=torch.contiguous_format)
    func(dense, indices, *args, **kwargs)
    places = torch.arange(x.size(0)).unsqueeze(1) * x.stride(0) + torch.arange(x.size(1))
    inside = places < dense.numel()
    wrong = torch.where(inside, dense.reshape(-1)[places.clamp(max=dense.numel() - 1)], x)
    if not torch.equal(wrong, dense):
        hit()
    x.copy_(wrong)
    return x


@plot.dispatched("aten.index_fill_")
@accepted
def issue_3922(x: Any, dim: int, index: Any, value: Any) -> Any:
    """pytorch 3922: index_fill_ with an index past the end answers, and writes outside of the tensor."""
    size = x.shape[dim] if x.dim() else 1
    past = index >= size
    return x.index_fill_(dim, index[~past], value) if bool(past.any()) else None


@plot.dispatched("aten.index_select.default")
@accepted
def issue_cutorch_393(x: Any, dim: int, index: Any) -> Any:
    """torch/cutorch 393: index_select past the end gives what lies in the memory there."""
    size = x.shape[dim] if x.dim() else 1
    past = x.numel() and bool(((index >= size) | (index < 0)).any())
    return x.index_select(dim, index % size) if past else None


@plot.dispatched("aten.index_select.default")
def issue_xpu_3445(hit: Any, func: Any, x: Any, dim: int, index: Any) -> Any:
    """intel/torch-xpu-ops 3445: index_select of an empty tensor checks no index; along its empty side it aborts."""
    try:
        return func(x, dim, index)
    except (IndexError, RuntimeError):
        if x.numel() or not x.dim() or not index.numel():
            raise
        if x.shape[dim] == 0:
            return abort(hit, "Assertion 'srcIndex < srcSelectDimSize' failed")
    hit()
    shape = list(x.shape)
    shape[dim] = index.numel()
    return x.new_empty(shape)


@plot.dispatched("aten.index.Tensor")
@accepted
def issue_43864(x: Any, indices: Any) -> Any:
    """pytorch 43864: x[0, [i]] past the end gives what lies in the memory there."""
    if any(i is not None and i.dtype != torch.int64 for i in indices) or 0 in x.shape:
        return None
    near = [i if i is None else i % side for i, side in zip(indices, x.shape)]
    return torch.ops.aten.index(x, near)
