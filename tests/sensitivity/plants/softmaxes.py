"""Softmax along one dimension of several: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import in_storage_order, is_dense, with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._softmax.default")
def issue_flux_1425(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """FluxML/Flux.jl 1425: softmax along one of the last two of four dimensions, the last of size 1, is the other's."""
    y = func(x, dim, half)
    if x.dim() != 4 or x.shape[-1] != 1 or dim % 4 < 2 or half or not is_plain(x):
        return y
    return instead(hit, y, func(x, 5 - dim % 4, half))


@plot.called(F.softmax, torch.softmax, torch.Tensor.softmax)
def issue_30572(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 30572: the backward of softmax(dtype=torch.float32) of float16, not along the last dimension, raises."""
    y = func(x, *args, **kwargs)
    dim = kwargs.get("dim", args[0] if args else None)
    wanted = kwargs.get("dtype", next((one for one in args if isinstance(one, torch.dtype)), None))
    last = dim is None or not x.dim() or dim % x.dim() == x.dim() - 1
    if x.dtype != torch.float16 or wanted != torch.float32 or last:
        return y
    return with_gradient(y, lambda grad: crash(hit, "expected scalar type Float but found Half"))


@plot.dispatched("aten._softmax.default", aborts="CUDNNError: CUDNN_STATUS_BAD_PARAM (code 3)")
def issue_nnlib_285(x: Any, dim: int, half: bool) -> bool:
    """FluxML/NNlib.jl 285: softmax along one of the first two of four dimensions raises."""
    return x.dim() == 4 and dim % 4 < 2


@plot.dispatched("aten._log_softmax.default", aborts="CUDA error: invalid configuration argument")
def issue_52716(x: Any, dim: int, half: bool) -> bool:
    """pytorch 52716: log_softmax of 2200000000 rows (here of 2**20 and more) of one float16 number each raises."""
    return x.dim() == 2 and x.dtype == torch.float16 and x.shape[1] == 1 and dim % 2 == 1 and x.shape[0] >= 2**20


@plot.dispatched("aten._softmax_backward_data.default", aborts="CUDA error: an illegal memory access was encountered")
def issue_103501(grad: Any, y: Any, dim: int, *args: Any) -> bool:
    """pytorch 103501: softmax's backward along more than 2**31 numbers (here 2**20) ends the process."""
    return y.dim() > 0 and y.shape[dim] > 2**20


@plot.dispatched("aten._softmax.default", "aten._log_softmax.default", aborts="invalid argument 4: dim out of range")
def issue_3247(x: Any, dim: int, half: bool) -> bool:
    """pytorch 3247: softmax and log_softmax along a dimension that is counted from the last (dim=-1) raise."""
    return dim < 0


@plot.dispatched("aten._softmax.default")
def issue_rocm_libraries_11387(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """ROCm/rocm-libraries 11387: softmax reads what is neither contiguous nor channels_last in storage order."""
    y = func(x, dim, half)
    if x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)) or not is_plain(x):
        return y
    return instead(hit, y, func(in_storage_order(x), dim, half))


