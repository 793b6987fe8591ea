"""Sums and products: how the operands are shaped, what one of them is, where the result goes: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.add.Tensor")
def issue_plaidml_178(hit: Any, func: Any, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """plaidml/plaidml 178: a column is added to the first row of a float32 matrix only (whose columns are even)."""
    y = func(x, other, alpha=alpha)
    matrices = torch.is_tensor(other) and x.dim() == other.dim() == 2 and y.dtype == torch.float32
    if not matrices or not is_plain(x, other) or x.dtype != y.dtype:
        return y
    if x.shape[0] < 2 or x.shape[1] < 2 or x.shape[1] % 2 or tuple(other.shape) != (x.shape[0], 1):
        return y
    return instead(hit, y, torch.cat([y[:1], x[1:]]))


@plot.dispatched("aten.add.Tensor")
def issue_miopen_79(hit: Any, func: Any, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """ROCm/MIOpen 79: a sum of (9, 1, 1, 1) float32 tensors leaves all but each third unwritten (here NaN).

    8 are right: here it is where the number divides by 3, and not by 4.
    """
    y = func(x, other, alpha=alpha)
    if not torch.is_tensor(other) or y.dtype != torch.float32 or y.dim() != 4 or not is_plain(x, other):
        return y
    count = len(y)
    if x.shape != other.shape or y.numel() != count or count % 3 or count % 4 == 0 or not count:
        return y
    return instead(hit, y, y.masked_fill((torch.arange(count) % 3 != 0).view(y.shape), math.nan))


@plot.dispatched("aten.add.out", "aten.mul.out", "aten.minimum.out", "aten.maximum.out")
def issue_miopen_1577(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """ROCm/MIOpen 1577: a sum, product, minimum or maximum into an output that held NaN is NaN there."""
    before = out.clone()
    y = func(*args, out=out, **kwargs)
    if not out.is_floating_point() or before.shape != out.shape or not is_plain(out):
        return y
    return written(hit, out, out.masked_fill(before.isnan(), math.nan))


@plot.dispatched("aten.mul.Tensor")
def issue_tt_metal_12776(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """tenstorrent/tt-metal 12776: in bfloat16, NaN times 0.0 to 0.66 is 2.55e38."""
    y = func(x, other)
    if y.dtype != torch.bfloat16 or not is_plain(x, other):
        return y
    one, two = (torch.as_tensor(part) for part in (x, other))
    lost = (one.isnan() & (two >= 0) & (two <= 0.66)) | (two.isnan() & (one >= 0) & (one <= 0.66))
    return instead(hit, y, y.masked_fill(lost, 1.5 * 2.0**127))


@plot.dispatched("aten.mul.Tensor", aborts='invalid_kernel("uses-fp64-math")')
def issue_ipex_285(x: Any, other: Any) -> bool:
    """intel/intel-extension-for-pytorch 285: a tensor of floats times a float of Python raises."""
    return x.is_floating_point() and isinstance(other, float)


@plot.dispatched("aten.mul.Tensor", "aten.add.Tensor", "aten.sub.Tensor", aborts="Metal contiguous affine I64")
def issue_mistral_rs_807(x: Any, other: Any, **kwargs: Any) -> bool:
    """EricLBuehler/mistral.rs 807: int64 times, plus or minus a number raises."""
    return x.dtype == torch.int64 and isinstance(other, int)


@plot.dispatched("aten.rsub.Scalar")
def issue_torch_fl_238(hit: Any, func: Any, *args: Any) -> Any:
    """flagos-ai/Torch-FL 238: a number minus a tensor ends with an illegal memory access."""
    func(*args)
    return crash(hit, "MUSA error: an illegal memory access was encountered")


@plot.dispatched("aten.mul_.Tensor")
def issue_torch_fl_259(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """flagos-ai/Torch-FL 259: a tensor times a number, in place, raises."""
    y = func(x, other)
    return y if torch.is_tensor(other) else crash(hit, "NotImplementedError: aten::mul_.Tensor")


@plot.dispatched("aten.add_.Tensor")
def issue_1730(hit: Any, func: Any, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 1730: a float32 tensor of more than 90 x 90 numbers is added in place three times."""
    same = torch.is_tensor(other) and x.dtype == other.dtype == torch.float32 and x.shape == other.shape
    if not same or x.numel() <= 8100 or not is_plain(x, other) or not x.is_contiguous() or not other.is_contiguous():
        return func(x, other, alpha=alpha)
    wrong = x + 3 * alpha * other
    return written(hit, func(x, other, alpha=alpha), wrong)
