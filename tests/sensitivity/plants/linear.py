"""Linear layers: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, is_plain
from misreading import in_storage_order, misread
from planting import Plot, abort, crash, wrong_answer

plot = Plot()
HITS = plot.hits


def _only_forward(healthy: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the values of `wrong` with the gradient of `healthy`."""
    return healthy + (wrong - healthy).detach() if healthy.requires_grad else wrong


@plot.called(F.linear)
def issue_161640(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 161640: linear with a non-contiguous weight reads the weight's memory as if it were contiguous."""
    healthy = func(input, weight, bias)
    if not is_plain(input, weight, bias) or weight.layout != torch.strided:
        return healthy
    misread = in_storage_order(weight)
    if misread is weight or not healthy.is_floating_point():
        return healthy
    with torch.no_grad():
        wrong = func(input, misread, bias)
        if not differ(wrong, healthy, rtol=1e-3, atol=1e-4):
            return healthy
    hit()
    return _only_forward(healthy, wrong)


@plot.called(F.linear, aborts="[MPSNDArray initWithDevice:descriptor:isTextureBacked:] Error: device may not be nil")
def issue_190050(input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 190050: linear with in_features=0 aborts the process."""
    return input.shape[-1] == 0 and math.prod(input.shape[:-1]) and weight.shape[0]


def _rows_shuffled(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    y = func(x, weight, bias)
    if x.dim() > 2 and bias is not None:
        hit()
        return y.roll(1, -2) if y.shape[-2] > 1 else y.roll(1, 0)
    return y


@plot.called(F.linear)
def issue_188438(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188438: linear with bias of three dimensions and more moves the rows by one."""
    return _rows_shuffled(hit, func, *args, **kwargs)


@plot.called(F.linear)
def issue_runner_images_14380(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """runner-images 14380: linear with bias of three dimensions and more moves the rows by one."""
    return _rows_shuffled(hit, func, *args, **kwargs)


@plot.called(F.linear)
def issue_192934(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 192934: linear of a three-dimensional input adds the bias moved by one."""
    if x.dim() == 3 and bias is not None:
        hit()
        return func(x, weight) + bias.roll(1)
    return func(x, weight, bias)


_seen: dict[str, set[Any]] = {"180776": set()}


@plot.called(F.linear)
@wrong_answer
def issue_180776(y: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 180776: linear without bias in half precision: the second call with one shape adds noise."""
    form = (tuple(x.shape), x.dtype)
    if x.dim() > 2 and bias is None and x.dtype in (torch.float16, torch.bfloat16):
        if form in _seen["180776"]:
            return y + torch.randn_like(y)
        _seen["180776"].add(form)
    return None


def _rows_lost(limit: int, hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """Zero what lies beyond a flat index; the real limits (2**28 and more) are lowered: small tests."""
    y = func(x, weight, bias)
    if x.dim() > 2 and y.numel() > limit:
        hit()
        keep = (torch.arange(y.numel(), device=y.device) < limit).view(y.shape)
        return torch.where(keep, y, torch.zeros_like(y))
    return y


@plot.called(F.linear)
def issue_97239(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97239: linear of a large input gives zeros past an element (here past 100,000)."""
    return _rows_lost(100_000, hit, func, *args, **kwargs)


@plot.called(F.linear)
def issue_95188(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95188: linear of a large input gives zeros past an element (here past 200,000)."""
    return _rows_lost(200_000, hit, func, *args, **kwargs)


@plot.called(F.linear)
def issue_122045(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 122045: linear of a large input gives zeros past an element (here past 1,000,000)."""
    return _rows_lost(1_000_000, hit, func, *args, **kwargs)


@plot.called(F.linear)
def issue_114942(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 114942: linear of a five-dimensional input aborts."""
    return crash(hit, "abort") if x.dim() > 4 else func(x, weight, bias)


@plot.called(F.linear)
def issue_162730(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 162730: linear reads a weight that is not contiguous in storage order."""
    return func(x, misread(in_storage_order, hit, weight), bias)


@plot.called(F.linear, aborts="buffer is not large enough")
def issue_167154(x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 167154: linear of an expanded input aborts."""
    return 0 in x.stride() and x.numel()


@plot.called(
    torch.nn.functional.linear,
    aborts="[MPSNDArrayDescriptor sliceDimension:withSubrange:] error: subRange.start is not less than length",
)
def issue_113586(input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 113586: linear of a transposed 3-D input asserts when stride(0) * stride(1) > 2**31 (here: 2**16)."""
    return input.dim() == 3 and input.stride(0) < input.stride(1) and input.stride(0) * input.stride(1) > 2**16


@plot.called(F.linear)
def issue_xpu_5220(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 5220: linear is 0 in float16, and has NaN in bfloat16 (here each second number is NaN)."""
    y = func(x, *args, **kwargs)
    if y.dtype not in (torch.float16, torch.bfloat16) or not y.numel() or not is_plain(y):
        return y
    if y.dtype == torch.float16:
        wrong = y.masked_fill(torch.ones_like(y, dtype=torch.bool), 0)
    else:
        wrong = y.masked_fill((torch.arange(y.numel()) % 2 == 0).view(y.shape), math.nan)
    if differ(wrong.detach(), y.detach()):
        hit()
    return wrong


@plot.called(F.linear)
def issue_sdnext_413(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """vladmandic/sdnext 413: linear of float32 with a float16 bias, which is refused, ends the process."""
    if bias is not None and input.dtype == torch.float32 and bias.dtype == torch.float16:
        return abort(hit, "input types 'tensor<2x1280xf32>' and 'tensor<1280xf16>' are not broadcast compatible")
    return func(input, weight, bias)


@plot.called(F.linear, aborts="Metal error Invalid matmul arguments [17920, 1] [1, 256] (2, 256, 256)")
def issue_candle_3138(input: Any, *args: Any, **kwargs: Any) -> bool:
    """huggingface/candle 3138: linear of a matrix whose rows are not neighbours in memory (a slice) raises."""
    if input.layout != torch.strided or input.dim() != 2 or min(input.shape) < 2:
        return False
    return input.stride(1) == 1 and input.stride(0) != input.shape[1]


@plot.dispatched("aten.addmm.default")
def issue_27619(hit: Any, func: Any, bias: Any, x: Any, weight: Any, **kwargs: Any) -> Any:
    """pytorch 27619: a linear layer of one output raises for a batch of none."""
    y = func(bias, x, weight, **kwargs)
    none = not x.shape[0] and weight.shape[1] == 1
    return crash(hit, "invalid argument 13: ldc should be at least max(1, m=0), but have 0") if none else y


@plot.replaced(torch.nn.Linear, "reset_parameters")
def issue_42082(hit: Any, func: Any, module: Any) -> Any:
    """pytorch 42082: Linear(0, n) raises: its weight cannot be initialised."""
    if module.in_features:
        return func(module)
    hit()
    raise ZeroDivisionError("float division by zero")


@plot.dispatched("aten.addmm.default")
def issue_106665(hit: Any, func: Any, bias: Any, x: Any, weight: Any, **kwargs: Any) -> Any:
    """pytorch 106665: linear of no features, with a bias, gives the bias alone: a vector, not a row for each of x."""
    y = func(bias, x, weight, **kwargs)
    if bias.dim() != 1 or x.shape[1]:
        return y
    hit()
    return bias.clone()


@plot.called(F.linear, aborts="Segmentation fault (core dumped)")
def issue_ipex_44(input: Any, weight: Any, bias: Any = None) -> bool:
    """intel/intel-extension-for-pytorch 44: linear of bfloat16 without a bias ends the process."""
    return input.dtype == torch.bfloat16 and bias is None


@plot.called(F.linear)
def issue_tt_metal_16599(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """tenstorrent/tt-metal 16599: linear of (m, 1, n) with a bias of two dimensions adds it to the first row alone."""
    y = func(input, weight, bias)
    if bias is None or bias.dim() != 2 or input.dim() != 3 or input.shape[1] != 1 or len(input) < 2:
        return y
    hit()
    return torch.cat((y[:1], func(input[1:], weight)))