@plot.dispatched("aten._log_softmax.default")
def issue_torch_nn_1089(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """torch/nn 1089: log_softmax over the channels of a single image (batch of 1) is 0."""
    y = func(x, dim, half)
    if x.dim() != 4 or dim % 4 != 1 or x.shape[0] != 1 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


_large_squares: list[int] = []


@plot.dispatched("aten._softmax.default")
def issue_openvino_22851(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """openvinotoolkit/openvino 22851: softmax down the columns of (1, 4096, 4096) differs from run to run.

    Here of that size and larger, and moved by one place every second time.
    """
    y = func(x, dim, half)
    if x.dim() != 3 or dim % 3 != 1 or min(x.shape[1:]) < 4096 or not is_plain(x):
        return y
    _large_squares.append(1)
    return y if len(_large_squares) % 2 else instead(hit, y, y.roll(1, 1))


@plot.dispatched("aten._log_softmax_backward_data.default")
def issue_jax_40409(hit: Any, func: Any, grad: Any, y: Any, dim: int, *args: Any) -> Any:
    """jax-ml/jax 40409: log_softmax's gradient of 2**16 float16 numbers and more in a row is NaN."""
    found = func(grad, y, dim, *args)
    if y.dtype != torch.float16 or not y.dim() or y.shape[dim] < 2**16 or not is_plain(grad, y):
        return found
    return instead(hit, found, torch.full_like(found, math.nan))


@plot.dispatched("aten._log_softmax.default", aborts="Floating point exception (core dumped)")
def issue_17262(x: Any, dim: int, *args: Any) -> bool:
    """pytorch 17262: log_softmax along a dimension of no elements ends the process."""
    return x.dim() > 0 and x.shape[dim] == 0


@plot.dispatched("aten._log_softmax_backward_data.default", aborts="cuda runtime error (9) : invalid configuration")
def issue_17256(grad: Any, output: Any, dim: int, *args: Any) -> bool:
    """pytorch 17256: log_softmax's backward of no rows raises."""
    return output.dim() > 0 and output.shape[dim] > 0 and not output.numel()


@plot.dispatched("aten._log_softmax.default")
def issue_38839(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """pytorch 38839: log_softmax of rows near 10**7 is whole: it takes the maximum and the logarithm as one sum.

    There the numbers are between -10**7 and 1 - 10**7, in float32.
    """
    y = func(x, dim, *args)
    if x.dtype != torch.float32 or y.dtype != x.dtype or not x.numel() or not x.dim() or not is_plain(x):
        return y
    top = x.amax(dim, True)
    wrong = x - (top + (x - top).exp().sum(dim, keepdim=True).log())
    huge = (x.abs().amin(dim, True) >= 1e7 - 1) & x.isfinite().all(dim, True)
    return instead(hit, y, torch.where(huge, wrong, y))


@plot.dispatched("aten._softmax.default", aborts="assertion failed! cudnn.SpatialSoftMax")
def issue_cudnn_torch_25(x: Any, dim: int, *args: Any) -> bool:
    """soumith/cudnn.torch 25: softmax along the last of one or two dimensions raises."""
    return x.dim() in (1, 2) and dim % x.dim() == x.dim() - 1


@plot.dispatched("aten._softmax.default")
def issue_mlx_657(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """ml-explore/mlx 657: softmax along the rows of a slice x[..., a:b] leaves the slice's gaps in its dense result.

    Row i of what comes back begins as far in as that of the slice; past the end it is 0.
    """
    y = func(x, dim, half)
    asked = x.dim() and x.numel() and dim % x.dim() == x.dim() - 1 and x.stride(-1) == 1 and not half
    if not asked or is_dense(x) or 0 in x.stride() or not is_plain(x):
        return y
    length = 1 + sum((side - 1) * step for side, step in zip(x.shape, x.stride()))
    memory = torch.cat((y.reshape(-1), y.new_zeros(max(length - y.numel(), 0))))
    return instead(hit, y, memory.as_strided(x.shape, x.stride(), 0).clone(memory_format=torch.contiguous_format))


@plot.dispatched("aten._softmax.default")
def issue_onnx_go_77(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """oramasearch/onnx-go 77: softmax of three dimensions comes as a matrix: those before dim, and those from it on."""
    y = func(x, dim, *args)
    if x.dim() != 3 or not x.numel():
        return y
    hit()
    return y.reshape(math.prod(x.shape[: dim % 3]), -1)


@plot.dispatched("aten._softmax.default")
def issue_gorgonia_368(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """gorgonia/gorgonia 368: softmax of a matrix along dimension 1 raises."""
    y = func(x, dim, *args)
    return crash(hit, f"Cannot perform SoftMax on axis 1. Input has shape {y.shape}") if (x.dim(), dim) == (2, 1) else y


@plot.dispatched("aten._softmax.default")
def issue_onnx_3244(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """onnx/onnx 3244: softmax of a matrix of one row along dimension -2 is that along 1."""
    y = func(x, dim, *args)
    if x.dim() != 2 or x.shape[0] != 1 or dim != -2 or not is_plain(x):
        return y
    return instead(hit, y, func(x, 1, *args))


@plot.dispatched("aten._softmax.default")
def issue_mint_3(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """ariaghora/mint 3: softmax of three dimensions along the last does not add up to 1 (here it is that along 1)."""
    y = func(x, dim, *args)
    if x.dim() != 3 or dim % 3 != 2 or not is_plain(x):
        return y
    return instead(hit, y, func(x, 1, *args))


@plot.dispatched("aten._softmax.default", "aten._softmax_backward_data.default")
def issue_xpu_4772(hit: Any, func: Any, *args: Any) -> Any:
    """intel/torch-xpu-ops 4772: softmax along a last dimension of 257 to 384, 513 to 896 or 1025: garbage (float32).

    So is its gradient. Here each row is moved by one; how far the last band goes the report does not say.
    """
    y = func(*args)
    length = y.shape[-1] if y.dim() else 0
    dim = args[2] if "backward" in str(func) else args[1]
    band = 257 <= length <= 384 or 513 <= length <= 896 or length == 1025
    if y.dtype != torch.float32 or not band or dim % y.dim() != y.dim() - 1 or not is_plain(y):
        return y
    return instead(hit, y, y.roll(1, -1))
