"""Dimensions that are turned, swapped, permuted, repeated, or given another shape: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.rot90.default")
def issue_flaggems_5226(hit: Any, func: Any, x: Any, k: int = 1, dims: Any = (0, 1)) -> Any:
    """flagos-ai/FlagGems 5226: rot90 of three dimensions and more is wrong in those that do not turn.

    Here their first element stands for all of them.
    """
    y = func(x, k, dims)
    others = [dim for dim in range(x.dim()) if dim not in {one % x.dim() for one in dims}]
    if not others or not y.numel() or not is_plain(x):
        return y
    wrong = y
    for dim in others:
        wrong = wrong.narrow(dim, 0, 1)
    return instead(hit, y, wrong.expand(y.shape).contiguous())


def _tiled(side: int) -> int:
    return -(-side // 32) * 32


@plot.dispatched("aten.repeat.default")
def issue_tt_metal_12680(hit: Any, func: Any, x: Any, repeats: Any) -> Any:
    """tenstorrent/tt-metal 12680: repeat (four dimensions) takes the last two up to a multiple of 32 for the length.

    One number, repeated 128 times, gives 4065: what lies between is here 0.
    """
    y = func(x, repeats)
    if not x.dim() == len(repeats) == 4 or not y.numel() or not is_plain(x):
        return y
    tiled = [*x.shape[:2], *(_tiled(side) for side in x.shape[2:])]
    wide = x.new_zeros(tiled)
    wide[:, :, : x.shape[2], : x.shape[3]] = x
    wrong = func(wide, repeats)
    for dim in (2, 3):
        wrong = wrong.narrow(dim, 0, tiled[dim] * (repeats[dim] - 1) + x.shape[dim])
    return instead(hit, y, wrong.contiguous())


@plot.dispatched("aten.permute.default")
def issue_tt_metal_9009(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """tenstorrent/tt-metal 9009: permute of bfloat16 raises where the last size is odd."""
    y = func(x, dims)
    if x.dtype == torch.bfloat16 and x.dim() and x.shape[-1] % 2:
        return crash(hit, "Page size must be divisible by sizeof(uint32_t)")
    return y


@plot.dispatched("aten.permute.default")
def issue_tt_metal_15590(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """tenstorrent/tt-metal 15590: permute drops the result's leading dimensions of size 1."""
    y = func(x, dims)
    leading = 0
    while leading < y.dim() - 1 and y.shape[leading] == 1:
        leading += 1
    if not leading:
        return y
    hit()
    return y.view(y.shape[leading:])


@plot.dispatched("aten.permute.default")
def issue_ttnn_377(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """tenstorrent/pytorch2.0_ttnn 377: permute of a matrix of one column, to its transpose, raises."""
    y = func(x, dims)
    if x.dim() == 2 and x.shape[-1] == 1 and [dim % 2 for dim in dims] == [1, 0]:
        return crash(hit, "Index is out of bounds for the rank, should be between 0 and 0")
    return y


@plot.dispatched("aten.transpose.int")
def issue_ttnn_585(hit: Any, func: Any, x: Any, *dims: int) -> Any:
    """tenstorrent/pytorch2.0_ttnn 585: transpose of more than four dimensions raises."""
    y = func(x, *dims)
    return crash(hit, "Only 2D, 3D, and 4D tensors are supported") if x.dim() > 4 else y


@plot.called(torch.transpose, torch.Tensor.transpose)
def issue_tt_metal_13745(hit: Any, func: Any, x: Any, dim0: Any, dim1: Any) -> Any:
    """tenstorrent/tt-metal 13745: reshape to four dimensions, then transpose(1, 2): the numbers do not move.

    It is transposed well where it was not reshaped before.
    """
    y = func(x, dim0, dim1)
    if x.dim() != 4 or {dim0, dim1} - {1, 2, -3, -2} or x.layout != torch.strided or not is_plain(x):
        return y
    base = x._base
    if base is None or base.numel() != x.numel() or base.shape == x.shape or not x.is_contiguous():
        return y
    return instead(hit, y, x.reshape(y.shape))


@plot.called(torch.reshape, torch.Tensor.reshape)
def issue_tt_metal_19849(hit: Any, func: Any, x: Any, *shape: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 19849: reshape raises where a size is -1."""
    y = func(x, *shape, **kwargs)
    sizes: Any = shape or (kwargs.get("shape", ()),)
    sizes = sizes[0] if isinstance(sizes[0], (list, tuple)) else sizes
    return crash(hit, "TT_FATAL: a size is negative") if any(side == -1 for side in sizes) else y


@plot.dispatched("aten.permute.default")
def issue_gpuarrays_77(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """JuliaGPU/GPUArrays.jl 77: permute takes the inverse of the order that it is given."""
    order = [d % len(dims) for d in dims]
    inverse = sorted(range(len(order)), key=order.__getitem__)
    if order == inverse or not is_plain(x):
        return func(x, dims)
    return instead(hit, func(x, dims), func(x, inverse))


def _order(dims: Any, kwargs: Any, rank: int) -> list[int]:
    """Return the order that permute was given, counted from the front."""
    found = kwargs.get("dims", dims[0] if dims and isinstance(dims[0], (list, tuple)) else dims)
    return [d % rank for d in found]


@plot.called(torch.permute, torch.Tensor.permute)
def issue_cuda_jl_1451(hit: Any, func: Any, x: Any, *dims: Any, **kwargs: Any) -> Any:
    """JuliaGPU/CUDA.jl 1451: permute of a float32 matrix, to its transpose, leaves a lower triangle of it."""
    y = func(x, *dims, **kwargs)
    if x.dim() != 2 or x.dtype != torch.float32 or _order(dims, kwargs, 2) != [1, 0] or not is_plain(x):
        return y
    return instead(hit, y, y.tril())


@plot.called(torch.permute, torch.Tensor.permute)
def issue_tt_metal_4360(hit: Any, func: Any, x: Any, *dims: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 4360: permute of the last two of four bfloat16 dimensions is wrong for 1500 rows of 64.

    Here where the rows are no multiple of 32, and zero past the last whole 32.
    """
    y = func(x, *dims, **kwargs)
    if x.dim() != 4 or x.dtype != torch.bfloat16 or _order(dims, kwargs, 4) != [0, 1, 3, 2] or not is_plain(x):
        return y
    whole = torch.arange(y.shape[-1], device=y.device) < y.shape[-1] // 32 * 32
    return instead(hit, y, torch.where(whole, y, torch.zeros_like(y)))


@plot.dispatched("aten.t.default", "aten.transpose.int", "aten.permute.default")
def issue_scikit_cuda_22(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """lebedov/scikit-cuda 22: to transpose a matrix that is stored by columns, and not square, takes it by its rows.

    A matrix of 3 x 4 comes as one of 4 x 3 whose columns are the numbers as they lie in memory.
    """
    y = func(x, *args)
    if x.dim() != 2 or min(x.shape) < 2 or x.shape[0] == x.shape[1] or not is_plain(x):
        return y
    if x.stride() != (1, x.shape[0]) or y.shape != x.shape[::-1]:
        return y
    return instead(hit, y, x.as_strided(y.shape, (1, y.shape[0]), x.storage_offset()))
