"""Sums, means and norms: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

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
