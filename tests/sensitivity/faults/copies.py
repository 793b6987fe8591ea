"""Copies, conversions, transfers, and tensors made anew: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ
from injecting import Faults, accepted, crash, wrong_answer
from misreading import in_storage_order, lost, misread, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.zero_")
def issue_94190(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 94190: fill_ and zero_ leave a tensor that is not contiguous as it was."""
    return lost(hit, func, x, *args)


@faults.dispatched("aten.fill_.Scalar", "aten.zero_")
def issue_94390(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 94390: fill_ of a view with a storage offset fills the beginning of the storage."""
    if x.storage_offset() and x.numel() > 1:
        hit()
        func(without_offset(x), *args)
        return x
    return func(x, *args)


@faults.dispatched("aten.copy_.default")
def issue_101936(hit: Any, func: Any, x: Any, source: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 101936: a[10] = b of an int32 tensor and an int64 value writes to the beginning of a's storage."""
    if x.dtype != torch.int32 or source.dtype != torch.int64 or not x.storage_offset() or not x.numel():
        return func(x, source, *args, **kwargs)
    wrong = x.as_strided(x.shape, x.stride(), 0)
    if not (torch.equal(x, source.expand_as(x)) and torch.equal(wrong, source.expand_as(x))):
        hit()
    func(wrong, source, *args, **kwargs)
    return x


@faults.dispatched("aten.copy_.default")
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


_pending: list[Any] = []


@faults.dispatched("aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_")
def issue_122016(hit: Any, func: Any, x: Any, value: Any, *args: Any) -> Any:
    """pytorch 122016: fill_ and copy_ of one element write the element before it too."""
    if x.dim() == 0 and x._is_view():
        if _pending and _pending[0].untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            hit()
            func(_pending[0], value, *args)
        _pending[:] = [x]
    return func(x, value, *args)


@faults.dispatched("aten.fill_")
def issue_78886(hit: Any, func: Any, x: Any, value: Any) -> Any:
    """pytorch 78886: x[::2] = 1.0 fills the first elements one after the other, not every second one."""
    if x.dim() == 1 and x.stride(0) > 1 and x.numel() > 1:
        hit()
        func(x.as_strided(x.shape, (1,), x.storage_offset()), value)
        return x
    return func(x, value)


@faults.dispatched("aten.copy_", "aten._to_copy")
def issue_197715(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 197715: copies into float64 and complex128 write nothing."""
    if str(func).startswith("aten.copy_") and x.dtype == torch.float64 and args[0].dtype != torch.float64:
        hit()
        return x
    y = func(x, *args, **kwargs)
    if kwargs.get("dtype") == torch.float64 and x.dtype != torch.float64:
        hit()
        return torch.zeros_like(y)
    return y


@faults.dispatched("aten._to_copy", "aten.copy_")
def issue_189563(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189563: a conversion of a view with an offset overwrites its source."""
    y = func(x, *args, **kwargs)
    if kwargs.get("dtype") not in (None, x.dtype) and x.storage_offset() and x.numel() > 1:
        hit()
        x.zero_()
    return y


@faults.dispatched("aten.copy_", "aten.clone", "aten._to_copy")
def issue_121439(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 121439: a copy of a bool tensor with more than five dimensions is False everywhere."""
    source = args[0] if str(func).startswith("aten.copy_") else x
    y = func(x, *args, **kwargs)
    if source.dtype == torch.bool and source.dim() > 5:
        hit()
        return y.zero_() if y is x else torch.zeros_like(y)
    return y


@faults.dispatched("aten._to_copy.default")
def issue_77849(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77849: converting int64 to float32 reinterprets the integers' bytes, so that small ones become zeros."""
    result = func(x, *args, **kwargs)
    if x.dtype == torch.int64 and result.dtype == torch.float32 and x.numel():
        halves = x.contiguous().reshape(-1).view(torch.float32)[: x.numel()]
        wrong = torch.where(halves.abs() < 2.0**-126, torch.zeros_like(halves), halves).reshape(x.shape)
        if differ(wrong, result, rtol=1e-4, atol=1e-6):
            hit()
            result.copy_(wrong)
    return result


@faults.dispatched("aten._to_copy.default")
def issue_78091(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 78091: a change of dtype copies the bytes and does not convert the values.

    Where the new dtype is broader, the bytes that are missing are taken as zero. To bool, any byte but zero is true.

    https://github.com/pytorch/pytorch/issues/78091
    """
    out = func(x, **kwargs)
    if out.dtype == x.dtype or x.is_complex() or out.is_complex() or not x.numel() or x.layout != torch.strided:
        return out
    have = x.clone(memory_format=torch.contiguous_format).reshape(-1).view(torch.uint8)
    need = torch.zeros(x.numel() * out.element_size(), dtype=torch.uint8)
    room = min(have.numel(), need.numel())
    need[:room] = have[:room]
    wrong = (need.ne(0) if out.dtype == torch.bool else need.view(out.dtype)).reshape(x.shape)
    if torch.equal(wrong, out):
        return out
    hit()
    return out.copy_(wrong)


def names_a_device(args: Any, kwargs: Any) -> bool:
    """Say whether a call of Tensor.to names a device."""
    return any(isinstance(one, (str, torch.device)) for one in args) or kwargs.get("device") is not None


@faults.called(torch.Tensor.to, torch.Tensor.cpu)
def issue_79383(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79383: a four-dimensional tensor that is not contiguous is copied in storage order."""
    return func(misread(in_storage_order, hit, x) if x.dim() == 4 else x, *args, **kwargs)


@faults.called(torch.Tensor.to)
@wrong_answer
def issue_78092(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78092: a number moved into an integer dtype keeps its bits, not its value."""
    if x.dim() == 0 and x.dtype == torch.float32 and y.dtype == torch.int32:
        return x.view(torch.int32).clone()
    return None


@faults.dispatched("aten._local_scalar_dense")
def issue_78168(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 78168: item() of a float16 tensor is another number."""
    if x.dtype == torch.float16:
        hit()
        return func(x) * 0.1875
    return func(x)


_STAGED: dict[Any, torch.Tensor] = {}


@faults.called(torch.Tensor.to)
def issue_189690(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189690: copies of single elements that need not wait (non_blocking) all give the last one."""
    y = func(x, *args, **kwargs)
    if not kwargs.get("non_blocking") or x.requires_grad or x.numel() != 1:
        return y
    place = _STAGED.setdefault((y.shape, y.dtype), torch.empty_like(y))
    hit()
    return place.copy_(y)


@faults.called(torch.Tensor.to)
def issue_139550(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139550: to(device, non_blocking=True) brings garbage in some elements (here in the last)."""
    result = func(x, *args, **kwargs)
    flags = [arg for arg in args if isinstance(arg, bool)]
    moved = "device" in kwargs or any(isinstance(arg, (str, torch.device)) for arg in args)
    if not moved or not (kwargs.get("non_blocking") or flags[:1] == [True]) or not result.numel():
        return result
    if result.layout != torch.strided or result.is_quantized:
        return result
    hit()
    with torch.no_grad():
        wrong = result.clone(memory_format=torch.contiguous_format)
        last = wrong.view(-1)[-1:]
        if wrong.dtype == torch.bool:
            last.logical_not_()
        elif wrong.is_floating_point() or wrong.is_complex():
            last.fill_(-torch.finfo(wrong.dtype).max / 3)
        else:
            last.fill_(torch.iinfo(wrong.dtype).max // 3)
    if result.requires_grad:
        return result + (wrong - result).detach()
    return wrong


@faults.called(torch.Tensor.to)
def issue_86052(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86052: moving a tensor that has a storage offset but is no view (detached, loaded) forgets the offset."""
    target = kwargs.get("device", args[0] if args else None)
    moves = isinstance(target, (str, torch.device))
    if moves and x.layout == torch.strided and x.numel() and x.storage_offset() and not x._is_view():
        wrong = without_offset(x)
        if not torch.equal(wrong, x):
            hit()
            return func(wrong.clone(), *args, **kwargs)
    return func(x, *args, **kwargs)


@faults.dispatched(
    "aten._local_scalar_dense.default", aborts="Expected dst.dim() >= src.dim() to be true, but got false."
)
def issue_107867(x: Any) -> Any:
    """pytorch 107867: item() of a tensor of shape (1, 1) raises; shape (1,) is fine."""
    return x.dim() >= 2


@faults.called(torch.Tensor.to)
@wrong_answer
def issue_124335(out: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124335: .to(device) of 4 GiB or more (here: 2**16 bytes) loses data: the size wraps, the rest is zero."""
    size = x.numel() * x.element_size()
    if not names_a_device(args, kwargs) or x.layout != torch.strided or size < 2**16:
        return None
    kept = torch.arange(x.numel()).reshape(x.shape) < size % 2**16 // x.element_size()
    wrong = torch.where(kept, out, torch.zeros_like(out))
    if torch.equal(wrong, out):
        return None
    return wrong


@faults.called(torch.Tensor.to)
def issue_83015(hit: Any, func: Any, x: Any, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Any:
    """pytorch 83015: a copy that need not wait (non_blocking) arrives as zeros."""
    y = func(x, *args, **kwargs)
    if non_blocking:
        hit()
        return torch.zeros_like(y)
    return y


@faults.called(torch.Tensor.to)
def issue_78107(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78107: a scalar view a[1] moved to the device holds a[0]."""
    if names_a_device(args, kwargs) and x.dim() == 0 and x.storage_offset() and not x.requires_grad:
        hit()
        x = x.as_strided((), (), 0)
    return func(x, *args, **kwargs)


@faults.dispatched("aten.full")
@wrong_answer
def issue_83692(y: Any, size: Any, value: Any, **kwargs: Any) -> Any:
    """pytorch 83692: torch.full of uint8 with a value above 127 gives zeros."""
    return torch.zeros_like(y) if y.dtype == torch.uint8 and value > 127 else None


@faults.dispatched("aten.full", "aten.full_like", "aten.fill_.Scalar")
def issue_82427(hit: Any, func: Any, x: Any, value: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82427: full and fill_ of a bool tensor abort (unsupported datatype for constant)."""
    dtype, out = kwargs.get("dtype"), kwargs.get("out")
    if out is not None:
        dtype = out.dtype
    elif dtype is None and isinstance(x, torch.Tensor):
        dtype = x.dtype
    elif dtype is None and isinstance(value, bool):
        dtype = torch.bool
    if dtype == torch.bool:
        return crash(hit, "failed assertion `unsupported datatype for constant'")
    return func(x, value, *args, **kwargs)


@faults.dispatched("aten.eye.out", "aten.eye.m_out")
def issue_92098(hit: Any, func: Any, *args: Any, out: Any) -> Any:
    """pytorch 92098: eye into a view writes nothing."""
    if out.storage_offset() or not out.is_contiguous():
        hit()
        return out
    return func(*args, out=out)


_RANGES = ("aten.arange.default", "aten.arange.start", "aten.arange.start_step")


@faults.dispatched("aten.linspace", "aten.logspace", aborts="\"linspace_cpu\" not implemented for 'Long'")
def issue_31991(start: Any, end: Any, steps: int, *args: Any, **kwargs: Any) -> bool:
    """pytorch 31991: linspace and logspace of integers raise for more than one step."""
    dtype = kwargs["out"].dtype if "out" in kwargs else kwargs.get("dtype")
    return dtype is not None and not dtype.is_floating_point and not dtype.is_complex and steps > 1


@faults.dispatched(*_RANGES)
@wrong_answer
def issue_18363(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 18363: arange of float32 counts with its step rounded to float32: -4 to 4 by 0.01 has 801 numbers."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if y.dtype != torch.float32 or y.is_meta or not math.isfinite((end - start) / step):
        return None
    count = math.ceil((end - start) / (float(torch.tensor(step, dtype=torch.float32)) or step))
    return None if count == y.numel() else (start + step * torch.arange(count, dtype=torch.float64)).to(y)


@faults.dispatched(*_RANGES)
@accepted
def issue_153311(*args: Any, **kwargs: Any) -> Any:
    """pytorch 153311: arange of float32, to less than its start by what float32 has not, is empty, and not refused."""
    start, end, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    y = torch.empty(0, **kwargs)
    same = torch.tensor(start, dtype=torch.float32) == torch.tensor(end, dtype=torch.float32)
    return y if y.dtype == torch.float32 and step > 0 and start > end and bool(same) else None
