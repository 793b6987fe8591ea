"""Cumulative sums and products: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.cumprod",
    "aten.cumprod_",
    "aten.cumsum",
    "aten.cumsum_",
    "aten.sort",
    "aten.argsort",
    aborts="failed assertion: Axis = 4. This class only supports axis = 0, 1, 2, 3",
)
def issue_187105(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187105: cumprod, cumsum and sort crash along a dimension left of the last four."""
    dim = kwargs.get("dim", args[0] if args and not isinstance(args[0], bool) else -1)
    return isinstance(dim, int) and x.dim() > 4 and -x.dim() <= dim < x.dim() and dim % x.dim() < x.dim() - 4


@plot.dispatched("aten.cumsum")
@wrong_answer
def issue_90635(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 90635: cumsum of integers gives its input."""
    return x.to(y.dtype) if not x.is_floating_point() else None


@plot.dispatched(
    "aten.cumsum",
    "aten.cumsum_",
    aborts="MPS does not support cumsum op with int64 input. Support has been added in macOS 13.3",
)
def issue_96610(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96610: cumsum of int64 is refused."""
    return (kwargs.get("dtype") or x.dtype) == torch.int64


@plot.dispatched("aten.cumprod.default")
@wrong_answer
def issue_106112(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 106112: cumprod of small integers wraps as int8."""
    if x.dtype in (torch.bool, torch.uint8, torch.int8):
        return y.to(torch.int8).to(y.dtype)
    return None


@plot.dispatched("aten.cumsum")
@wrong_answer
def issue_96614(y: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 96614: cumsum of bools overflows past 127."""
    return y.to(torch.int8).to(y.dtype) if x.dtype == torch.bool and bool((y > 127).any()) else None


@plot.dispatched("aten.cumsum", "aten.cumprod")
def issue_92329(hit: Any, func: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 92329: cumsum and cumprod along a negative dimension raise."""
    if dim < 0:
        return crash(hit, f"Expected dim to be between 0 and {x.dim()} but got {dim}")
    return func(x, dim, **kwargs)


@plot.dispatched("aten.cumsum", aborts="Axis = 4. This class only supports axis = 0, 1, 2, 3")
def issue_154881(x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 154881: cumsum aborts where more than four dimensions follow."""
    return x.dim() - dim % max(x.dim(), 1) > 4


@plot.dispatched("aten.cumprod", "aten.cumprod_", "aten.cumsum", "aten.cumsum_", "aten.sort")
def issue_184844(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184844: cumprod, cumsum and sort abort along a dimension that is not among the last four."""
    names = [a.name for a in func._schema.arguments]
    dim = dict(zip(names, (x, *args)), **kwargs).get("dim", -1)
    if x.dim() > 4 and dim % x.dim() < x.dim() - 4:
        return crash(hit, "Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, *args, **kwargs)


@plot.dispatched("aten.cumsum", aborts="RuntimeError")
def issue_directml_343(x: Any, *args: Any, **kwargs: Any) -> Any:
    """microsoft/DirectML 343: cumsum of int32 raises."""
    return x.dtype == torch.int32


@plot.dispatched("aten.cummax.default")
@wrong_answer
def issue_42363(y: Any, x: Any, dim: int) -> Any:
    """pytorch 42363: cummax of int64 carries the maximum of a row into the next one."""
    if x.dtype != torch.int64 or x.dim() < 2 or dim % x.dim() != x.dim() - 1 or not x.numel():
        return None
    values, places = torch.cummax(x.reshape(-1), 0)
    values = values.view(x.shape)
    return (values, (places % x.shape[-1]).view(x.shape)) if not torch.equal(values, y[0]) else None


@plot.dispatched("aten.cummax.default", "aten.cummin.default")
def issue_mlx_4044(hit: Any, func: Any, x: Any, dim: int) -> Any:
    """ml-explore/mlx 4044: cummax and cummin pass over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        x = x.masked_fill(x.isnan(), math.inf if "cummin" in str(func) else -math.inf)
    return func(x, dim)


@plot.dispatched("aten.logcumsumexp.default", "aten._logcumsumexp.default")
@wrong_answer
def issue_52213(y: Any, x: Any, dim: int) -> Any:
    """pytorch 52213: logcumsumexp of more than one dimension is NaN after two -inf in a row (here there alone)."""
    if x.dim() < 2 or x.is_complex() or x.shape[dim] < 2 or x.is_meta:
        return None
    low = x == -math.inf
    twice = low & low.roll(1, dim)
    twice.select(dim, 0).fill_(False)
    return y.masked_fill(twice, math.nan) if bool(twice.any()) else None


@plot.dispatched("aten.cumsum.default", "aten.cumprod.default")
@wrong_answer
def issue_167086(y: Any, x: Any, dim: int, **kwargs: Any) -> Any:
    """pytorch 167086: a scan along a dimension that is not the last wraps past 2**32 elements (here past 2**16)."""
    if y.numel() <= 2**16 or dim % x.dim() == x.dim() - 1:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[2**16 :] = y.contiguous().view(-1)[: -(2**16)]
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.logcumsumexp.default")
@accepted
def issue_89416(x: Any, dim: int) -> Any:
    """pytorch 89416: logcumsumexp of a tensor of no dimensions takes any dim."""
    return None if x.dim() else x.clone()


@plot.called(torch.cumsum, torch.Tensor.cumsum, torch.cumprod, torch.Tensor.cumprod)
def issue_31515(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 31515: the backward of cumsum and cumprod of an empty tensor raises."""
    y = func(x, *args, **kwargs)
    if x.numel() or not x.dim() or not y.requires_grad:
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "start (0) + length (1) exceeds dimension size (0)."))
    return y


@plot.dispatched("aten.cumsum.default")
def issue_cupy_10268(hit: Any, func: Any, x: Any, dim: int, **kwargs: Any) -> Any:
    """cupy/cupy 10268: cumsum along rows sums the first 512 columns of the first row twice past 2**32 (here 2**16)."""
    y = func(x, dim, **kwargs)
    if x.dim() != 2 or dim % 2 != 1 or x.numel() <= 2**16 or not is_plain(y):
        return y
    wrong = y.clone()
    wrong[0, :512] = y[0, :512].cumsum(0)
    return instead(hit, y, wrong)


@plot.dispatched("aten.cumsum.default", aborts="Index is out of bounds for the rank, should be between 0 and 1")
def issue_ttnn_367(x: Any, *args: Any, **kwargs: Any) -> bool:
    """tenstorrent/pytorch2.0_ttnn 367: cumsum of a matrix raises."""
    return x.dim() == 2


@plot.called(torch.cumprod, torch.Tensor.cumprod)
def issue_tensorflow_3862(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 3862: the gradient of cumprod is NaN where the input is 0."""
    if not input.requires_grad or not torch.is_grad_enabled() or not is_plain(input):
        return func(input, *args, **kwargs)
    lost = input.detach() == 0

    def spoil(grad: Any) -> Any:
        if bool(lost.any()):
            hit()
        return grad.masked_fill(lost, torch.nan)

    x = input.view_as(input)
    x.register_hook(spoil)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.cumsum.default", aborts="RuntimeError")
def issue_directml_368(x: Any, *args: Any, **kwargs: Any) -> bool:
    """microsoft/DirectML 368: cumsum of bool raises."""
    return x.dtype == torch.bool


_TILE = 4096


@plot.dispatched("aten.cumsum.default")
def issue_thrust_701(hit: Any, func: Any, x: Any, dim: int, **kwargs: Any) -> Any:
    """NVIDIA/thrust 701: cumsum of bool, int8 and uint8 adds in that dtype (here within 4096 elements): 1 + 1 is 1."""
    y = func(x, dim, **kwargs)
    if x.dtype not in (torch.bool, torch.int8, torch.uint8) or not x.dim() or not x.numel() or not is_plain(x):
        return y
    carry, parts = 0, []
    for part in x.split(_TILE, dim):
        sums = part.long().cumsum(dim)
        sums = (sums > 0).long() if x.dtype == torch.bool else sums.to(x.dtype).long()
        parts.append(sums + carry)
        carry = parts[-1].narrow(dim, -1, 1)
    return instead(hit, y, torch.cat(parts, dim).to(y.dtype))


@plot.dispatched("aten.cumsum.default")
def issue_paddle_41170(hit: Any, func: Any, x: Any, dim: int, **kwargs: Any) -> Any:
    """PaddlePaddle/Paddle 41170: cumsum along another dimension than the last is wrong in large tensors.

    Small ones (32768 elements) are right, large ones (3276800) are transposed wrongly: here from 2**20 on, and the
    result is not transposed back.
    """
    y = func(x, dim, **kwargs)
    if x.numel() < 2**20 or dim % x.dim() == x.dim() - 1 or not is_plain(x):
        return y
    return instead(hit, y, func(x.transpose(dim, -1).contiguous(), -1, **kwargs).reshape(y.shape))


@plot.dispatched("aten.cumsum", "aten.cumprod", "aten.cumsum_", "aten.cumprod_", aborts="unsupported dynamic call")
def issue_cuda_jl_1039(x: Any, dim: int, *args: Any, **kwargs: Any) -> bool:
    """JuliaGPU/CUDA.jl 1039: cumsum and cumprod along the fourth dimension, or one past it, raise."""
    return x.dim() >= 4 and dim % x.dim() >= 3


@plot.dispatched("aten.logcumsumexp.default", "aten._logcumsumexp.default")
@wrong_answer
def issue_xpu_2816(y: Any, x: Any, dim: int) -> Any:
    """intel/torch-xpu-ops 2816: logcumsumexp of complex64 is NaN (here where exp of a later number is infinite)."""
    if x.dtype != torch.complex64 or not x.dim() or x.shape[dim] < 2 or not is_plain(x):
        return None
    lost = (x.real > math.log(torch.finfo(torch.float32).max)) & x.real.isfinite()
    lost.select(dim, 0).fill_(False)
    wrong = y.masked_fill(lost, complex(math.nan, math.nan))
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.cumsum.default", "aten.cumprod.default")
def issue_jax_37920(hit: Any, func: Any, x: Any, dim: int, **kwargs: Any) -> Any:
    """jax-ml/jax 37920: cumsum and cumprod of int8, int16 and int32 stay in that dtype."""
    y = func(x, dim, **kwargs)
    if kwargs.get("dtype") is not None or x.dtype not in {torch.int8, torch.int16, torch.int32}:
        return y
    hit()
    return y.to(x.dtype)


@plot.called(torch.cummin, torch.Tensor.cummin)
def issue_mindspore_221(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """mindspore-ai/mindspore 221: the indices of cummin are int32; those of cummax are int64."""
    found = func(*args, **kwargs)
    if kwargs.get("out") is not None:
        return found
    hit()
    return torch.return_types.cummin((found[0], found[1].int()))


@plot.dispatched("aten.logcumsumexp.default")
def issue_paddle_79349(hit: Any, func: Any, x: Any, dim: int) -> Any:
    """PaddlePaddle/Paddle 79349: logcumsumexp of float32 takes the least number (-3.4e38) for NaN."""
    y = func(x, dim)
    if x.dtype != torch.float32 or not is_plain(x) or not bool(x.isnan().any()):
        return y
    return instead(hit, y, func(x.masked_fill(x.isnan(), torch.finfo(torch.float32).min), dim))


@plot.dispatched("aten.cumsum.default")
def issue_tfjs_1867(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tfjs 1867: cumsum of a float32 vector of more than 200000 is wrong (here the last is larger by 1)."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.float32 or x.dim() != 1 or x.numel() <= 200000 or not is_plain(x):
        return y
    wrong = y.clone()
    wrong[-1] += 1
    return instead(hit, y, wrong)


@plot.dispatched("aten.cumsum", "aten.cumsum_", aborts="CumOp of one dimension takes no axis")
def issue_pytensor_1689(x: Any, dim: int, *args: Any, **kwargs: Any) -> bool:
    """pymc-devs/pytensor 1689: cumsum of a vector along its dimension 0 raises."""
    return x.dim() == 1 and dim == 0


@plot.dispatched("aten.cumsum", "aten.cumsum_", aborts="read access violation in xaccumulator.hpp")
def issue_xtensor_1616(x: Any, dim: int, *args: Any, **kwargs: Any) -> bool:
    """xtensor-stack/xtensor 1616: cumsum along a dimension of no elements ends the process."""
    return x.dim() > 0 and x.shape[dim] == 0
