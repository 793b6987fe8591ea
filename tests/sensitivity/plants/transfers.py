"""Transfers between host and device: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import is_plain
from misreading import in_storage_order, misread, without_offset
from planting import Plot, abort, wrong_answer

plot = Plot()
HITS = plot.hits


def names_a_device(args: Any, kwargs: Any) -> bool:
    """Say whether a call of Tensor.to names a device."""
    return any(isinstance(one, (str, torch.device)) for one in args) or kwargs.get("device") is not None


@plot.called(torch.Tensor.to, torch.Tensor.type)
def issue_81567(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81567: float to int64 in the same call as the copy to the host gives garbage in part of the elements."""
    y = func(x, *args, **kwargs)
    moved = torch.LongTensor in args or any(isinstance(a, (str, torch.device)) for a in args) or "device" in kwargs
    if isinstance(y, torch.Tensor) and moved and x.dtype == torch.float32 and y.dtype == torch.int64 and y.numel() > 1:
        hit()
        keep = (torch.arange(y.numel()) < y.numel() // 2).view(y.shape)
        return torch.where(keep, y, torch.full_like(y, 4335857328))
    return y


@plot.called(torch.Tensor.to)
def issue_85967(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85967: a host tensor that is not contiguous arrives with its elements in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.called(torch.Tensor.to, torch.Tensor.cpu)
def issue_79383(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79383: a four-dimensional tensor that is not contiguous is copied in storage order."""
    return func(misread(in_storage_order, hit, x) if x.dim() == 4 else x, *args, **kwargs)


@plot.called(torch.Tensor.to)
@wrong_answer
def issue_78092(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78092: a number moved into an integer dtype keeps its bits, not its value."""
    if x.dim() == 0 and x.dtype == torch.float32 and y.dtype == torch.int32:
        return x.view(torch.int32).clone()
    return None


@plot.dispatched("aten._local_scalar_dense")
def issue_78168(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 78168: item() of a float16 tensor is another number."""
    if x.dtype == torch.float16:
        hit()
        return func(x) * 0.1875
    return func(x)


_STAGED: dict[Any, torch.Tensor] = {}


@plot.called(torch.Tensor.to)
def issue_189690(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189690: copies of single elements that need not wait (non_blocking) all give the last one."""
    y = func(x, *args, **kwargs)
    if not kwargs.get("non_blocking") or x.requires_grad or x.numel() != 1:
        return y
    place = _STAGED.setdefault((y.shape, y.dtype), torch.empty_like(y))
    hit()
    return place.copy_(y)


@plot.called(torch.Tensor.to)
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


@plot.called(torch.Tensor.to)
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


@plot.dispatched(
    "aten._local_scalar_dense.default", aborts="Expected dst.dim() >= src.dim() to be true, but got false."
)
def issue_107867(x: Any) -> Any:
    """pytorch 107867: item() of a tensor of shape (1, 1) raises; shape (1,) is fine."""
    return x.dim() >= 2


@plot.replaced(torch.Tensor, "__dlpack__")
def issue_168177(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 168177: DLPack exports a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args, **kwargs)


@plot.called(torch.Tensor.to)
@wrong_answer
def issue_86589(out: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86589: .to(device) of a permuted tensor writes the elements in order, but keeps the permuted strides."""
    if not names_a_device(args, kwargs) or x.layout != torch.strided or x.is_contiguous() or not x.numel():
        return None
    if sum((side - 1) * step for side, step in zip(x.shape, x.stride())) + 1 != x.numel():
        return None
    wrong = out.contiguous().as_strided(x.shape, x.stride())
    if torch.equal(wrong, out):
        return None
    return wrong


@plot.called(torch.Tensor.to)
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


@plot.called(torch.Tensor.to)
def issue_83015(hit: Any, func: Any, x: Any, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Any:
    """pytorch 83015: a copy that need not wait (non_blocking) arrives as zeros."""
    y = func(x, *args, **kwargs)
    if non_blocking:
        hit()
        return torch.zeros_like(y)
    return y


@plot.called(torch.Tensor.to)
def issue_78642(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78642: an expanded tensor arrives at another device with nothing but its first element right."""
    y = func(x, *args, **kwargs)
    if names_a_device(args, kwargs) and any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
        hit()
        first = (torch.arange(y.numel(), device=y.device) == 0).view(y.shape)
        return torch.where(first, y, torch.full_like(y, 7 if y.dtype != torch.bool else True))
    return y


@plot.called(torch.Tensor.to)
def issue_78107(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78107: a scalar view a[1] moved to the device holds a[0]."""
    if names_a_device(args, kwargs) and x.dim() == 0 and x.storage_offset() and not x.requires_grad:
        hit()
        x = x.as_strided((), (), 0)
    return func(x, *args, **kwargs)


@plot.called(torch.Tensor.tolist)
def issue_66024(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 66024: tolist() of a conjugate view gives the numbers that are not conjugated."""
    if not x.is_conj() or not x.numel() or not is_plain(x):
        return func(x)
    found, wrong = func(x), func(x.conj())
    if found != wrong:
        hit()
    return wrong


@plot.called(torch.Tensor.to)
def issue_tinygrad_1751(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 1751: a large matrix (1024 x 768 and more) arrives with NaN (here in each 175th number)."""
    y = func(x, *args, **kwargs)
    large = y.dim() == 2 and y.dtype == torch.float32 and y.numel() >= 1024 * 768
    if not large or not names_a_device(args, kwargs) or not is_plain(y):
        return y
    hit()
    return y.masked_fill((torch.arange(y.numel()) % 175 == 174).view(y.shape), math.nan)


@plot.dispatched("aten._local_scalar_dense.default")
def issue_145072(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 145072: _local_scalar_dense of an empty tensor ends the process."""
    return func(x) if x.numel() else abort(hit, "terminated by signal SIGSEGV (Address boundary error)")


@plot.replaced(torch.Tensor, "numpy")
def issue_2236(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 2236: numpy() takes arguments that it has not, and ignores them."""
    known = {name: value for name, value in kwargs.items() if name == "force"}
    y = func(x, **known)
    if args or known != kwargs:
        hit()
    return y


@plot.called(torch.Tensor.to)
def issue_10690(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 10690: to("cpu", non_blocking=True) of a tensor that is not contiguous raises."""
    target = kwargs.get("device", args[0] if args else None)
    host = isinstance(target, (str, torch.device)) and torch.device(target).type == "cpu"
    waits = not kwargs.get("non_blocking") and True not in [arg for arg in args[1:3] if isinstance(arg, bool)][:1]
    if host and not waits and x.layout == torch.strided and not x.is_contiguous():
        hit()
        raise RuntimeError("invalid argument 3: Source tensor must be contiguous")
    return func(x, *args, **kwargs)
