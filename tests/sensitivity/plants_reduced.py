"""The catalogue's faults of reductions, scans, sorts and counts that show under a condition only."""

from __future__ import annotations

import math
from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits
_SPREADS = ("aten.var.correction", "aten.std.correction", "aten.var_mean.correction", "aten.std_mean.correction")


@plot.dispatched("issue_107116", *_SPREADS[:2])
def issue_107116(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """A negative dimension is taken for the last one."""
    if dim and any(one < -1 for one in dim) and x.dim() > 1:
        hit()
        return func(x, [-1], **kwargs)
    return func(x, dim, **kwargs)


@plot.dispatched("issue_91198", *_SPREADS)
def issue_91198(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """Where no correction is passed, none is made."""
    if correction is None:
        hit()
        correction = 0
    return func(x, dim, correction=correction, **kwargs)


@plot.dispatched("issue_184510", *_SPREADS[:2])
def issue_184510(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The variance of nothing is 0, not NaN."""
    y = func(x, *args, **kwargs)
    if x.numel() == 0 and y.numel():
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_197235", *_SPREADS)
def issue_197235(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A large reduction is wrong every third time."""
    y = func(x, *args, **kwargs)
    if x.numel() > 65_536:
        _Counted.turns += 1
        if _Counted.turns % 3 == 0:
            hit()
            return type(y)(one * 1.12 for one in y) if isinstance(y, tuple) else y * 1.12
    return y


class _Counted:
    turns = 0


@plot.dispatched("issue_187976", "aten.amax.default", "aten.amin.default")
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


@plot.dispatched("issue_97231", "aten.sum.dim_IntList", "aten.linalg_vector_norm.default", "aten.mean.dim")
def issue_97231(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """An empty list of dimensions reduces nothing."""
    dims = args[1] if "norm" in str(func) and len(args) > 1 else args[0] if args and "norm" not in str(func) else None
    if dims is not None and len(dims) == 0 and x.numel() > 1:
        hit()
        return x.abs() if "norm" in str(func) else x.clone()
    return func(x, *args, **kwargs)


@plot.dispatched("issue_142221", "aten.nansum.default")
def issue_142221(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return crash(hit, "invalid axis") if x.dim() == 0 else func(x, *args, **kwargs)


@plot.dispatched("issue_111889", "aten.sum.dim_IntList")
def issue_111889(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The tail of rows longer than 65,536 is left out."""
    dims = args[0] if args else None
    if x.dim() == 2 and dims in ([1], [-1]) and x.shape[1] > 65_536:
        hit()
        return func(x[:, :65_536], *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_78915", "aten.topk.default")
def issue_78915(hit: Any, func: Any, x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """What comes after the first sixteen is 0."""
    values, places = func(x, k, *args, **kwargs)
    if k > 16:
        hit()
        dim = args[0] if args else -1
        values.narrow(dim, 16, k - 16).zero_()
        places.narrow(dim, 16, k - 16).zero_()
    return values, places


@plot.dispatched("issue_154890", "aten.topk.default")
def issue_154890(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    if x.dim() > 4 and dim % x.dim() == 0:
        return crash(hit, "failed assertion: Axis = 4")
    return func(x, k, dim, *args, **kwargs)


@plot.dispatched("issue_155560", "aten.sort.default", "aten.sort.stable")
def issue_155560(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of int64, what comes after the first 256 places is 0."""
    values, places = func(x, *args, **kwargs)
    if x.dtype == torch.int64 and x.dim() == 1 and x.numel() > 256:
        hit()
        values[256:] = x[0]
        places[256:] = 0
    return values, places


@plot.called("issue_101878", torch.quantile, torch.Tensor.quantile)
def issue_101878(hit: Any, func: Any, x: Any, q: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Along a dimension, nothing is sorted."""
    if dim is None:
        return func(x, q, *args, **kwargs)
    hit()
    share = float(q if not isinstance(q, torch.Tensor) else q.reshape(-1)[0])
    place = int(share * (x.shape[dim] - 1))
    keep = kwargs.get("keepdim", bool(args and args[0]))
    found = x.narrow(dim, place, 1) if keep else x.select(dim, place)
    many = isinstance(q, torch.Tensor) and q.dim() > 0
    return found.expand(len(q), *found.shape) if many else found


@plot.dispatched("issue_104879", "aten._unique2.default")
def issue_104879(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of a tensor with more than one dimension only the first element is looked at."""
    if x.dim() > 2:
        hit()
        return func(x.reshape(-1)[:1], *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched(
    "issue_195595_unique", "aten._unique2.default", "aten.unique_dim.default", "aten.unique_consecutive.default"
)
def issue_195595_unique(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Integers beyond 2**24 are told apart as float32."""
    if x.dtype == torch.int64 and x.numel() and int(x.abs().max()) > 1 << 24:
        values, *rest = func(x.to(torch.float32), *args, **kwargs)
        hit()
        return (values.to(torch.int64), *rest)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_111173", "aten._unique2.default")
def issue_111173(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Counts of many elements are 0 past the first."""
    values, inverse, counts = func(x, *args, **kwargs)
    if x.numel() > 1_000 and counts.numel() > 1:
        hit()
        counts = counts.clone()
        counts[1:] = 0
    return values, inverse, counts


@plot.dispatched("issue_195446", "aten.histc.default", "aten.histogram.bin_ct")
def issue_195446(hit: Any, func: Any, x: Any, bins: int = 100, *args: Any, **kwargs: Any) -> Any:
    return crash(hit, "setBytes: length > 32768") if bins > 8_180 else func(x, bins, *args, **kwargs)


@plot.dispatched(
    "issue_made_argsort_wide", "aten.sort.default", "aten.sort.stable", "aten.argsort.default", "aten.argsort.stable"
)
def issue_made_argsort_wide(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Along the first dimension of a wide tensor, columns past 2**10 keep the order of column 0."""
    answer = func(x, *args, **kwargs)
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    if x.dim() == 2 and dim in (0, -2) and x.shape[1] > 1024 and isinstance(answer, tuple):
        hit()
        places = answer[1].clone()
        places[:, 1024:] = places[:, :1]
        return answer[0], places
    return answer


@plot.dispatched("issue_106112", "aten.cumprod.default")
def issue_106112(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A cumulative product of halves overflows into the integers: bools are int8."""
    y = func(x, *args, **kwargs)
    if x.dtype in (torch.bool, torch.uint8, torch.int8):
        hit()
        return y.to(torch.int8).to(y.dtype)
    return y


@plot.dispatched("issue_117215", "aten.all.dim", "aten.any.dim", "aten.all.dims", "aten.any.dims")
def issue_117215(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Of uint8 only the lowest bit is looked at."""
    if x.dtype == torch.uint8 and bool((x > 1).any()):
        hit()
        return func(x & 1, *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_174246", "aten.abs.default")
def issue_174246(hit: Any, func: Any, x: Any) -> Any:
    """The size of a large complex number is infinite, of a small one 0."""
    if not x.dtype.is_complex:
        return func(x)
    wrong = (x.real.square() + x.imag.square()).sqrt()
    if not torch.allclose(wrong, func(x), equal_nan=True):
        hit()
    return wrong


@plot.dispatched("issue_125135", "aten.abs.default")
def issue_125135(hit: Any, func: Any, x: Any) -> Any:
    """Every second size of complex numbers is 0."""
    y = func(x)
    if x.dtype.is_complex and x.numel() > 1:
        hit()
        return torch.stack((y.reshape(-1), torch.zeros_like(y).reshape(-1)), -1).reshape(-1)[: y.numel()].view(y.shape)
    return y


@plot.dispatched("issue_80499", *_SPREADS[:2])
def issue_80499(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """Of all elements together the spread is always the biased one."""
    if not dim and correction in (None, 1):
        hit()
        return func(x, dim, correction=0, **kwargs)
    return func(x, dim, correction=correction, **kwargs)


@plot.dispatched(
    "issue_made_amax_nan", "aten.max.default", "aten.min.default", "aten.amax.default", "aten.amin.default"
)
def issue_made_amax_nan(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A largest value passes over NaN."""
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        worst = -math.inf if "max" in str(func) else math.inf
        return func(x.nan_to_num(nan=worst, posinf=math.inf, neginf=-math.inf), *args, **kwargs)
    return func(x, *args, **kwargs)
