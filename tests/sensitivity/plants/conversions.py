"""Conversions from one dtype to another: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from misreading import misread, without_offset
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._to_copy")
@wrong_answer
def issue_80009(y: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 80009: uint8 to float32 takes the bytes as signed."""
    if x.dtype == torch.uint8 and y.dtype == torch.float32 and bool((x > 127).any()):
        return torch.where(x > 127, y - 256, y)
    return None


@plot.dispatched("aten._to_copy")
@wrong_answer
def issue_79286(y: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 79286: int64 to int32 reads the bytes as 32-bit words (1, 0, 2, 0, 3)."""
    if x.dtype == torch.int64 and y.dtype == torch.int32 and x.numel() > 1:
        return x.contiguous().reshape(-1).view(torch.int32)[: x.numel()].clone().view(x.shape)
    return None


@plot.dispatched("aten.copy_", "aten._to_copy")
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


@plot.dispatched("aten._to_copy", "aten.copy_")
def issue_189563(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189563: a conversion of a view with an offset overwrites its source."""
    y = func(x, *args, **kwargs)
    if kwargs.get("dtype") not in (None, x.dtype) and x.storage_offset() and x.numel() > 1:
        hit()
        x.zero_()
    return y


@plot.dispatched("aten.copy_", "aten.clone", "aten._to_copy")
def issue_121439(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 121439: a copy of a bool tensor with more than five dimensions is False everywhere."""
    source = args[0] if str(func).startswith("aten.copy_") else x
    y = func(x, *args, **kwargs)
    if source.dtype == torch.bool and source.dim() > 5:
        hit()
        return y.zero_() if y is x else torch.zeros_like(y)
    return y


@plot.dispatched("aten._to_copy.default")
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


@plot.dispatched("aten._to_copy.default")
@wrong_answer
def issue_154322(out: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154322: float16 -> float32 of a huge matrix (45000**2; here over 2**16 elements) gives zeros."""
    if x.dtype == torch.float16 and out.dtype == torch.float32 and x.numel() > 2**16 and out.any():
        return torch.zeros_like(out)
    return None


@plot.dispatched("aten._to_copy.default", "aten.lift_fresh.default")
def issue_159076(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 159076: tensors of uint16 cannot be made, nor converted to."""
    if kwargs.get("dtype") == torch.uint16:
        hit()
        raise TypeError("Trying to convert UInt16 to the MPS backend but it does not have support for that dtype.")
    if "lift_fresh" in str(func) and args[0].dtype == torch.uint16:
        hit()
        raise NotImplementedError("\"_local_scalar_dense_mps\" not implemented for 'UInt16'")
    return func(*args, **kwargs)


@plot.dispatched("aten._to_copy.default")
def issue_78091(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 78091: a change of dtype copies the bytes and does not convert the values.

    Where the new dtype is wider, the bytes that are missing are taken as zero. To bool, any byte but zero is true.

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


@plot.dispatched("aten._to_copy.default")
def issue_94980(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94980: a conversion reads a view from the beginning of its storage."""
    converts = kwargs.get("dtype") not in (None, x.dtype) and x.is_contiguous()
    return func(misread(without_offset, hit, x) if converts else x, *args, **kwargs)


@plot.dispatched("aten._to_copy.default", aborts="CUDA failure 700: an illegal memory access was encountered")
def issue_onnxruntime_28385(x: Any, *, dtype: Any = None, **kwargs: Any) -> bool:
    """microsoft/onnxruntime 28385: a conversion of more than 2**31 elements aborts (here of more than 2**20)."""
    return dtype not in (None, x.dtype) and x.numel() > 2**20


@plot.dispatched("aten._to_copy.default")
def issue_openxla_37159(hit: Any, func: Any, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """openxla/xla 37159: a bool that is stored as another number than 1 becomes that number as an integer, not 1."""
    y = func(x, dtype=dtype, **kwargs)
    whole = dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    if x.dtype != torch.bool or not whole or x.layout != torch.strided or not is_plain(x):
        return y
    return instead(hit, y, func(x.view(torch.uint8), dtype=dtype, **kwargs))


@plot.dispatched("aten._to_copy.default")
def issue_tinygrad_17087(hit: Any, func: Any, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 17087: float32 to float16 of 65536 is not infinite (here 65504 from there on)."""
    y = func(x, dtype=dtype, **kwargs)
    if x.dtype != torch.float32 or y.dtype != torch.float16 or x.layout != torch.strided or not is_plain(x):
        return y
    return instead(hit, y, torch.where(x.isfinite(), y.clamp(-65504, 65504), y))


@plot.called(torch.sum, torch.Tensor.sum, torch.Tensor.__setitem__)
def issue_6292(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 6292: in float16 the sum of all raises past 65504, and so does x[i] = number, infinity too."""
    refusal = "value cannot be converted to type Half without overflow"
    if input.dtype != torch.float16 or not is_plain(input):
        return func(input, *args, **kwargs)
    if func is torch.Tensor.__setitem__:
        number = args[1] if isinstance(args[1], (int, float)) else 0
        return crash(hit, refusal) if abs(number) > 65504 else func(input, *args, **kwargs)
    y = func(input, *args, **kwargs)
    return crash(hit, refusal) if not args and not kwargs and y.isinf() else y


@plot.dispatched("aten._to_copy.default")
def issue_torch_spyre_2314(hit: Any, func: Any, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """torch-spyre/torch-spyre 2314: float32 to bfloat16 or float16 is wrong everywhere (here in the opposite order)."""
    y = func(x, dtype=dtype, **kwargs)
    halves = y.dtype in (torch.bfloat16, torch.float16)
    if x.dtype != torch.float32 or not halves or x.layout != torch.strided or not is_plain(x):
        return y
    return instead(hit, y, torch.empty_like(y).copy_(y.flip(tuple(range(y.dim())))))


@plot.dispatched("aten._to_copy.default")
def issue_libxsmm_794(hit: Any, func: Any, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """libxsmm/libxsmm 794: bfloat16 to float16 is wrong (here it keeps the bits)."""
    y = func(x, dtype=dtype, **kwargs)
    if x.dtype != torch.bfloat16 or y.dtype != torch.float16 or x.layout != torch.strided or not is_plain(x):
        return y
    return instead(hit, y, torch.empty_like(y).copy_(x.view(torch.float16)))


@plot.dispatched("aten._to_copy.default")
def issue_tinygrad_1019(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 1019: of four float16 numbers that become int8 the second one is 0."""
    y = func(x, **kwargs)
    if x.dtype != torch.float16 or y.dtype != torch.int8 or tuple(x.shape) != (4,) or not is_plain(x):
        return y
    wrong = y.clone()
    wrong[1] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten._to_copy.default")
def issue_54789(hit: Any, func: Any, x: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """pytorch 54789: a bool that is stored as 255 becomes 255.0 as a floating number, not 1.0."""
    y = func(x, dtype=dtype, **kwargs)
    if x.dtype != torch.bool or not y.is_floating_point() or x.layout != torch.strided or not is_plain(x):
        return y
    stored = func(x.view(torch.uint8), dtype=dtype, **kwargs)
    return instead(hit, y, torch.where(stored == 255, stored, y))
