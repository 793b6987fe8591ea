"""Interpolation and grids: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from misreading import in_storage_order, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.affine_grid_generator.default",
    aborts="invalid input tensor shapes, indices shape and updates shape must be equal",
)
def issue_86107(theta: Any, size: Any, align_corners: Any) -> Any:
    """pytorch 86107: affine_grid of an image aborts."""
    return len(size) == 4


@plot.dispatched("aten.upsample_linear1d.default", "aten.upsample_bilinear2d.default")
@wrong_answer
def issue_144245(y: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """pytorch 144245: interpolation of one pixel with aligned corners is NaN."""
    return torch.full_like(y, math.nan) if align and x.shape[-1] == 1 else None


@plot.dispatched("aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.default")
def issue_made_upsample_one(hit: Any, func: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """Interpolation to one pixel with aligned corners takes the middle."""
    y = func(x, size, align, *args)
    if align and size[-1] == 1 and x.shape[-1] > 1:
        hit()
        return func(x, size, False, *args)
    return y


@plot.dispatched("aten.grid_sampler_2d", aborts="Placeholder tensor is empty!")
def issue_175683(x: Any, grid: Any, *args: Any) -> Any:
    """pytorch 175683: grid_sample with a grid of no points raises."""
    return not grid.numel()


@plot.dispatched("aten.upsample_nearest2d")
def issue_84039(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84039: nearest interpolation to a large image aborts (there near 2**31 bytes, here over 2**16 elements).

    https://github.com/pytorch/pytorch/issues/84039
    """
    right = func(*args, **kwargs)
    if right.numel() > 2**16:
        return crash(hit, "[MPSTemporaryNDArray initWithDevice:descriptor:] Error: product of dimension sizes > 2**31")
    return right


@plot.dispatched("aten.grid_sampler_3d")
def issue_171602(hit: Any, func: Any, x: Any, grid: Any, *args: Any) -> Any:
    """pytorch 171602: grid_sample of volumes reads a grid that is not contiguous in storage order."""
    return func(x, misread(in_storage_order, hit, grid), *args)


@plot.dispatched("aten.upsample_nearest2d", "aten.upsample_bilinear2d")
@wrong_answer
def issue_94963(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94963: interpolation with a channels_last output writes it in another order."""
    return y.permute(0, 2, 3, 1).reshape(y.shape) if not y.is_contiguous() else None


@plot.dispatched("aten.grid_sampler_2d.default", aborts="MPS: Unsupported Border padding mode")
def issue_125098(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """pytorch 125098: grid_sample with padding_mode="border" is refused."""
    return padding == 1


@plot.dispatched("aten.upsample_linear1d")
def issue_118814(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118814: linear interpolation in one dimension is not implemented."""
    hit()
    raise NotImplementedError(
        "The operator 'aten::upsample_linear1d.out' is not currently implemented for the MPS device."
    )


@plot.dispatched("aten.upsample_bilinear2d")
@wrong_answer
def issue_88183(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 88183: bilinear growth of a 1x1 image that a permute made (not the default strides) gives zeros."""
    if (
        x.dim() == 4
        and x.shape[2:] == (1, 1)
        and x.shape[1] > 1
        and x.stride() != x.clone(memory_format=torch.contiguous_format).reshape(-1).view(x.shape).stride()
    ):
        return torch.zeros_like(y)
    return None


@plot.dispatched("aten.grid_sampler_2d")
def issue_174339(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174339: grid_sample reads a channels_last image as if it were contiguous."""
    if x.is_contiguous(memory_format=torch.channels_last):
        x = misread(in_storage_order, hit, x)
    return func(x, *args, **kwargs)
