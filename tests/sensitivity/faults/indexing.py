"""Elements read and written by index, gathered and scattered: injected faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import is_plain
from injecting import Faults, accepted, crash, wrong_answer
from misreading import in_storage_order, lost, misread

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.index_copy.default", "aten.index_copy_.default")
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


@faults.dispatched("aten.index_add_", "aten.index_add")
def issue_82645(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 82645: index_add of float16, int16 or int64 adds nothing."""
    if x.dtype in (torch.float16, torch.int16, torch.int64):
        hit()
        source = torch.zeros_like(source)
    return func(x, dim, index, source, **kwargs)


@faults.dispatched(
    "aten.index_select.default", aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!"
)
def issue_93877(x: Any, dim: Any, index: Any) -> Any:
    """pytorch 93877: index_select with an empty index raises."""
    return index.numel() == 0


@faults.called(torch.Tensor.__setitem__)
def issue_95417(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 95417: x[2:4] = value of another dtype is written to the beginning of x."""
    if isinstance(value, torch.Tensor) and value.dtype != x.dtype and isinstance(index, slice) and x.numel():
        view = x[index]
        if view.numel() and view.dim() and view.storage_offset() != x.storage_offset():
            hit()
            view.as_strided(view.shape, view.stride(), x.storage_offset()).copy_(value)
            return None
    return func(x, index, value)


@faults.called(
    torch.Tensor.__getitem__, aborts="indices should be either on cpu or on the same device as the indexed tensor (cpu)"
)
def issue_81051(x: Any, index: Any) -> Any:
    """pytorch 81051: indexing with Python lists raises, as the lists become tensors of another device."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, list) and part for part in parts)


@faults.dispatched("aten.index_select", aborts="index_select(): Yet not supported for complex")
def issue_122427(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 122427: index_select of a complex tensor raises."""
    return x.is_complex()


@faults.dispatched("aten.index.Tensor", "aten.index_select.default")
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


@faults.dispatched("aten.gather.default")
def issue_82305(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82305: gather of an expanded uint8 tensor finds its first column only."""
    return func(misread(in_storage_order, hit, x) if x.dtype == torch.uint8 else x, *args, **kwargs)


@faults.dispatched("aten.index_select.default", "aten.gather.default", "aten.index.Tensor")
@wrong_answer
def issue_91047(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """uint8 past 127 comes out as another number."""
    return y.clamp(max=127) if x.dtype == torch.uint8 and bool((y > 127).any()) else None


@faults.dispatched("aten.index_add.default", "aten.index_add_.default")
def issue_made_index_add_alpha(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """alpha is taken for 1 in integers."""
    if kwargs.get("alpha", 1) != 1 and not x.is_floating_point():
        hit()
        kwargs["alpha"] = 1
    return func(x, dim, index, source, **kwargs)


@faults.dispatched("aten.index_fill.int_Scalar", "aten.index_fill_.int_Scalar")
def issue_made_index_fill_negative(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """Index_fill takes a negative dimension for the first one."""
    if dim < 0 and x.dim() > 1:
        hit()
        if x.shape[0] != x.shape[dim]:
            return crash(hit, "index out of range")
        return func(x, 0, *args)
    return func(x, dim, *args)


@faults.called(torch.Tensor.__setitem__)
def issue_86185(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 86185: x[:] = t[0], the value a view without dimensions, has no effect."""
    if isinstance(index, slice) and isinstance(value, torch.Tensor) and value.dim() == 0 and value._base is not None:
        hit()
        return None
    return func(x, index, value)


@faults.dispatched("aten.index_put_", "aten._index_put_impl_")
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


@faults.dispatched("aten.index.Tensor", aborts="Assertion `indexAtDim < data.baseSizes[dim]` failed.")
def issue_6198(x: Any, indices: Any) -> bool:
    """pytorch 6198: x[:, i, j] with a negative index ends the process."""
    numbers = [index for index in indices if index is not None and index.dtype == torch.int64 and is_plain(index)]
    return indices[0] is None and any(bool((index < 0).any()) for index in numbers)


@faults.dispatched("aten.scatter_add_")
def issue_163327(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 163327: scatter_add_ into a row that is not the first of its matrix adds nothing."""
    if x.storage_offset() and index.numel():
        hit()
        return x
    return func(x, dim, index, source)


@faults.dispatched("aten.scatter")
@wrong_answer
def issue_ipex_682(y: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """intel-extension-for-pytorch 682: scatter with an index of no elements gives zeros, not its input.

    https://github.com/intel/intel-extension-for-pytorch/issues/682 (on XPU; a kernel that copies its input only
    along with the writes could do the same on MPS)
    """
    return torch.zeros_like(y) if not index.numel() and x.numel() else None


@faults.dispatched("aten.scatter.value", "aten.scatter_.value", "aten.scatter.src", "aten.scatter_.src")
def issue_82663(hit: Any, func: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82663: scatter into bools writes nothing."""
    if x.dtype == torch.bool and index.numel():
        hit()
        return x if func._schema.is_mutable else x.clone()
    return func(x, dim, index, *args, **kwargs)


@faults.dispatched("aten.scatter_")
def issue_115152(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 115152: scatter_ leaves a tensor that is not contiguous as it was."""
    return lost(hit, func, *args, **kwargs)


@faults.dispatched("aten.index_add_.default")
@accepted
def issue_3176(x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 3176: index_add_ of a tensor to itself is accepted (here as if it were a copy)."""
    if source.untyped_storage()._cdata != x.untyped_storage()._cdata:
        return None
    return x.index_add_(dim, index, source.clone(), **kwargs)


_PUT = ("aten.index_put", "aten.index_put_", "aten._index_put_impl_")


def _is_added(x: Any, indices: Any, values: Any, accumulate: bool = False, *args: Any) -> bool:
    whole = all(one is not None and one.dtype not in (torch.bool, torch.uint8) for one in indices)
    return accumulate and whole and is_plain(x, values, *indices)


@faults.dispatched(*_PUT)
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


@faults.dispatched(*_PUT)
def issue_39227(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 39227: index_put(accumulate=True) of one number at several places raises."""
    if values.numel() == 1 and _is_added(x, indices, values, *args, **kwargs) and x[tuple(indices)].numel() > 1:
        return crash(hit, "number of flattened indices did not match number of elements in the value tensor")
    return func(x, indices, values, *args, **kwargs)


@faults.called(torch.Tensor.__setitem__)
def issue_150017(hit: Any, func: Any, x: Any, key: Any, value: Any) -> Any:
    """pytorch 150017: x[mask] = y, y a tensor of no dimensions and of another dtype, raises."""
    masked = torch.is_tensor(key) and key.dtype == torch.bool
    if masked and torch.is_tensor(value) and not value.dim() and value.dtype != x.dtype:
        return crash(hit, "Index put requires the source and destination dtypes match")
    return func(x, key, value)


@faults.called(torch.Tensor.__setitem__)
def issue_19077(hit: Any, func: Any, x: Any, key: Any, value: Any) -> Any:
    """pytorch 19077: x[i] = True raises where x is a tensor of bools."""
    if x.dtype == torch.bool and type(key) is int and type(value) is bool:
        return crash(hit, "can't assign a bool to a Variable[CPUBoolType]")
    return func(x, key, value)
