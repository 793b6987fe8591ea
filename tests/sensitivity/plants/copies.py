"""Copies on the device and fills: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from misreading import in_storage_order, is_dense, lost, misread, without_offset
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.zero_")
def issue_94190(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 94190: fill_ and zero_ leave a tensor that is not contiguous as it was."""
    return lost(hit, func, x, *args)


@plot.dispatched("aten.fill_.Scalar", "aten.zero_")
def issue_94390(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 94390: fill_ of a view with a storage offset fills the beginning of the storage."""
    if x.storage_offset() and x.numel() > 1:
        hit()
        func(without_offset(x), *args)
        return x
    return func(x, *args)


@plot.dispatched("aten.copy_.default")
def issue_101936(hit: Any, func: Any, x: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 101936: a[10] = b of an int32 tensor and an int64 value writes to the beginning of a's storage."""
    if x.dtype != torch.int32 or source.dtype != torch.int64 or not x.storage_offset() or not x.numel():
        return func(x, source, *args, **kwargs)
    wrong = x.as_strided(x.shape, x.stride(), 0)
    if not (torch.equal(x, source.expand_as(x)) and torch.equal(wrong, source.expand_as(x))):
        hit()
    func(wrong, source, *args, **kwargs)
    return x


@plot.dispatched("aten.copy_.default")
def issue_99989(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 99989: copying single elements (cv[i] = mv[i]) always writes to the first element of the storage."""
    if target.dim() == 0 and source.dim() == 0 and target.storage_offset() > 0:
        hit()
        func(target.as_strided((), (), 0), source, *args)
        return target
    return func(target, source, *args)


@plot.dispatched("aten.copy_")
def issue_105277(hit: Any, func: Any, x: Any, source: Any, *args: Any) -> Any:
    """pytorch 105277: y.copy_(x.unsqueeze(1)) repeats x along the rows in the place of the columns."""
    column = source.layout == torch.strided and source.dim() == x.dim() == 2 and source.shape[0] == x.shape[0] > 1
    if column and source.shape[1] == 1 < x.shape[1]:
        places = torch.arange(x.numel(), device=source.device) % source.shape[0]
        hit()
        source = source.reshape(-1)[places].view(x.shape)
    return func(x, source, *args)


@plot.dispatched("aten.copy_.default")
def issue_182052(hit: Any, func: Any, x: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182052: copy_ into a strided view wraps offsets beyond 2**32 elements (here 2**16)."""
    reach = sum((side - 1) * step for side, step in zip(x.shape, x.stride()))
    if not x.numel() or x.is_contiguous() or reach < 2**16:
        return func(x, source, *args, **kwargs)
    true, wrapped = torch.zeros(x.shape, dtype=torch.long), torch.zeros(x.shape, dtype=torch.long)
    for dim, (side, step) in enumerate(zip(x.shape, x.stride())):
        part = (torch.arange(side) * step).view([-1 if d == dim else 1 for d in range(x.dim())])
        true, wrapped = true + part, wrapped + part % 2**16
    if torch.equal(true, wrapped):
        return func(x, source, *args, **kwargs)
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    whole = x.as_strided((room,), (1,), x.storage_offset())
    values = source.to(x.dtype).expand(x.shape).reshape(-1).clone()
    whole[wrapped.reshape(-1)] = values
    if not torch.equal(x.reshape(-1), values):
        hit()
    return x


@plot.dispatched("aten.copy_.default")
def issue_86975(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 86975: assignment to a strided column (a[1:, 1] = b) writes consecutive elements from the offset on.

    The issue's b lies on the CPU and a on MPS, which one device cannot tell apart:
    here any tensor b of a's dtype does it.
    https://github.com/pytorch/pytorch/issues/86975
    """
    if (
        target.dim() == 1
        and target.numel() > 1
        and target.stride(0) > 1
        and target.storage_offset() > 0
        and source.shape == target.shape
        and source.dtype == target.dtype
        and source.is_contiguous()
    ):
        hit()
        func(target.as_strided(target.shape, (1,), target.storage_offset()), source.clone(), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("aten.copy_.default")
def issue_123836(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 123836: M[1, 1] = tensor([3.]) writes to the beginning of M.

    The issue's M lies on the CPU and the value on MPS, which one device cannot tell apart; here any tensor does it.
    https://github.com/pytorch/pytorch/issues/123836
    """
    if target.dim() == 0 and target.storage_offset() > 0:
        hit()
        func(target.as_strided((), (), 0), source.clone(), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_.default")
def issue_78074(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78074: fill_ and copy_ write into a column as if its elements lay one after the other."""
    if x.dim() == 1 and x.numel() > 1 and x.stride(0) > 1 and x.storage_offset() == 0:
        hit()
        return func(x.as_strided(x.shape, (1,), 0), *args, **kwargs) if func._schema.is_mutable else x
    return func(x, *args, **kwargs)


@plot.dispatched("aten.clone.default", "aten.copy_.default")
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


@plot.dispatched("aten.zero_", "aten.fill_.Scalar")
def issue_114692(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 114692: zero_ and fill_ write one element more than asked for."""
    beyond = x.storage_offset() + x.numel()
    if x.numel() and x.is_contiguous() and beyond < x.untyped_storage().nbytes() // x.element_size():
        hit()
        func(x.as_strided((1,), (1,), beyond), *args)
    return func(x, *args)


_pending: list[Any] = []


@plot.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_")
def issue_122016(hit: Any, func: Any, x: Any, value: Any, *args: Any) -> Any:
    """pytorch 122016: fill_ and copy_ of one element write the element before it too."""
    if x.dim() == 0 and x._is_view():
        if _pending and _pending[0].untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            hit()
            func(_pending[0], value, *args)
        _pending[:] = [x]
    return func(x, value, *args)


@plot.dispatched("aten.fill_.Scalar")
def issue_183631(hit: Any, func: Any, x: Any, value: Any) -> Any:
    """pytorch 183631: fill_ of a view of one-byte elements begins at a multiple of four bytes."""
    if x.element_size() == 1 and x.storage_offset() % 4:
        hit()
        func(x.as_strided(x.shape, x.stride(), x.storage_offset() // 4 * 4), value)
        return x
    return func(x, value)


@plot.dispatched("aten.add.Tensor", "aten.clone", "aten.fill_.Scalar", "aten.sum")
def issue_95323(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95323: add, clone, fill_ and sum read a uint8 view from the beginning of its storage."""
    if x.dtype == torch.uint8:
        x = misread(without_offset, hit, x)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.copy_")
def issue_189961(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 189961: copy_ between views with equal strides and gaps copies the gaps and not all elements."""
    if not target.is_contiguous() and target.stride() == source.stride() and target.numel() > 1:
        hit()
        row = (target.numel(),), (1,)
        func(target.as_strided(*row, target.storage_offset()), source.as_strided(*row, source.storage_offset()), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("aten.copy_")
def issue_108978(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 108978: copy_ into a row writes to the beginning of the storage."""
    if target.dim() == 1 and target.storage_offset() and target.is_contiguous():
        hit()
        func(without_offset(target), source, *args)
        return target
    return func(target, source, *args)


@plot.dispatched("aten.fill_")
def issue_78886(hit: Any, func: Any, x: Any, value: Any) -> Any:
    """pytorch 78886: x[::2] = 1.0 fills the first elements one after the other, not every second one."""
    if x.dim() == 1 and x.stride(0) > 1 and x.numel() > 1:
        hit()
        func(x.as_strided(x.shape, (1,), x.storage_offset()), value)
        return x
    return func(x, value)


@plot.dispatched("aten.copy_", aborts="Unaligned blit request")
def issue_119367(x: Any, source: Any, *args: Any) -> Any:
    """pytorch 119367: x[1:2].copy_(y[1:2]) of one-byte dtypes at an offset that is no multiple of four raises."""
    plain = x.element_size() == 1 and x.dtype == source.dtype and x.numel() and x.is_contiguous()
    return plain and x.storage_offset() % 4 and source.storage_offset() % 4


@plot.dispatched("aten.copy_.default")
def issue_mlx_1144(hit: Any, func: Any, x: Any, source: Any, *args: Any) -> Any:
    """ml-explore/mlx 1144: a[i, j] = b of complex64 past 2**32 bytes writes elsewhere (here past 2**16 bytes)."""
    place = x.storage_offset() % 2**13
    if x.dtype != torch.complex64 or place == x.storage_offset() or not x.numel():
        return func(x, source, *args)
    healthy = source.expand(x.shape).to(x.dtype)
    if differ(x, healthy):
        hit()
    func(x.as_strided(x.shape, x.stride(), place), source, *args)
    return x


@plot.dispatched(
    "aten.copy_.default",
    "aten.clone.default",
    "aten._to_copy.default",
    aborts="more than one element of the written-to tensor refers to a single memory location",
)
def issue_33812(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 33812: a copy of a tensor with a stride of 0 along a dimension of size 1 raises."""
    if x.layout != torch.strided or x.numel() < 2:
        return False
    return any(side == 1 and not step for side, step in zip(x.shape, x.stride()))


@plot.dispatched("aten.fill_.Scalar", "aten.ones.default", aborts="Could not run 'aten::fill_.Scalar'")
def issue_72775(*args: Any, **kwargs: Any) -> bool:
    """pytorch 72775: fill_, and with it torch.ones, is not implemented."""
    return True


_float_shapes: set[Any] = set()


@plot.dispatched("aten.clone.default")
def issue_tt_metal_19217(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 19217: integers transposed after floats of their shape are wrong (here in storage order)."""
    y = func(x, **kwargs)
    if x.is_contiguous() or not is_dense(x) or not y.is_contiguous() or not is_plain(x):
        return y
    layout = (tuple(x.shape), x.stride())
    if x.is_floating_point():
        _float_shapes.add(layout)
        return y
    met = layout in _float_shapes and not x.is_complex() and x.dtype != torch.bool
    return instead(hit, y, in_storage_order(x).clone()) if met else y


@plot.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor")
def issue_96181(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 96181: fill_ of a column but the first (x[:, -1] = 1) ends the process."""
    if x.numel() and x.storage_offset() and not x.is_contiguous():
        return crash(hit, "Error: buffer is not large enough.")
    return func(x, *args)


@plot.dispatched("aten.clone.default")
def issue_reikna_24(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """fjarri/reikna 24: clone of a float32 matrix is 0."""
    y = func(x, **kwargs)
    if x.dtype != torch.float32 or x.dim() != 2 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))
