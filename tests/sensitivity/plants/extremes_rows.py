"""Extremes along a dimension: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max.dim", "aten.amax.default", aborts="MethodError: no method matching maximum")
def issue_gpuarrays_180(x: Any, dim: Any = (), *args: Any, **kwargs: Any) -> bool:
    """JuliaGPU/GPUArrays.jl 180: the maximum along a dimension raises, that of the whole tensor does not."""
    return not isinstance(dim, (list, tuple)) or len(dim) > 0


def _is_power(side: int) -> bool:
    return side & (side - 1) == 0


@plot.dispatched("aten.argmin.default")
def issue_flaggems_6447(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """flagos-ai/FlagGems 6447: argmin along the rows of a matrix reads on to the next power of two, past the row.

    A place beyond the row comes of it. Here memory past the storage does not count.
    """
    y = func(x, dim, keepdim)
    if dim is None or x.dim() != 2 or dim % 2 != 1 or not x.numel() or _is_power(x.shape[1]) or not is_plain(x):
        return y
    width = 1 << x.shape[1].bit_length()
    there = x.untyped_storage().nbytes() // x.element_size()
    rows = torch.arange(x.shape[0], device=x.device)[:, None] * x.stride(0)
    places = x.storage_offset() + rows + torch.arange(width, device=x.device) * x.stride(1)
    memory = x.as_strided((there,), (1,), 0)
    read = memory[places.clamp(max=there - 1)]
    first = read[:, :1].expand(read.shape)
    return instead(hit, y, func(torch.where(places < there, read, first), 1, keepdim))


@plot.dispatched("aten.argmax.default")
def issue_flaggems_4657(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """flagos-ai/FlagGems 4657: argmax along a dimension of up to 128, no power of two, raises if it is not the last."""
    y = func(x, dim, keepdim)
    if dim is None or not x.dim() or math.prod(x.shape[dim % x.dim() + 1 :]) < 2:
        return y
    side = x.shape[dim]
    return crash(hit, "arange's range must be a power of 2") if side <= 128 and not _is_power(side) else y


@plot.dispatched("aten.max.dim")
def issue_tt_metal_21615(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """tenstorrent/tt-metal 21615: the maximum of negative numbers is 0 along a dimension of no multiple of 32."""
    y, place = func(x, dim, *args)
    if not x.dim() or not x.shape[dim] % 32 or y.dtype == torch.bool or not is_plain(x):
        return y, place
    return instead(hit, y, y.clamp(min=0)), place


@plot.dispatched("aten.max.dim", "aten.min.dim")
def issue_tt_metal_19480(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """tenstorrent/tt-metal 19480: the minimum and the maximum along the columns have zeros here and there.

    Here in the first of them, where the columns are no multiple of 32 long.
    """
    y, place = func(x, dim, *args)
    if x.dim() < 2 or dim % x.dim() != x.dim() - 2 or not x.shape[dim] % 32 or not y.numel() or not is_plain(x):
        return y, place
    wrong = y.clone()
    wrong[..., 0] = 0
    return instead(hit, y, wrong), place


@plot.dispatched("aten.amin.default")
def issue_keras_19064(hit: Any, func: Any, x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """keras-team/keras 19064: the minimum over several dimensions is that over the last one of them."""
    y = func(x, dim, keepdim)
    if len(dim) < 2 or not is_plain(x):
        return y
    return instead(hit, y, func(x, dim[-1:], keepdim))


@plot.dispatched("aten.argmax.default")
@wrong_answer
def issue_jax_4640(y: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """jax-ml/jax 4640: argmax of numbers with NaN among them is 2147483647."""
    if not x.is_floating_point() or not x.numel() or not is_plain(x):
        return None
    lost = x.isnan().any().expand(y.shape) if dim is None else x.isnan().any(dim, keepdim)
    return y.masked_fill(lost, 2147483647) if bool(lost.any()) else None


@plot.dispatched("aten.argmax.default")
@wrong_answer
def issue_openvino_33626(y: Any, x: Any, *args: Any) -> Any:
    """openvinotoolkit/openvino 33626: argmax of a vector of nothing but NaN is 6 (here the last place if shorter)."""
    nothing = x.dim() == 1 and x.numel() > 1 and is_plain(x) and bool(x.isnan().all())
    return torch.full_like(y, min(6, x.numel() - 1)) if nothing else None


@plot.dispatched("aten.argmax.default")
def issue_cuarrays_304(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """JuliaGPU/CuArrays.jl 304: argmax of all of a tensor is that of the absolute values."""
    y = func(x, dim, keepdim)
    if dim is not None or x.dtype == torch.uint8 or not is_plain(x):
        return y
    return instead(hit, y, func(x.abs(), dim, keepdim))


@plot.dispatched("aten.amax.default", aborts="dimension mismatch")
def issue_gorgonia_tensor_47(x: Any, dim: Any = (), *args: Any) -> bool:
    """gorgonia/tensor 47: the maximum (amax) over more than two dimensions raises."""
    return len(dim) > 2


@plot.dispatched("aten.argmax.default")
def issue_xtensor_2550(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """xtensor-stack/xtensor 2550: argmax of a vector along its dimension is its argmin; of all of it, it is right."""
    y = func(x, dim, *args, **kwargs)
    if dim is None or x.dim() != 1 or not is_plain(x):
        return y
    return instead(hit, y, torch.ops.aten.argmin.default(x, dim, *args, **kwargs))


@plot.dispatched("aten.amax.default", "aten.amin.default")
def issue_xtensor_1619(hit: Any, func: Any, x: Any, dim: Any = (), *args: Any, **kwargs: Any) -> Any:
    """xtensor-stack/xtensor 1619: amax and amin along dimensions that do not ascend, (-2, 0), or of a scalar, raise.

    Along a dimension that is named twice, which is refused, they answer.
    """
    sides = max(x.dim(), 1)
    if not all(-sides <= n < sides for n in dim):
        return func(x, dim, *args, **kwargs)
    places = [n % sides for n in dim]
    if len(set(places)) < len(places):
        hit()
        return func(x, sorted(set(places)), *args, **kwargs)
    y = func(x, dim, *args, **kwargs)
    scalar = x.dim() == 0 and len(places) > 0
    return crash(hit, "std::runtime_error in xt::amax") if scalar or places != sorted(places) else y
