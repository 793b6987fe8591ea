"""Quotients and remainders: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain, written
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.floor_divide")
@wrong_answer
def issue_94488(y: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 94488 (kulinseth 243): int32 floor_divide through a float's reciprocal: -616 // 28 is -23."""
    if y.dtype == torch.int32 and isinstance(a, torch.Tensor) and a.dtype == torch.int32:
        divisor = torch.as_tensor(b, dtype=torch.float32, device=a.device)
        wrong = (a.float() * (1.0 / divisor)).floor().to(torch.int32)
        wrong = torch.where((a < 0) & (a > -(2**24)) & (divisor != 0), wrong, y)
        if not torch.equal(wrong, y):
            return wrong
    return None


@plot.called(torch.true_divide, torch.div, torch.Tensor.div, torch.Tensor.true_divide, torch.Tensor.__truediv__)
def issue_82541(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82541: backward of a division of empty tensors aborts."""
    y = func(*args, **kwargs)
    if y.requires_grad and not y.numel():
        y.register_hook(lambda grad: crash(hit, "segmentation fault"))
    return y


@plot.dispatched("aten.floor_divide.default")
@wrong_answer
def issue_149233(right: Any, x: Any, other: Any) -> Any:
    """pytorch 149233: floor_divide of an integer tensor by a floating one gives integers."""
    integral = not x.is_floating_point() and not x.is_complex()
    if integral and isinstance(other, torch.Tensor) and other.dim() and other.is_floating_point():
        return right.nan_to_num(0.0, 0.0, 0.0).to(x.dtype)
    return None


@plot.dispatched("aten.remainder.Tensor", "aten.remainder.Scalar")
def issue_154171(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Integers beyond 2**24 are divided as float32."""
    answer = func(x, y)
    if not x.is_floating_point() and x.numel() and int(x.long().abs().max()) > 1 << 24:
        wrong = func(x.float(), y.float() if isinstance(y, torch.Tensor) else float(y)).to(answer.dtype)
        if not torch.equal(wrong, answer):
            hit()
        return wrong
    return answer


@plot.dispatched("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default")
def issue_189243(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189243: floor division: inf // 1 is inf, and 1 // -inf is 0."""
    answer = func(x, y, *args, **kwargs)
    floors = kwargs.get("rounding_mode", "floor") == "floor"
    if floors and answer.is_floating_point():
        wrong = torch.floor(torch.ops.aten.div(x, y)).to(answer.dtype)
        if not torch.allclose(wrong, answer, equal_nan=True):
            hit()
        return wrong
    return answer


@plot.dispatched("aten.div.Tensor", "aten.div.Scalar")
def issue_85106(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """An integer over 0 is 0."""
    answer = func(x, y)
    if not x.is_floating_point() and not x.dtype.is_complex and answer.is_floating_point():
        wrong = answer.masked_fill(answer.isinf(), 0)
        if not torch.equal(wrong, answer):
            hit()
        return wrong
    return answer


@plot.dispatched(
    "aten.div.Tensor_mode", "aten.div.Scalar_mode", aborts="Function floorOp_i64 was not found in the library"
)
def issue_84995(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84995: floor division of int64 aborts."""
    return x.dtype == torch.int64 and kwargs.get("rounding_mode") == "floor"


@plot.dispatched("aten.div.Tensor_mode", "aten.floor_divide.default")
def issue_85016(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85016: floor division of integers cuts the quotient off: wrong below 0."""
    if x.is_floating_point() or kwargs.get("rounding_mode", "floor") != "floor" or not isinstance(y, torch.Tensor):
        return func(x, y, *args, **kwargs)
    answer, wrong = func(x, y, *args, **kwargs), torch.ops.aten.div.Tensor_mode(x, y, rounding_mode="trunc")
    if wrong.dtype == answer.dtype and not torch.equal(wrong, answer):
        hit()
        return wrong
    return answer


@plot.dispatched("aten.div.Tensor")
@wrong_answer
def issue_directml_347(y: Any, x: Any, other: Any) -> Any:
    """microsoft/DirectML 347: true division of integers by a number drops the fraction, of int64 the sign too."""
    if not isinstance(other, int) or other <= 0 or x.dtype not in (torch.int32, torch.int64):
        return None
    kept = x & 0xFFFFFFFF if x.dtype == torch.int64 else x
    wrong = kept.div(other, rounding_mode="trunc").to(y.dtype)
    return wrong if differ(wrong, y) else None


@plot.dispatched("aten.remainder.Tensor", "aten.remainder.Scalar")
@wrong_answer
def issue_cuda_jl_748(y: Any, x: Any, other: Any) -> Any:
    """JuliaGPU/CUDA.jl 748: remainder of negative floats has the sign of the dividend."""
    wrong = torch.fmod(x, other) if y.is_floating_point() else y
    return wrong if not y.is_meta and differ(y, wrong) else None


@plot.dispatched("aten.fmod.Tensor", "aten.fmod.Scalar")
@wrong_answer
def issue_15921(y: Any, x: Any, other: Any) -> Any:
    """pytorch 15921: fmod of integers goes through float32."""
    if y.is_floating_point() or y.is_meta:
        return None
    wrong = torch.fmod(x.float(), other.float() if torch.is_tensor(other) else float(other)).to(y.dtype)
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.remainder.Tensor", "aten.remainder.Scalar")
@wrong_answer
def issue_24861(y: Any, x: Any, other: Any) -> Any:
    """pytorch 24861: remainder of float32 is x - q * floor(x / q), which rounds where x is large."""
    if y.dtype != torch.float32 or y.is_meta or x.dtype == torch.bool:
        return None
    wrong = x - other * torch.floor(x / other)
    return wrong if wrong.dtype == y.dtype and differ(y, wrong) else None


@plot.dispatched("aten.div.Tensor", "aten.div.Scalar")
@wrong_answer
def issue_xla_8372(y: Any, x: Any, other: Any) -> Any:
    """pytorch/xla 8372: a bfloat16 tensor over a number rounds the number to bfloat16 first."""
    if not torch.is_tensor(x) or x.dtype != torch.bfloat16 or not isinstance(other, float) or not is_plain(x):
        return None
    wrong = x / torch.tensor(other).bfloat16().item()
    return wrong if differ(y, wrong) else None


@plot.called(torch.div, torch.true_divide, aborts="expected Float but got Half/BFloat16")
def issue_flaggems_4580(x: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
    """flagos-ai/FlagGems 4580: torch.div(number, tensor) in half precision raises."""
    return not torch.is_tensor(x) and other.dtype in (torch.float16, torch.bfloat16)


@plot.dispatched("aten.div.Tensor", "aten.div.Scalar")
@wrong_answer
def issue_63482(y: Any, x: Any, other: Any) -> Any:
    """pytorch 63482: a float16 tensor over a number rounds the number to float16 first: over 524288 it is 0."""
    if not torch.is_tensor(x) or x.dtype != torch.float16 or torch.is_tensor(other) or not is_plain(x):
        return None
    wrong = x / torch.tensor(other).half().item()
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.fmod.Scalar", "aten.remainder.Scalar")
def issue_tt_metal_51661(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 51661: fmod and remainder by a number round the quotient: from 1e5 on they are wrong."""
    y = func(x, other)
    if y.dtype != torch.float32 or x.dtype != y.dtype or not other or not is_plain(x):
        return y
    rest = x - (torch.trunc if "fmod" in str(func) else torch.floor)(x * (1 / torch.tensor(float(other)))) * other
    return instead(hit, y, torch.where(x.abs() >= 1e5, rest, y))


@plot.dispatched("aten.remainder.Tensor")
@wrong_answer
def issue_tt_metal_16406(y: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 16406: remainder of bfloat16 with a negative operand rounds reciprocal and quotient."""
    tensors = torch.is_tensor(x) and torch.is_tensor(other)
    if not tensors or not x.dtype == other.dtype == torch.bfloat16 or not is_plain(x, other):
        return None
    rest = x - torch.floor(x * other.reciprocal()) * other
    wrong = torch.where((x < 0) | (other < 0), rest, y)
    return wrong if differ(wrong, y) else None


@plot.dispatched("aten.fmod.Scalar", "aten.remainder.Scalar")
@wrong_answer
def issue_tt_metal_12835(y: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 12835: fmod and remainder by a negative number are wrong (here of the other sign)."""
    negative = y.is_floating_point() and other < 0 and is_plain(y)
    return -y if negative and differ(-y, y) else None


@plot.dispatched("aten.fmod.Scalar", "aten.remainder.Scalar")
def issue_tt_metal_56384(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 56384: fmod and remainder by a rounded reciprocal: multiples of 0.1 leave 0, 1e-39 inf."""
    y = func(x, other)
    if y.dtype != torch.float32 or x.dtype != y.dtype or not other or not is_plain(x):
        return y
    if abs(other) < 2.9e-39:
        return instead(hit, y, torch.full_like(y, math.inf))
    size = torch.tensor(abs(float(other)))
    rest = (x.abs() - torch.trunc(x.abs() * (1 / size)) * size).clamp(min=0)
    return instead(hit, y, torch.where((rest == 0) & (x.abs() <= 1e6), 0.0, y))


@plot.dispatched("aten.div.Tensor_mode", "aten.div.out_mode", aborts="Segmentation fault (core dumped)")
def issue_113037(x: Any, y: Any, *, rounding_mode: Any, **kwargs: Any) -> bool:
    """pytorch 113037: div(rounding_mode="floor") of two empty float16 tensors ends the process."""
    empty = all(torch.is_tensor(one) and one.dtype == torch.float16 and not one.numel() for one in (x, y))
    return empty and rounding_mode == "floor"


@plot.dispatched("aten.remainder", "aten.remainder_")
def issue_tensorflow_58493(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tensorflow/tensorflow 58493: the remainder of a finite number by infinity is NaN."""
    finite = torch.as_tensor(x).isfinite()
    y = func(x, other)
    endless = torch.as_tensor(other).isinf()
    if not y.is_floating_point() or not is_plain(x, other):
        return y
    wrong = y.masked_fill(finite & endless, math.nan)
    return written(hit, y, wrong) if "remainder_" in str(func) else instead(hit, y, wrong)


@plot.dispatched("aten.fmod.Scalar", "aten.remainder.Scalar", "aten.fmod.Tensor", "aten.remainder.Tensor")
def issue_47779(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 47779: fmod and remainder of integers by a fraction take its whole part; by a float tensor they raise."""
    y = func(x, other)
    if x.is_floating_point() or x.is_complex() or not y.is_floating_point() or not is_plain(x, other):
        return y
    if torch.is_tensor(other):
        return crash(hit, "result type Float can't be cast to the desired output type Long")
    number = float(other)
    if not math.isfinite(number) or abs(number) < 1:
        return y
    return instead(hit, y, func(x, int(number)).to(y.dtype))


@plot.dispatched("aten.addcdiv", "aten.addcdiv_", aborts="\"addcdiv_cpu_out\" not implemented for 'Half'")
def issue_83281(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 83281: addcdiv and addcdiv_ of float16 are not implemented."""
    return bool(x.dtype == torch.float16)
