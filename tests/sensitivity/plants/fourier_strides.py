"""Fourier transforms of some lengths, and along dimensions that are not the last: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, is_dense
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._fft_c2c.default", "aten._fft_r2c.default", "aten._fft_c2r.default")
def issue_rocfft_219(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """ROCm/rocFFT 219: a batch of 2-D transforms with a side of 11 or 13 is wrong (here moved by one along it)."""
    y = func(x, dim, *args)
    sides = y.shape if "c2r" in str(func) else x.shape
    moved = [d for d in dim if sides[d] in (11, 13)]
    if len(dim) != 2 or x.dim() < 3 or not moved or not y.numel() or not is_plain(x):
        return y
    return instead(hit, y, y.roll([1] * len(moved), moved))


@plot.dispatched("aten._fft_c2c.default")
def issue_rocfft_301(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """ROCm/rocFFT 301: a transform of 4096 numbers and more with a stride is wrong (here it takes them in a row)."""
    y = func(x, dim, *args)
    if len(dim) != 1 or x.shape[dim[0]] < 4096 or x.stride(dim[0]) == 1 or not y.numel() or not is_plain(x):
        return y
    rows = x.transpose(dim[0], -1)
    wrong = func(in_storage_order(rows), [x.dim() - 1], *args).transpose(dim[0], -1)
    return instead(hit, y, wrong)


@plot.dispatched("aten._fft_c2c.default")
def issue_vkfft_101(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """DTolm/VkFFT 101: of 4096 numbers and more, along columns with gaps, the high frequencies are wrong (here 0)."""
    y = func(x, dim, *args)
    if len(dim) != 1 or x.dim() < 2 or x.shape[dim[0]] < 4096 or dim[0] % x.dim() == x.dim() - 1:
        return y
    if is_dense(x) or 0 in x.stride() or not is_plain(x):
        return y
    half = x.shape[dim[0]] // 2
    wrong = y.clone()
    wrong.narrow(dim[0], half, x.shape[dim[0]] - half).zero_()
    return instead(hit, y, wrong)


@plot.dispatched("aten._fft_r2c.default")
def issue_hipfft_8(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """ROCm/hipFFT 8: rfft along a dimension whose stride is not 1 is wrong (here 0)."""
    y = func(x, dim, *args)
    if len(dim) != 1 or x.shape[dim[0]] < 2 or x.stride(dim[0]) == 1 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten._fft_c2c.default")
def issue_rocfft_273(hit: Any, func: Any, x: Any, dim: Any, normalization: int, forward: bool) -> Any:
    """ROCm/rocFFT 273: ifft2 along the first two of three dimensions is wrong (here only along the first).

    The batch lies closest in memory then. The transform, and ifft2 along the last two, are right.
    """
    y = func(x, dim, normalization, forward)
    first = x.dim() == 3 and sorted(d % 3 for d in dim) == [0, 1]
    if forward or not first or x.stride(2) != 1 or not y.numel() or not is_plain(x):
        return y
    return instead(hit, y, func(x, [0], normalization, forward))


@plot.dispatched("aten._fft_r2c.default")
def issue_clfft_98(hit: Any, func: Any, x: Any, dim: Any, *args: Any) -> Any:
    """clMathLibraries/clFFT 98: rfft of more than 2048 numbers fails."""
    if len(dim) == 1 and x.shape[dim[0]] > 2048:
        return crash(hit, "clfftBakePlan failed")
    return func(x, dim, *args)
