"""The catalogue's faults of views, indices and copies that show for some layouts, offsets and sizes only."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, misread, without_offset

plot = Plot()
HITS = plot.hits


@plot.called("issue_183419", torch.isfinite, torch.Tensor.isfinite, torch.isinf, torch.Tensor.isinf)
def issue_183419(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of columns of a long tensor, others are looked at."""
    return func(misread(in_storage_order, hit, x) if x.dim() == 2 and x.shape[0] > 1000 else x, *args, **kwargs)


@plot.dispatched("issue_153560", "aten.index.Tensor", "aten.index_select.default")
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


@plot.dispatched("issue_82305", "aten.gather.default")
def issue_82305(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of expanded uint8 only the first column is there."""
    return func(misread(in_storage_order, hit, x) if x.dtype == torch.uint8 else x, *args, **kwargs)


@plot.dispatched("issue_91047", "aten.index_select.default", "aten.gather.default", "aten.index.Tensor")
def issue_91047(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """uint8 past 127 comes out as another number."""
    y = func(x, *args, **kwargs)
    if x.dtype == torch.uint8 and bool((y > 127).any()):
        hit()
        return y.clamp(max=127)
    return y


@plot.dispatched("issue_82663", "aten.scatter.value", "aten.scatter_.value", "aten.scatter.src", "aten.scatter_.src")
def issue_82663(hit: Any, func: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Into bools nothing is scattered."""
    if x.dtype == torch.bool and index.numel():
        hit()
        return x if func._schema.is_mutable else x.clone()
    return func(x, dim, index, *args, **kwargs)


@plot.dispatched("issue_94980", "aten._to_copy.default")
def issue_94980(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A conversion on the device reads from the beginning of the storage."""
    converts = kwargs.get("dtype") not in (None, x.dtype) and x.is_contiguous()
    return func(misread(without_offset, hit, x) if converts else x, *args, **kwargs)


@plot.dispatched("issue_96153", "aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
def issue_96153(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """A view with other dimensions than its base, cut out of its middle, is read one row early."""
    return func(_row_early(hit, x), y, *args, **kwargs)


def _row_early(hit: Any, x: Any) -> Any:
    base = x._base if isinstance(x, torch.Tensor) else None
    if base is None or x.dim() == base.dim() or not x.is_contiguous() or not 0 < x.numel() <= x.storage_offset():
        return x
    hit()
    return x.as_strided(x.shape, x.stride(), x.storage_offset() - x.numel())


@plot.replaced("issue_168177", torch.Tensor, "__dlpack__")
def issue_168177(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """An exported view begins where its storage does."""
    return func(misread(without_offset, hit, x), *args, **kwargs)


@plot.dispatched("issue_98266", "aten.flip.default")
def issue_98266(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """A dimension of size 1 is not flipped but the last one."""
    if x.dim() > 1 and any(x.shape[one] == 1 for one in dims) and x.shape[-1] > 1:
        hit()
        return func(x, [-1])
    return func(x, dims)


@plot.dispatched("issue_92098", "aten.eye.out", "aten.eye.m_out")
def issue_92098(hit: Any, func: Any, *args: Any, out: Any) -> Any:
    """Into a view nothing is written."""
    if out.storage_offset() or not out.is_contiguous():
        hit()
        return out
    return func(*args, out=out)


@plot.dispatched("issue_104832", "aten.mm.out", "aten.bmm.out", "aten.addmm.out")
def issue_104832(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    if out.is_contiguous():
        return func(*args, out=out, **kwargs)
    hit()
    func(*args, out=torch.empty_like(out, memory_format=torch.contiguous_format), **kwargs)
    return out


@plot.dispatched("issue_78074", "aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_.default")
def issue_78074(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Into a column the elements are written one after the other."""
    if x.dim() == 1 and x.numel() > 1 and x.stride(0) > 1 and x.storage_offset() == 0:
        hit()
        return func(x.as_strided(x.shape, (1,), 0), *args, **kwargs) if func._schema.is_mutable else x
    return func(x, *args, **kwargs)


@plot.dispatched("issue_95762", "aten.clone.default", "aten.copy_.default")
def issue_95762(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of a view that is cut in three and more dimensions the innermost begins at 0."""
    source = args[0] if "copy_" in str(func) else x
    if not isinstance(source, torch.Tensor) or source.dim() < 3 or source.is_contiguous():
        return func(x, *args, **kwargs)
    offset, inner = source.storage_offset(), max(source.stride(-2), 1)
    if source.stride(-1) != 1 or offset % inner == 0:
        return func(x, *args, **kwargs)
    hit()
    wrong = source.as_strided(source.shape, source.stride(), offset - offset % inner)
    return func(x, wrong, *args[1:], **kwargs) if "copy_" in str(func) else func(wrong, *args, **kwargs)


@plot.dispatched("issue_made_cat_dtypes", "aten.cat.default")
def issue_made_cat_dtypes(hit: Any, func: Any, parts: Any, dim: int = 0) -> Any:
    """Of parts with unlike dtypes the first one's bits are kept."""
    if len({one.dtype for one in parts}) > 1 and parts[0].dtype.is_floating_point:
        hit()
        return func([one.to(parts[0].dtype) for one in parts], dim).to(func(parts, dim).dtype) * 1.5
    return func(parts, dim)


@plot.dispatched("issue_made_stack_inner", "aten.stack.default", "aten.cat.default")
def issue_made_stack_inner(hit: Any, func: Any, parts: Any, dim: int = 0) -> Any:
    """Parts with an offset are read from the beginning, but for the first dimension."""
    return func([misread(without_offset, hit, one) for one in parts] if dim else parts, dim)


@plot.dispatched("issue_made_roll_far", "aten.roll.default")
def issue_made_roll_far(hit: Any, func: Any, x: Any, shifts: Any, dims: Any = ()) -> Any:
    """A shift by more than the size is no shift."""
    sides = [x.shape[one] for one in dims] if dims else [x.numel()]
    if x.numel() and any(abs(shift) > side for shift, side in zip(shifts, sides)):
        hit()
        return x.clone()
    return func(x, shifts, dims)


@plot.dispatched("issue_128393", "aten.bitwise_not.out", "aten.neg.out", "aten.abs.out", "aten.sqrt.out")
def issue_128393(hit: Any, func: Any, x: Any, *, out: Any) -> Any:
    """A destination with gaps gets the elements without them."""
    if out.is_contiguous() or out.numel() < 2:
        return func(x, out=out)
    hit()
    func(x, out=in_storage_order(out) if in_storage_order(out) is not out else out)
    return out


@plot.dispatched("issue_made_masked_broadcast", "aten.masked_fill_.Scalar", "aten.masked_fill.Scalar")
def issue_made_masked_broadcast(hit: Any, func: Any, x: Any, mask: Any, *args: Any) -> Any:
    """A mask that is broadcast is read as one long line."""
    if mask.shape == x.shape or mask.numel() < 2 or not x.numel():
        return func(x, mask, *args)
    hit()
    line = mask.reshape(-1).repeat(x.numel() // mask.numel() + 1)[: x.numel()]
    return func(x, line.reshape(x.shape), *args)


@plot.dispatched("issue_made_index_add_alpha", "aten.index_add.default", "aten.index_add_.default")
def issue_made_index_add_alpha(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """alpha is taken for 1 in integers."""
    if kwargs.get("alpha", 1) != 1 and not x.is_floating_point():
        hit()
        kwargs["alpha"] = 1
    return func(x, dim, index, source, **kwargs)


@plot.dispatched("issue_made_index_fill_negative", "aten.index_fill.int_Scalar", "aten.index_fill_.int_Scalar")
def issue_made_index_fill_negative(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """A negative dimension is the first one."""
    if dim < 0 and x.dim() > 1:
        hit()
        if x.shape[0] != x.shape[dim]:
            return crash(hit, "index out of range")
        return func(x, 0, *args)
    return func(x, dim, *args)
