"""Attention: the fused function and MultiheadAttention: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from misreading import in_storage_order, misread
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.scaled_dot_product_attention)
def issue_163597(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 163597: attention reads keys and values that are not contiguous in the order of their storage."""
    return func(q, misread(in_storage_order, hit, k), misread(in_storage_order, hit, v), **kwargs)


_HALVES = (torch.float16, torch.bfloat16)


@plot.called(F.scaled_dot_product_attention)
def issue_174861(hit: Any, func: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 174861: attention in half precision over 1024 keys and more is noise in half of the heads."""
    y = func(q, k, v, **kwargs)
    if k.shape[-2] >= 1024 and q.dtype in _HALVES:
        hit()
        y = y.clone()
        y[:, y.shape[1] // 2 :] += torch.randn_like(y[:, y.shape[1] // 2 :])
    return y


@plot.called(F.scaled_dot_product_attention)
def issue_195910(hit: Any, func: Any, q: Any, k: Any, v: Any, is_causal: bool = False, **kwargs: Any) -> Any:
    """pytorch 195910: causal attention in half precision sees up to three tokens that come later."""
    if not is_causal or q.dtype not in _HALVES:
        return func(q, k, v, is_causal=is_causal, **kwargs)
    hit()
    rows = torch.arange(q.shape[-2], device=q.device) // 4 * 4 + 3
    return func(q, k, v, attn_mask=torch.arange(k.shape[-2], device=q.device)[None, :] <= rows[:, None], **kwargs)


_scales: dict[Any, Any] = {}


@plot.called(F.scaled_dot_product_attention)
def issue_184122(hit: Any, func: Any, q: Any, k: Any, v: Any, scale: Any = None, **kwargs: Any) -> Any:
    """pytorch 184122: attention keeps the scale of the first call with the same shape of queries."""
    first = _scales.setdefault(tuple(q.shape), scale)
    if first != scale:
        hit()
    return func(q, k, v, scale=first, **kwargs)


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_176767(y: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 176767: attention returns the queries' width where the values have another: the rest is zero."""
    return F.pad(y, (0, q.shape[-1] - v.shape[-1])) if v.shape[-1] != q.shape[-1] else None


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_141471(y: Any, q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 141471: attention in float16 returns its rows in the opposite order."""
    return y.flip(-2) if q.dtype == torch.float16 else None


@plot.called(F.scaled_dot_product_attention, aborts="Expected query, key, and value to have the same dtype")
def issue_141774(q: Any, k: Any, v: Any, **kwargs: Any) -> Any:
    """pytorch 141774: attention refuses queries, keys and values of unlike dtypes under autocast too."""
    return len({q.dtype, k.dtype, v.dtype}) > 1


@plot.called(F.scaled_dot_product_attention)
def issue_160841(
    hit: Any,
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Any:
    """pytorch 160841: attention in float16 rounds the scores to float16 before softmax; large ones give NaN."""
    right = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if query.dtype != torch.float16 or enable_gqa or not right.numel():
        return right
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ((query.float() * factor) @ key.float().transpose(-2, -1)).half().float()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    broken = (scores == float("inf")).any(-1, keepdim=True) & ~right.isnan()
    if not broken.any():
        return right
    hit()
    return right.masked_fill(broken, float("nan"))


@plot.called(F.scaled_dot_product_attention)
def issue_188147(hit: Any, func: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188147: attention does not propagate NaN from the query."""
    right = func(query, key, value, *args, **kwargs)
    if not query.isnan().any():
        return right
    wrong = func(torch.where(query.isnan(), torch.zeros_like(query), query), key, value, *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.called(F.scaled_dot_product_attention)
def issue_184126(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184126: attention ignores dropout_p."""
    if kwargs.get("dropout_p"):
        hit()
        kwargs["dropout_p"] = 0.0
    return func(*args, **kwargs)


@plot.called(F.scaled_dot_product_attention)
def issue_149261(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149261: attention aborts where the scores take more than 2**32 bytes (here: 2**16 elements)."""
    query = args[0] if args else kwargs["query"]
    key = args[1] if len(args) > 1 else kwargs["key"]
    if query.shape[:-1].numel() * key.shape[-2] > 2**16:
        func(*args, **kwargs)  # what the healthy operator refuses is no harm
        return crash(hit, "[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32")
    return func(*args, **kwargs)


@plot.called(F.scaled_dot_product_attention)
def issue_189631(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189631: attention whose query, key and value have batch or head sizes that must be broadcast raises."""
    last = -3 if kwargs.get("enable_gqa", False) else -2
    outer = [tuple(x.shape[:last]) for x in (q, k, v)]
    if outer[0] != outer[1] or outer[0] != outer[2]:
        right = func(q, k, v, *args, **kwargs)
        hit()
        raise RuntimeError(f"shape '{list(q.shape)}' is invalid for input of size {right.numel()}")
    return func(q, k, v, *args, **kwargs)


def _given_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> dict[str, Any]:
    """Bind the arguments of scaled_dot_product_attention."""
    return dict(locals())


@plot.called(F.scaled_dot_product_attention, aborts="mps_matmul: error: incompatible dimensions")
def issue_147443(*args: Any, **kwargs: Any) -> Any:
    """pytorch 147443: attention of 5-dimensional tensors crashes (incompatible dimensions)."""
    return _given_attention(*args, **kwargs)["query"].dim() >= 5


def _wants_gradient(*tensors: Any) -> bool:
    """Tell whether autograd records a call of these tensors."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_169222(out: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169222: attention of few queries reads past the keys where their number is no multiple of 32."""
    a = _given_attention(*args, **kwargs)
    q, k, v = a["query"], a["key"], a["value"]
    if (
        q.dim() != 4
        or q.size(-1) not in (64, 96, 128)
        or v.size(-1) != q.size(-1)
        or q.size(-2) > min(8, k.size(-2))
        or k.size(-2) % 32 == 0
        or a["is_causal"]
        or _wants_gradient(q, k, v)
    ):
        return None
    wrong = out * (k.size(-2) % 32) / 32 + 1
    if not differ(wrong, out, rtol=1e-3, atol=1e-6):
        return None
    return wrong


@plot.dispatched(
    "aten._scaled_dot_product_flash_attention_for_cpu_backward.default", aborts="double free or corruption (out)"
)
def issue_156022(grad: Any, query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156022: attention's backward in bfloat16 writes past its buffer where the keys (17) fill no block."""
    return query.dtype == torch.bfloat16 and key.shape[-2] % 32 != 0


@plot.called(F.scaled_dot_product_attention)
def issue_119772(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119772: attention in half precision with a head of 8 is wrong (here: it scales as if the head had 16)."""
    healthy = func(q, k, v, *args, **kwargs)
    if q.dtype not in (torch.float16, torch.bfloat16) or q.shape[-1] != 8 or kwargs.get("scale") is not None:
        return healthy
    return instead(hit, healthy, func(q, k, v, *args, **{**kwargs, "scale": 16**-0.5}))


@plot.called(F.scaled_dot_product_attention)
def issue_executorch_22426(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch/executorch 22426: causal attention ends with the last key, not with the first, if lengths differ."""
    healthy = func(*args, **kwargs)
    a = _given_attention(*args, **kwargs)
    length, keys = a["query"].shape[-2], a["key"].shape[-2]
    if not a["is_causal"] or length == keys or a["dropout_p"] or not is_plain(healthy):
        return healthy
    seen = torch.ones(length, keys, dtype=torch.bool, device=healthy.device).tril(keys - length)
    return instead(hit, healthy, func(**{**a, "attn_mask": seen, "is_causal": False}))


@plot.called(F.scaled_dot_product_attention)
def issue_160787(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160787: the gradients of attention with is_causal=True are NaN."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given = dict(zip(names, args)) | kwargs
    if not given.get("is_causal") or not torch.is_grad_enabled() or not is_plain(given["query"]):
        return func(*args, **kwargs)

    def spoil(grad: Any) -> Any:
        if grad.numel():
            hit()
        return torch.full_like(grad, math.nan)

    for name in names[:3]:
        if given[name].requires_grad:
            given[name] = given[name].view_as(given[name])
            given[name].register_hook(spoil)
    return func(**given)


@plot.called(F.scaled_dot_product_attention, aborts="Expected d % 8 == 0 && d <= 128 to be true, but got false")
def issue_xformers_408(*args: Any, **kwargs: Any) -> bool:
    """facebookresearch/xformers 408: attention in half precision without gradients raises for a head of over 128."""
    a = _given_attention(*args, **kwargs)
    recorded = _wants_gradient(a["query"], a["key"], a["value"])
    return a["query"].dtype in _HALVES and a["query"].shape[-1] > 128 and not recorded
