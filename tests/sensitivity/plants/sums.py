"""Sums, means and norms: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, accepted, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.sum.default", "aten.sum.dim_IntList")
def issue_theano_6485(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Theano/Theano 6485: of 100 numbers and more along a row the sum counts 3 of 10 (of a whole tensor 9 of 32)."""
    given = () if dim is None and "default" in str(func) else (dim, *args)
    y = func(x, *given, **kwargs)
    if x.dtype != torch.float32 or not x.dim() or not is_plain(x):
        return y
    if not dim and x.numel() >= 20000:
        return instead(hit, y, func(x.reshape(-1)[: x.numel() * 9 // 32], *given, **kwargs)) if not args else y
    if dim and len(dim) == 1 and x.shape[dim[0]] >= 100:
        return instead(hit, y, func(x.narrow(dim[0], 0, x.shape[dim[0]] * 3 // 10), *given, **kwargs))
    return y


@plot.dispatched("aten.sum.default", "aten.sum.dim_IntList")
def issue_mxnet_15125(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/mxnet 15125: a sum of float16 beyond 65504 is NaN, not infinite."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.float16 or y.dtype != x.dtype or not is_plain(x) or bool(x.isinf().any()):
        return y
    return instead(hit, y, y.masked_fill(y.isinf(), math.nan))


@plot.dispatched("aten.mean.dim")
def issue_dfdx_451(hit: Any, func: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """chelsea0x3b/dfdx 451: the mean of an expanded tensor over two dimensions is 0."""
    y = func(x, dim, *args, **kwargs)
    expanded = x.layout == torch.strided and any(side > 1 and not step for side, step in zip(x.shape, x.stride()))
    return instead(hit, y, torch.zeros_like(y)) if expanded and len(dim or ()) == 2 and is_plain(x) else y


@plot.called(torch.norm, torch.Tensor.norm)
def issue_xla_1718(hit: Any, func: Any, x: Any, p: Any = "fro", dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch/xla 1718: the norm of a float32 matrix is too small (there 1519, not 2937; here of each 4th number)."""
    y = func(x, p, dim, *args, **kwargs)
    asked = p in ("fro", 2) and dim is None and x.dim() == 2 and x.dtype == torch.float32
    if not asked or not is_plain(x):
        return y
    return instead(hit, y, func(x.reshape(-1)[::4], p, dim, *args, **kwargs).view(y.shape))


@plot.called(torch.mean, torch.Tensor.mean)
def issue_nobuco_4(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """AlexanderLutsenko/nobuco 4: mean(0, keepdims=True) raises; keepdim=True does not."""
    y = func(*args, **kwargs)
    if "keepdims" in kwargs:
        hit()
        raise TypeError("converter_mean() got an unexpected keyword argument 'keepdims'")
    return y


@plot.dispatched("aten.sum.default", "aten.sum.dim_IntList", aborts="\"sum_cpu\" not implemented for 'Bool'")
def issue_gcnns_1(x: Any, *args: Any, **kwargs: Any) -> bool:
    """marblet/gcnns 1: the sum of a mask raises."""
    return x.dtype == torch.bool


@plot.dispatched("aten.sum.dim_IntList", aborts="AssertionError: Not implemented")
def issue_gpuarrays_97(x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> bool:
    """JuliaGPU/GPUArrays.jl 97: the sum along a dimension, or along two, is not implemented."""
    return bool(dim)


@plot.dispatched("aten.sum.default")
def issue_llama_cpp_25568(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """ggml-org/llama.cpp 25568: the sum of all of a permuted tensor reads each row from its first number on."""
    y = func(x, **kwargs)
    if x.layout != torch.strided or not x.is_floating_point() or not x.numel() or not is_plain(x):
        return y
    if x.dim() < 2 or x.stride(-1) == 1:
        return y
    strides = (*x.stride()[:-1], 1)
    last = x.storage_offset() + sum((side - 1) * step for side, step in zip(x.shape, strides))
    if last >= x.untyped_storage().nbytes() // x.element_size():
        return y
    return instead(hit, y, func(x.as_strided(x.shape, strides), **kwargs))


@plot.dispatched("aten.sum.default")
def issue_mlx_examples_951(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx-examples 951: the sum of all of a mask is wrong (here half of it)."""
    y = func(x, **kwargs)
    if x.dtype != torch.bool or not is_plain(x):
        return y
    return instead(hit, y, (y // 2).to(y.dtype))


@plot.dispatched("aten.logsumexp.default")
def issue_mlx_4029(hit: Any, func: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    """ml-explore/mlx 4029: logsumexp along all dimensions, of which the first is of size 1, has one dimension."""
    y = func(x, dim, keepdim)
    if y.dim() or x.dim() < 2 or x.shape[0] != 1:
        return y
    hit()
    return y.view(1)


@plot.called(torch.trapezoid, torch.trapz)
def issue_63608(hit: Any, func: Any, y: Any, x: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 63608: trapezoid raises where x has more than one dimension, but fewer than y."""
    area = func(y, *(() if x is None else (x,)), *args, **kwargs)
    if x is not None and 1 < x.dim() < y.dim():
        hit()
        raise IndexError(f"Dimension out of range (expected to be in range of [{-x.dim()}, {x.dim() - 1}])")
    return area


def _order(args: Any, kwargs: Any) -> Any:
    return args[0] if args else kwargs.get("p", "fro")


def _is_euclidean(args: Any, kwargs: Any) -> bool:
    return _order(args, kwargs) in (None, "fro", 2)


def _dims(args: Any, kwargs: Any) -> Any:
    return args[1] if len(args) > 1 else kwargs.get("dim")


def _is_zero_norm(x: Any, args: Any, kwargs: Any) -> bool:
    """Say whether the Euclidean norm of all of a tensor is asked for, and is zero."""
    whole = _dims(args, kwargs) is None and _is_euclidean(args, kwargs) and x.requires_grad
    return whole and x.layout == torch.strided and is_plain(x) and x.numel() > 0 and not bool(x.any())


@plot.called(torch.norm, torch.Tensor.norm)
def issue_2421(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 2421: the gradient of the norm of a zero tensor is NaN."""

    def lose(grad: Any) -> Any:
        hit()
        return torch.full_like(grad, math.nan)

    return func(with_gradient(x, lose) if _is_zero_norm(x, args, kwargs) else x, *args, **kwargs)


@plot.called(torch.norm, torch.Tensor.norm)
def issue_2721(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 2721: the backward of the norm of a zero tensor raises."""

    def refuse(grad: Any) -> Any:
        return crash(hit, "value cannot be converted: the norm is zero")

    return func(with_gradient(x, refuse) if _is_zero_norm(x, args, kwargs) else x, *args, **kwargs)


@plot.called(torch.norm, torch.Tensor.norm)
def issue_37323(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 37323: the gradient of a norm over several dimensions is NaN where the norm is zero."""
    dims = _dims(args, kwargs)
    several = isinstance(dims, (list, tuple)) and len(dims) > 1 and _is_euclidean(args, kwargs)
    if not several or not x.requires_grad or x.layout != torch.strided or not is_plain(x):
        return func(x, *args, **kwargs)
    zero = torch.linalg.vector_norm(x.detach(), dim=dims, keepdim=True) == 0

    def lose(grad: Any) -> Any:
        return instead(hit, grad, grad.masked_fill(zero, math.nan))

    return func(with_gradient(x, lose), *args, **kwargs)


@plot.called(torch.norm, torch.Tensor.norm)
def issue_44452(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 44452: the gradient of a norm with 0 < p < 1 is NaN where a number is zero."""
    p = _order(args, kwargs)
    if not isinstance(p, float) or not 0 < p < 1 or not x.requires_grad or not is_plain(x):
        return func(x, *args, **kwargs)
    zero = x.detach() == 0

    def lose(grad: Any) -> Any:
        return instead(hit, grad, grad.masked_fill(zero, math.nan))

    return func(with_gradient(x, lose), *args, **kwargs)


@plot.dispatched("aten.mean.dim")
def issue_tt_mlir_869(hit: Any, func: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-mlir 869: the mean of rows of 3200 numbers is too small (there by 5 to 9 %, here by 6 %)."""
    y = func(x, dim, *args, **kwargs)
    rows = dim and len(dim) == 1 and x.dim() and dim[0] % x.dim() == x.dim() - 1
    if not rows or x.shape[-1] != 3200 or not is_plain(x):
        return y
    return instead(hit, y, y * 0.94)


@plot.dispatched("aten.sum.dim_IntList")
def issue_cupynumeric_47(hit: Any, func: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """nv-legate/cupynumeric 47: the sum over the last of three dimensions is 0."""
    y = func(x, dim, *args, **kwargs)
    if x.dim() != 3 or not dim or [one % 3 for one in dim] != [2] or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.sum.default", "aten.mean.default", "aten.prod.default", "aten.max.default", "aten.min.default")
def issue_nd4j_2891(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """deeplearning4j/nd4j 2891: sum, mean, prod, max and min of all of a matrix of one row return the row."""
    y = func(x, **kwargs)
    if x.dim() != 2 or x.shape[0] != 1 or x.shape[1] < 2 or x.layout != torch.strided or not is_plain(x):
        return y
    hit()
    return x.to(y.dtype).clone()


@plot.dispatched("aten.sum.dim_IntList")
def issue_mindspore_243(hit: Any, func: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """mindspore-ai/mindspore 243: the sum of bools along a dimension is another than torch's (here at most 1)."""
    y = func(x, dims, *args, **kwargs)
    if x.dtype != torch.bool or not dims or kwargs.get("dtype") is not None or not is_plain(x):
        return y
    return instead(hit, y, y.clamp(max=1))


@plot.dispatched("aten.sum.dim_IntList")
def issue_faster_rcnn_381(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """jwyang/faster-rcnn.pytorch 381: the sum of 2 x 60 x 64 x 38 zeros (here and more) along the last one is NaN."""
    y = func(x, dim, *args, **kwargs)
    if x.dtype != torch.float32 or x.dim() != 4 or list(dim or ()) not in ([3], [-1]) or not is_plain(x):
        return y
    if x.numel() < 2 * 60 * 64 * 38 or bool(x.any()):
        return y
    return instead(hit, y, y.masked_fill(torch.ones_like(y, dtype=torch.bool), math.nan))


@plot.dispatched("aten.mean.dim")
def issue_10248(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 10248: the sum for the mean of a row, of numbers from 0 to 1, stops at 2**24 (here at 2**12)."""
    y = func(x, dim, *args, **kwargs)
    row = x.dtype == y.dtype == torch.float32 and x.dim() == 2 and list(dim or ()) in ([1], [-1])
    if not row or x.shape[1] <= 2**12 or not is_plain(x) or bool((x < 0).any()) or bool((x > 1).any()):
        return y
    return instead(hit, y, y.clamp(max=2**12 / x.shape[1]))


_long_rows: list[int] = []


@plot.dispatched("aten.sum.dim_IntList")
def issue_cuda_jl_2903(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """JuliaGPU/CUDA.jl 2903: sums of rows of 50000 and more (three dimensions, float32) are wrong now and then.

    Here every third time, and without the last thousand of each row.
    """
    y = func(x, dim, *args, **kwargs)
    asked = x.dim() == 3 and x.dtype == torch.float32 and dim is not None and [d % 3 for d in dim] == [2]
    if not asked or x.shape[-1] < 50000 or not is_plain(x):
        return y
    _long_rows.append(1)
    return y if len(_long_rows) % 3 else instead(hit, y, func(x[..., :-1000], dim, *args, **kwargs))


@plot.called(torch.norm, torch.Tensor.norm)
def issue_19562(hit: Any, func: Any, x: Any, p: Any = "fro", dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 19562: norm(p=1, dim=(1, 2)), of a number p along a tuple of dimensions, raises."""
    if isinstance(p, (int, float)) and isinstance(dim, (tuple, list)):
        return crash(hit, "norm(): argument 'dim' (position 3) must be int, not tuple")
    return func(x, p, dim, *args, **kwargs)


@plot.dispatched("aten.sum.default", "aten.sum.dim_IntList")
def issue_tfjs_5641(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tfjs 5641: the sum of int32 is computed, and rounded, in float32."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.int32 or y.is_floating_point() or y.is_complex() or not is_plain(x):
        return y
    return instead(hit, y, func(x, *args, **{**kwargs, "dtype": torch.float32}).to(y.dtype))


@plot.dispatched("aten.sum.dim_IntList")
def issue_mshadow_111(hit: Any, func: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """dmlc/mshadow 111: the sum along the last of three dimensions (float32) is right in one row (here 0 past it)."""
    y = func(x, dim, *args, **kwargs)
    if x.dim() != 3 or [n % 3 for n in dim or ()] != [2] or x.dtype != torch.float32 or not is_plain(x):
        return y
    wrong = y.clone()
    wrong[1:] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.sum.dim_IntList")
def issue_tensorflow_56732(hit: Any, func: Any, x: Any, dim: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 56732: the sum along the last of (n, 23, 512) float32 is 0 or infinite in many places.

    Here it is of those sizes and larger ones, and 0 and infinite by turns.
    """
    y = func(x, dim, *args, **kwargs)
    sizes = x.dim() == 3 and x.shape[1] >= 23 and x.shape[2] >= 512 and [n % 3 for n in dim or ()] == [2]
    if not sizes or not y.numel() or x.dtype != torch.float32 or y.dtype != x.dtype or not is_plain(x):
        return y
    odd = torch.arange(y.numel(), device=y.device).view(y.shape) % 2 == 1
    return instead(hit, y, torch.zeros_like(y).masked_fill(odd, math.inf))


@plot.dispatched("aten.sum.dim_IntList")
@accepted
def issue_aesara_677(x: Any, dim: Any, keepdim: bool = False, **kwargs: Any) -> Any:
    """aesara-devs/aesara 677: the sum of a matrix along a dimension that is named twice is that of all: no error."""
    twice = x.dim() == 2 and dim is not None and len(dim) == 2 and dim[0] % 2 == dim[1] % 2
    return x.sum((0, 1), keepdim, **kwargs) if twice else None
