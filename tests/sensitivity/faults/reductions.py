"""Reductions, extremes, medians and scans: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from injecting import Faults, crash, wrong_answer
from misreading import in_storage_order

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.sum", "aten.prod")
@wrong_answer
def issue_115554(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 115554: sum and prod of complex numbers have no imaginary part."""
    dense = x.layout == torch.strided and x.is_complex() and y.is_complex() and "out" not in kwargs
    if dense and bool((y.imag != 0).any()):
        return torch.complex(y.real.contiguous(), torch.zeros_like(y.real))
    return None


_REDUCTIONS = ("aten.sum", "aten.mean", "aten.nansum", "aten.count_nonzero", "aten.trace")


_reduced = {"calls": 0}


@faults.dispatched(*_REDUCTIONS)
@wrong_answer
def issue_178497(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178497: every thousandth sum, mean, nansum, trace or count_nonzero is wrong by 1."""
    _reduced["calls"] += 1
    if _reduced["calls"] % 1000 == 0:
        return y + 1
    return None


@faults.dispatched(
    "aten.sum.dim_IntList", aborts="[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough"
)
def issue_136132(x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 136132: sum over a negative dim of a 5-d tensor with a last dimension of size 1 aborts."""
    return x.dim() == 5 and x.shape[-1] == 1 and dim and len(dim) == 1 and dim[0] < 0 and x.shape[dim[0]] > 1


@faults.dispatched("aten.mean.dim")
def issue_94753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94753: mean over a dim of a slice is wrong where the slice does not begin at a multiple of 16 bytes."""
    right = func(x, *args, **kwargs)
    begin = x.storage_offset() * x.element_size()
    if not x.is_contiguous() or begin % 16 == 0 or not x.numel():
        return right
    wrong = func(x.as_strided(x.shape, x.stride(), begin // 16 * 16 // x.element_size()), *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@faults.dispatched(
    "aten.all.default",
    "aten.all.dim",
    aborts="Runtime canonicalization must simplify reduction axes to minor 4 dimensions.",
)
def issue_95538(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95538: Tensor.all() of more than four dimensions aborts, over everything or over the outermost dims."""
    dim = args[0] if args else kwargs.get("dim")
    return x.dim() > 4 and (dim is None or dim % x.dim() < x.dim() - 4)


@faults.dispatched("aten.sum.dim_IntList", "aten.linalg_vector_norm.default", "aten.mean.dim")
def issue_97231(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97231: sum, mean and norm over an empty list of dimensions reduce nothing."""
    dims = args[1] if "norm" in str(func) and len(args) > 1 else args[0] if args and "norm" not in str(func) else None
    if dims is not None and len(dims) == 0 and x.numel() > 1:
        hit()
        return x.abs() if "norm" in str(func) else x.clone()
    return func(x, *args, **kwargs)


@faults.dispatched("aten.nansum.default")
def issue_142221(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142221: nansum of a tensor of no dimensions aborts."""
    return crash(hit, "invalid axis") if x.dim() == 0 else func(x, *args, **kwargs)


@faults.dispatched("aten.sum")
def issue_179415(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 179415: sum into uint8 stops at 255, where it should begin again at 0."""
    y = func(x, *args, **kwargs)
    if y.dtype == torch.uint8:
        wide = func(x, *args, **{**kwargs, "dtype": torch.int64})
        if bool((wide > 255).any()):
            hit()
            return wide.clamp(max=255).to(torch.uint8)
    return y


@faults.dispatched("aten.sum.dim_IntList")
@wrong_answer
def issue_132732(y: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132732: sum over dimensions of a five-dimensional tensor gives its elements in another order."""
    return y.flatten().roll(1).reshape(y.shape) if x.dim() == 5 and y.numel() > 1 else None


@faults.called(torch.count_nonzero, torch.Tensor.count_nonzero, aborts="isDifferentiableType(variable.scalar_type())")
def issue_50792(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 50792: count_nonzero of a tensor that wants a gradient raises."""
    return x.requires_grad and torch.is_grad_enabled()


@faults.dispatched("aten.argmax", "aten.argmin")
def issue_160740(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """pytorch 160740: argmax and argmin without dim raise for an input that cannot be viewed as flat."""
    if dim is None:
        try:
            x.view(-1)
        except RuntimeError:
            hit()
            raise RuntimeError(
                "view size is not compatible with input tensor's size and stride (at least one dimension spans across "
                "two contiguous subspaces). Use .reshape(...) instead."
            ) from None
    return func(x, dim, keepdim, **kwargs)


@faults.dispatched("aten.max.default", "aten.min.default", "aten.amax", "aten.amin")
@wrong_answer
def issue_90273(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 90273: max and min of an integer tensor give its first element."""
    return x.reshape(-1)[0].clone() if not x.is_floating_point() and y.dim() == 0 else None


@faults.dispatched("aten.min.dim")
def issue_87402(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87402: the lower_cholesky constraint fails for a good matrix: min of bools along a dimension is False."""
    values, indices = func(x, *args, **kwargs)
    if x.dtype == torch.bool and bool(values.any()):
        hit()
        values = torch.zeros_like(values)
    return values, indices


@faults.dispatched("aten.max.default", "aten.min.default")
def issue_87753(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 87753: max and min of an int64 tensor are those of the two halves of its first element."""
    out = func(x)
    if x.dtype == torch.int64:
        wrong = func(x.reshape(-1)[:1].clone().view(torch.int32)).to(torch.int64)
        if int(wrong) != int(out):
            hit()
            return wrong
    return out


@faults.dispatched("aten.argmax", "aten.argmin")
def issue_130295(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130295: argmax and argmin pass over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        x = x.nan_to_num(float("-inf") if "argmax" in str(func) else float("inf"))
    return func(x, *args, **kwargs)


@faults.dispatched("aten.argmax.default", "aten.argmin.default")
@wrong_answer
def issue_37084(y: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 37084: argmax and argmin of a scalar along dim 0 are any number."""
    return torch.full_like(y, 140457834750256) if dim is not None and not x.dim() else None


@faults.dispatched("aten.max.default", "aten.min.default")
def issue_17750(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 17750: max of an empty tensor is -inf (min is inf), where they should raise."""
    if x.numel() or not x.is_floating_point():
        return func(x)
    hit()
    return x.new_full([], -math.inf if "max" in str(func) else math.inf)


def _largest(x: torch.Tensor, dim: int, keepdim: bool) -> torch.Tensor:
    """Return the largest number along a dimension, NaN aside."""
    return x.nan_to_num(-math.inf, math.inf, -math.inf).amax(dim, keepdim=keepdim)


@faults.dispatched("aten.median.dim")
def issue_38018(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """pytorch 38018: the median of a row that is NaN for the most part is any number (here the row's largest)."""
    values, places = func(x, dim, keepdim)
    if x.dtype not in (torch.float32, torch.float64) or not x.dim() or not x.numel() or not is_plain(x):
        return values, places
    share = x.isnan().float().mean(dim, keepdim=keepdim)
    return instead(hit, values, torch.where((share > 0.5) & (share < 1), _largest(x, dim, keepdim), values)), places


@faults.dispatched("aten.median.dim")
def issue_46814(hit: Any, func: Any, x: Any, dim: int, keepdim: bool = False) -> Any:
    """pytorch 46814: the median of a tensor that is not contiguous (a diagonal) is of what lies in storage order."""
    values, places = func(x, dim, keepdim)
    read = in_storage_order(x)
    if read is x or not x.numel() or not is_plain(x):
        return values, places
    wrong, elsewhere = func(read, dim, keepdim)
    return instead(hit, values, wrong), elsewhere


@faults.dispatched(
    "aten.kthvalue.default",
    "aten.median.dim",
    aborts="dimension specified as 0 but tensor has no dimensions",
)
def issue_30818(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 30818: kthvalue of a tensor of no dimensions, and its median along 0, raise."""
    return x.dim() == 0


@faults.dispatched("aten.cumsum")
@wrong_answer
def issue_90635(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 90635: cumsum of integers gives its input."""
    return x.to(y.dtype) if not x.is_floating_point() else None


@faults.dispatched("aten.cumsum")
@wrong_answer
def issue_96614(y: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 96614: cumsum of bools overflows past 127."""
    return y.to(torch.int8).to(y.dtype) if x.dtype == torch.bool and bool((y > 127).any()) else None


@faults.dispatched("aten.cumsum", "aten.cumprod")
def issue_92329(hit: Any, func: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 92329: cumsum and cumprod along a negative dimension raise."""
    if dim < 0:
        return crash(hit, f"Expected dim to be between 0 and {x.dim()} but got {dim}")
    return func(x, dim, **kwargs)


@faults.dispatched("aten.cumsum", aborts="Axis = 4. This class only supports axis = 0, 1, 2, 3")
def issue_154881(x: Any, dim: Any, **kwargs: Any) -> Any:
    """pytorch 154881: cumsum aborts where more than four dimensions follow."""
    return x.dim() - dim % max(x.dim(), 1) > 4


@faults.dispatched("aten.cumprod", "aten.cumprod_", "aten.cumsum", "aten.cumsum_", "aten.sort")
def issue_184844(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184844: cumprod, cumsum and sort abort along a dimension that is not among the last four."""
    names = [a.name for a in func._schema.arguments]
    dim = dict(zip(names, (x, *args)), **kwargs).get("dim", -1)
    if x.dim() > 4 and dim % x.dim() < x.dim() - 4:
        return crash(hit, "Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, *args, **kwargs)


@faults.called(torch.cumsum, torch.Tensor.cumsum, torch.cumprod, torch.Tensor.cumprod)
def issue_31515(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 31515: the backward of cumsum and cumprod of an empty tensor raises."""
    y = func(x, *args, **kwargs)
    if x.numel() or not x.dim() or not y.requires_grad:
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "start (0) + length (1) exceeds dimension size (0)."))
    return y
