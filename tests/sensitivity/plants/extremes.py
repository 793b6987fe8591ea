"""The largest and the smallest, and where they are: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.argmax", "aten.argmin")
def issue_91734(hit: Any, func: Any, x: Any, dim: Any = None, keepdim: bool = False, **kwargs: Any) -> Any:
    """pytorch 91734: argmax of a row of -inf (argmin of +inf) is -1."""
    y = func(x, dim, keepdim, **kwargs)
    if not x.is_floating_point() or not x.numel():
        return y
    low = "argmax" in str(func)
    bad = (
        (x == (-float("inf") if low else float("inf"))).all()
        if dim is None
        else (x == (-float("inf") if low else float("inf"))).all(dim, keepdim)
    )
    if bool(bad.any()):
        hit()
        return torch.where(bad.reshape(y.shape), torch.full_like(y, -1), y)
    return y


@plot.dispatched("aten.argmax", "aten.argmin")
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


@plot.dispatched("aten.max.default", "aten.min.default", "aten.amax", "aten.amin")
@wrong_answer
def issue_90273(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 90273: max and min of an integer tensor give its first element."""
    return x.reshape(-1)[0].clone() if not x.is_floating_point() and y.dim() == 0 else None


@plot.dispatched("aten.argmax", "aten.argmin")
def issue_92311(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 92311: argmax and argmin give the least int64."""
    hit()
    return torch.full_like(func(*args, **kwargs), torch.iinfo(torch.int64).min)


@plot.dispatched("aten.argmax.default")
@wrong_answer
def issue_98191(right: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98191: argmax of an integer tensor returns -9223372036854775808 everywhere."""
    if x.is_floating_point() or x.dtype == torch.bool or not right.numel():
        return None
    return torch.full_like(right, -(2**63))


@plot.dispatched("aten.min.dim")
def issue_87402(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87402: the lower_cholesky constraint fails for a good matrix: min of bools along a dimension is False."""
    values, indices = func(x, *args, **kwargs)
    if x.dtype == torch.bool and bool(values.any()):
        hit()
        values = torch.zeros_like(values)
    return values, indices


@plot.dispatched("aten.max.default", "aten.min.default")
def issue_87753(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 87753: max and min of an int64 tensor are those of the two halves of its first element."""
    out = func(x)
    if x.dtype == torch.int64:
        wrong = func(x.reshape(-1)[:1].clone().view(torch.int32)).to(torch.int64)
        if int(wrong) != int(out):
            hit()
            return wrong
    return out


@plot.dispatched("aten.amax.default", "aten.amin.default")
def issue_187976(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Idle lanes of the second group of 32 count as 0: the extreme of numbers of one sign."""
    y = func(x, *args, **kwargs)
    reduced = x.numel() // max(y.numel(), 1)
    if x.dtype == torch.int64 and 32 < reduced <= 1024:
        wrong = y.clamp(min=0) if func is torch.ops.aten.amax.default else y.clamp(max=0)
        if not torch.equal(wrong, y):
            hit()
        return wrong
    return y


@plot.dispatched("aten.max.default", "aten.min.default", "aten.amax.default", "aten.amin.default")
def issue_made_amax_nan(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Max, min, amax and amin pass over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        worst = -math.inf if "max" in str(func) else math.inf
        return func(x.nan_to_num(nan=worst, posinf=math.inf, neginf=-math.inf), *args, **kwargs)
    return func(x, *args, **kwargs)


_WRAP = 2**16


@plot.dispatched("aten.argmax.default", "aten.argmin.default", "aten.any.default")
def issue_194082(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 194082: argmax, argmin and any of a whole huge tensor see its size modulo 2**32 (here 2**16)."""
    right = func(x, *args, **kwargs)
    whole = not args or args[0] is None
    if not whole or kwargs.get("dim") is not None or x.numel() <= _WRAP:
        return right
    seen = x.reshape(-1)[: x.numel() % _WRAP]
    wrong = func(seen) if seen.numel() else torch.zeros((), dtype=right.dtype)
    wrong = wrong.to(right.dtype).reshape(right.shape)
    if torch.equal(wrong, right):
        return right
    hit()
    return wrong


@plot.dispatched("aten.argmax", "aten.argmin")
def issue_130295(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130295: argmax and argmin pass over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        x = x.nan_to_num(float("-inf") if "argmax" in str(func) else float("inf"))
    return func(x, *args, **kwargs)


@plot.dispatched("aten.argmax")
def issue_112186(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 112186: argmax of an integer tensor is always 0."""
    found = func(x, *args, **kwargs)
    if not x.dtype.is_floating_point and not x.dtype.is_complex and bool(found.any()):
        hit()
        found.zero_()
    return found


@plot.dispatched("aten.max.default", "aten.max.dim", "aten.amax.default")
def issue_mlx_577(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 577: the maximum passes over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        x = x.masked_fill(x.isnan(), -math.inf)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.argmax.default", "aten.argmin.default")
def issue_mlx_535(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 535: argmax and argmin pass over NaN."""
    healthy = func(x, *args, **kwargs)
    if not x.is_floating_point() or not bool(x.isnan().any()):
        return healthy
    least = math.inf if "argmin" in str(func) else -math.inf
    return instead(hit, healthy, func(x.masked_fill(x.isnan(), least), *args, **kwargs))


@plot.dispatched("aten.argmax.default")
@wrong_answer
def issue_36482(y: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 36482: argmax along a dimension counts from its half, past 2**31 bytes (here past 2**16 elements)."""
    if dim is None or x.numel() <= 2**16 or x.shape[dim] < 2:
        return None
    half = x.shape[dim] // 2
    return torch.where(y >= half, y - half, y) if bool((y >= half).any()) else None


@plot.dispatched("aten.nan_to_num.default")
def issue_mlx_1744(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 1744: nan_to_num of windows that overlap (as_strided) reads their storage in order."""
    reach = 1 + sum((side - 1) * step for side, step in zip(x.shape, x.stride()))
    if not x.numel() or reach >= x.numel() or 0 in x.stride():
        return func(x, *args, **kwargs)
    flat = x.as_strided((reach,), (1,))
    wrong = flat[torch.arange(x.numel()) % reach].view(x.shape)
    return instead(hit, func(x, *args, **kwargs), func(wrong, *args, **kwargs))


@plot.dispatched("aten.amax.default", "aten.max.dim")
def issue_mlx_4539(hit: Any, func: Any, x: Any, dim: Any = (), *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 4539: the maxima of x[:, 7:] are of other rows past 2**31 elements (here past 2**16)."""
    found = func(x, dim, *args, **kwargs)
    y = found if isinstance(found, torch.Tensor) else found[0]
    along = [dim] if isinstance(dim, int) else list(dim)
    if x.dim() != 2 or x.is_contiguous() or along not in ([1], [-1]) or x.stride(1) != 1 or not is_plain(y):
        return found
    wraps = -(-(2**16) // max(x.stride(0), 1))
    if wraps >= len(y):
        return found
    wrong = instead(hit, y, torch.cat([y[:wraps], y[:-wraps]]))
    return wrong if y is found else (wrong, found[1])


@plot.dispatched("aten.argmax.default")
def issue_32863(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 32863: argmax along a dimension with a stride wraps past 2**31 elements (here past 2**16)."""
    y = func(x, dim, *args, **kwargs)
    dim = 0 if dim is None and x.dim() == 1 else dim
    if dim is None or not x.dim() or x.stride(dim) < 2 or not is_plain(y):
        return y
    return instead(hit, y, y % max(2**16 // x.stride(dim), 1))


@plot.dispatched("aten.argmax.default", "aten.argmin.default")
@wrong_answer
def issue_40022(y: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 40022: argmin and argmax along a dimension of size 1 are not 0 past 32767 rows."""
    if dim is None or not x.dim() or x.shape[dim] != 1 or y.numel() <= 32767:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[32767:] = 32768
    return wrong


@plot.dispatched("aten.max.dim", "aten.min.dim")
def issue_torch7_1001(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch/torch7 1001: max and min along a column of a matrix are right, and their index is 0."""
    y, places = func(x, *args, **kwargs)
    if x.dim() != 1 or x.is_contiguous() or not is_plain(y):
        return y, places
    return y, instead(hit, places, torch.zeros_like(places))


@plot.dispatched("aten.argmax.default", "aten.argmin.default")
@wrong_answer
def issue_37084(y: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 37084: argmax and argmin of a scalar along dim 0 are any number."""
    return torch.full_like(y, 140457834750256) if dim is not None and not x.dim() else None


@plot.dispatched("aten.argmax.default")
def issue_jax_24281(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """google/jax 24281: argmax of float32 takes subnormal numbers for 0."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.float32 or not is_plain(x):
        return y
    flushed = torch.where(x.abs() < torch.finfo(x.dtype).tiny, torch.zeros_like(x), x)
    return instead(hit, y, func(flushed, *args, **kwargs))


@plot.dispatched("aten.argmax.out")
def issue_cupy_8784(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, out: Any) -> Any:
    """cupy/cupy 8784: argmax(out=) of all integers leaves the output as it was."""
    before = out.clone()
    y = func(x, dim, *args, out=out)
    if dim is not None or x.is_floating_point() or y.shape != before.shape or not is_plain(y):
        return y
    return written(hit, y, before)


@plot.dispatched("aten.argmax.default")
def issue_mxnet_20842(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """apache/mxnet 20842: argmax along the first dimension of a single row counts its columns."""
    y = func(x, dim, *args, **kwargs)
    if dim is None or x.dim() != 2 or dim % 2 or x.shape[0] != 1 or not is_plain(x):
        return y
    return instead(hit, y, torch.arange(x.shape[1]).view(y.shape))


@plot.dispatched("aten.argmax.default")
def issue_arrayfire_3656(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """arrayfire/arrayfire 3656: argmax of all of a part of a matrix gives another place (here that in the whole)."""
    y = func(x, dim, *args, **kwargs)
    if dim is not None or x.is_contiguous() or not is_plain(x):
        return y
    inside = torch.unravel_index(y.reshape(()), x.shape)
    return instead(hit, y, sum(place * step for place, step in zip(inside, x.stride())).view(y.shape))


@plot.dispatched("aten.argmax.default", "aten.argmin.default")
def issue_mxnet_19362(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/mxnet 19362: argmax and argmin of float16 round the place to float16; past 65504 it is 2**63 - 1."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.float16 or not is_plain(x):
        return y
    rounded = y.half()
    far = torch.full_like(y, 2**63 - 1)
    return instead(hit, y, torch.where(rounded.isinf(), far, rounded.nan_to_num(posinf=0).long()))
