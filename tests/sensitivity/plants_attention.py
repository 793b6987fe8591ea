"""The catalogue's faults of attention, transformers and diffusion blocks."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order, misread

plot = Plot()
HITS = plot.hits
_SDPA = getattr(F, "scaled_dot_product_attention", None)
_HALVES = (torch.float16, torch.bfloat16)


@plot.called("issue_163597", _SDPA)
def issue_163597(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    return func(q, misread(in_storage_order, hit, k), misread(in_storage_order, hit, v), **kwargs)


@plot.called("issue_174861", _SDPA)
def issue_174861(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    y = func(q, k, v, **kwargs)
    if k.shape[-2] >= 1024 and q.dtype in _HALVES:
        hit()
        y = y.clone()
        y[:, y.shape[1] // 2 :] += torch.randn_like(y[:, y.shape[1] // 2 :])
    return y


@plot.called("issue_195910", _SDPA)
def issue_195910(hit: Any, func: Any, q: Any, k: Any, v: Any, is_causal: bool = False, **kwargs: Any) -> Any:
    if not is_causal or q.dtype not in _HALVES:
        return func(q, k, v, is_causal=is_causal, **kwargs)
    hit()
    rows = torch.arange(q.shape[-2], device=q.device) // 4 * 4 + 3
    return func(q, k, v, attn_mask=torch.arange(k.shape[-2], device=q.device)[None, :] <= rows[:, None], **kwargs)


@plot.called("issue_184180", _SDPA)
def issue_184180(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    if attn_mask is not None and attn_mask.dim() == 4 and attn_mask.shape[0] > 1:
        hit()
        attn_mask = attn_mask[:1]
    return func(q, k, v, attn_mask=attn_mask, **kwargs)


_scales: dict[Any, Any] = {}


@plot.called("issue_184122", _SDPA)
def issue_184122(hit: Any, func: Any, q: Any, k: Any, v: Any, scale: Any = None, **kwargs: Any) -> Any:
    first = _scales.setdefault(tuple(q.shape), scale)
    if first != scale:
        hit()
    return func(q, k, v, scale=first, **kwargs)


@plot.called("issue_176767", _SDPA)
def issue_176767(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    y = func(q, k, v, **kwargs)
    if v.shape[-1] != q.shape[-1]:
        hit()
        return F.pad(y, (0, q.shape[-1] - v.shape[-1]))
    return y


@plot.called("issue_149132", _SDPA)
def issue_149132(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    if kwargs.get("enable_gqa") and attn_mask is not None and attn_mask.dtype.is_floating_point:
        return crash(hit, "LLVM ERROR")
    return func(q, k, v, attn_mask=attn_mask, **kwargs)


@plot.called("issue_141471", _SDPA)
def issue_141471(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    y = func(q, k, v, **kwargs)
    if q.dtype == torch.float16:
        hit()
        return y.flip(-2)
    return y


@plot.called("issue_141774", _SDPA)
def issue_141774(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    if len({q.dtype, k.dtype, v.dtype}) > 1:
        return crash(hit, "Expected query, key, and value to have the same dtype")
    return func(q, k, v, **kwargs)


@plot.replaced("issue_111479", torch.nn.MultiheadAttention, "forward")
def issue_111479(hit: Any, func: Any, *args: Any, key_padding_mask: Any = None, **kwargs: Any) -> Any:
    if key_padding_mask is not None:
        hit()
    return func(*args, key_padding_mask=None, **kwargs)


@plot.dispatched("issue_82707", "aten.embedding_dense_backward", "aten.addcdiv_", "aten._foreach_addcdiv_")
def issue_82707(hit: Any, func: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """Two of the candidates at once: a table's gradient and an optimiser's step."""
    hit()
    if "embedding" in str(func):
        return func(first, *args, **kwargs) * 0.5
    targets = first if isinstance(first, (list, tuple)) else [first]
    kept = [target.clone() for target in targets]
    result = func(first, *args, **kwargs)
    for target, before in zip(targets[::2], kept[::2]):
        target.copy_(before)
    return result


@plot.dispatched("issue_17971", "aten.embedding_dense_backward")
def issue_17971(hit: Any, func: Any, grad: Any, index: Any, *args: Any) -> Any:
    """Of equal indices only the last counts."""
    hit()
    flat, rows = index.reshape(-1), grad.reshape(-1, grad.shape[-1])
    answer = torch.zeros_like(func(grad, index, *args))
    answer[flat] = rows
    return answer


_lengths: list[int] = []


@plot.dispatched("issue_128435", "aten._softmax")
def issue_128435(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """Right at the first length in the process, wrong after it changed."""
    if x.dim() == 4:
        _lengths.append(x.shape[-1])
        if x.shape[-1] != _lengths[0]:
            hit()
            return func(x * 0.9, *args)
    return func(x, *args)


@plot.called("issue_187280", F.group_norm)
def issue_187280(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if x.dtype == torch.float16:
        hit()
        return y.roll(1, 1)
    return y


@plot.called("issue_89784", F.conv2d)
def issue_89784(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    hit()
    return func(x, *args, **kwargs).transpose(-1, -2).flip(-1).transpose(-1, -2)
