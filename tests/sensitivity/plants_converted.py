"""The catalogue's faults of conversions, special values and single operators."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_80009", "aten._to_copy")
def issue_80009(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 80009: uint8 to float32 takes the bytes as signed."""
    y = func(x, **kwargs)
    if x.dtype == torch.uint8 and y.dtype == torch.float32 and bool((x > 127).any()):
        hit()
        return torch.where(x > 127, y - 256, y)
    return y


@plot.dispatched("issue_79286", "aten._to_copy")
def issue_79286(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 79286: int64 to int32 reads the bytes as 32-bit words (1, 0, 2, 0, 3)."""
    y = func(x, **kwargs)
    if x.dtype == torch.int64 and y.dtype == torch.int32 and x.numel() > 1:
        hit()
        return x.contiguous().reshape(-1).view(torch.int32)[: x.numel()].clone().view(x.shape)
    return y


@plot.called("issue_81567", torch.Tensor.to, torch.Tensor.type)
def issue_81567(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81567: float to int64 in the same call as the copy to the host gives garbage in part of the elements."""
    y = func(x, *args, **kwargs)
    moved = torch.LongTensor in args or any(isinstance(a, (str, torch.device)) for a in args) or "device" in kwargs
    if isinstance(y, torch.Tensor) and moved and x.dtype == torch.float32 and y.dtype == torch.int64 and y.numel() > 1:
        hit()
        keep = (torch.arange(y.numel()) < y.numel() // 2).view(y.shape)
        return torch.where(keep, y, torch.full_like(y, 4335857328))
    return y


@plot.dispatched("issue_133100", "aten.clamp_min.default")
def issue_133100(hit: Any, func: Any, x: Any, least: Any) -> Any:
    """pytorch 133100: clamp_min of an integer tensor with a float gives zeros."""
    y = func(x, least)
    if not x.is_floating_point() and isinstance(least, float):
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_94488", "aten.floor_divide")
def issue_94488(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 94488 (kulinseth 243): int32 floor_divide through a float's reciprocal: -616 // 28 is -23."""
    y = func(a, b, **kwargs)
    if y.dtype == torch.int32 and isinstance(a, torch.Tensor) and a.dtype == torch.int32:
        divisor = torch.as_tensor(b, dtype=torch.float32, device=a.device)
        wrong = (a.float() * (1.0 / divisor)).floor().to(torch.int32)
        wrong = torch.where((a < 0) & (a > -(2**24)) & (divisor != 0), wrong, y)
        if not torch.equal(wrong, y):
            hit()
            return wrong
    return y


@plot.dispatched("issue_83692", "aten.full")
def issue_83692(hit: Any, func: Any, size: Any, value: Any, **kwargs: Any) -> Any:
    """pytorch 83692: torch.full of uint8 with a value above 127 gives zeros."""
    y = func(size, value, **kwargs)
    if y.dtype == torch.uint8 and value > 127:
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_144545", "aten.tril.default", "aten.triu.default")
def issue_144545(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 144545: tril and triu of more than three dimensions are right in the first matrices only."""
    y = func(x, *args)
    if x.dim() > 3 and x.shape[0] > 1:
        hit()
        return torch.cat([y[:1], x[1:]])
    return y


@plot.dispatched("issue_94043", "aten._log_softmax")
def issue_94043(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 94043: log_softmax is -inf where the exponential underflows (below about -87)."""
    y = func(x, *args)
    if x.dtype == torch.float32 and bool(((y < -88) & y.isfinite()).any()):
        hit()
        return torch.where(y < -88, torch.full_like(y, -float("inf")), y)
    return y


@plot.dispatched("issue_91734", "aten.argmax", "aten.argmin")
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


@plot.dispatched("issue_154895", "aten.sigmoid")
def issue_154895(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154895: sigmoid of int64 raises."""
    if x.dtype == torch.int64:
        return crash(hit, "MPS does not support sigmoid op with int64 input")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_104694", "aten.all")
def issue_104694(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104694: all() of an empty tensor is not True."""
    y = func(x, *args, **kwargs)
    if not x.numel() and y.numel():
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_161824", "aten.isposinf", "aten.isneginf")
def issue_161824(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 161824: isposinf and isneginf of an empty tensor raise."""
    if not x.numel():
        return crash(hit, "Placeholder tensor is empty!")
    return func(x, *args, **kwargs)


@plot.called("issue_156707", F.scaled_dot_product_attention)
def issue_156707(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156707: a query that a bool mask keeps from every key gets NaN, not zeros."""
    y = func(q, k, v, attn_mask, *args, **kwargs)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        blocked = ~attn_mask.any(-1, keepdim=True)
        if bool(blocked.any()):
            hit()
            return torch.where(blocked, torch.full_like(y, float("nan")), y)
    return y


@plot.dispatched("issue_124096", "aten._fft_c2r")
def issue_124096(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124096: irfft of one dimension does not give the signal back."""
    y = func(x, *args, **kwargs)
    if x.dim() == 1 and y.numel() > 1:
        hit()
        return y.roll(1)
    return y


@plot.dispatched("issue_122233", "aten.nonzero")
def issue_122233(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 122233: indices of torch.where beyond 2**24 are rounded as float32 (limit lowered to 2**15)."""
    y = func(x, **kwargs)
    if x.dim() == 1 and bool((y > 2**15).any()):
        wrong = torch.where(y > 2**15, y // 2 * 2, y)
        if not torch.equal(wrong, y):
            hit()
            return wrong
    return y


@plot.dispatched("issue_161446", "aten.index_add", "aten.index_add_")
def issue_161446(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, **kwargs: Any) -> Any:
    """pytorch 161446: index_add of int64 with an index of no dimensions raises."""
    if x.dtype == torch.int64 and index.dim() == 0:
        return crash(hit, "index_add of int64")
    return func(x, dim, index, source, **kwargs)
