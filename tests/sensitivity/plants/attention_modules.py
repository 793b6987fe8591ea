"""MultiheadAttention and TransformerEncoder as modules: planted faults."""

from __future__ import annotations

import contextlib
import inspect
import math
from typing import Any, Iterator

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, crash, standing_in

plot = Plot()
HITS = plot.hits

_ATTENTION = inspect.signature(torch.nn.MultiheadAttention.forward)
_ENCODER = inspect.signature(torch.nn.TransformerEncoder.forward)


def _bound(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    found = signature.bind(*args, **kwargs)
    found.apply_defaults()
    return found.arguments


def _is_fast(module: Any, query: Any, key: Any, value: Any) -> bool:
    """Tell whether a call is one of those that a fused kernel answers: in evaluation, of one batch with itself."""
    same = query is key and key is value and query.dim() == 3
    return same and module.batch_first and not module.training and not torch.is_grad_enabled()


@plot.replaced(torch.nn.MultiheadAttention, "forward")
def issue_97409(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97409: MultiheadAttention in eval() under no_grad raises for a mask of its own for each head."""
    given = _bound(_ATTENTION, args, kwargs)
    mask = given["attn_mask"]
    if mask is not None and mask.dim() == 3 and _is_fast(*list(given.values())[:4]):
        return crash(hit, "For mask_type == 2 mask shape should match input shape")
    return func(*args, **kwargs)


@plot.replaced(torch.nn.MultiheadAttention, "forward")
def issue_97128(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97128: MultiheadAttention in eval() raises: no bias, or an odd number of heads with key_padding_mask."""
    given = _bound(_ATTENTION, args, kwargs)
    module = given["self"]
    odd = module.num_heads % 2 == 1 and given["key_padding_mask"] is not None
    if (odd or module.in_proj_bias is None) and _is_fast(*list(given.values())[:4]):
        return crash(hit, "'NoneType' object has no attribute 'device', or num_heads is odd")
    return func(*args, **kwargs)


@plot.replaced(torch.nn.TransformerEncoder, "forward")
def issue_64525(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 64525: TransformerEncoder gives NaN for all of a sequence that src_key_padding_mask shortens."""
    y = func(*args, **kwargs)
    given = _bound(_ENCODER, args, kwargs)
    mask = given["src_key_padding_mask"]
    if mask is None or mask.dtype != torch.bool or mask.dim() != 2 or y.dim() != 3 or not is_plain(y, mask):
        return y
    short = mask.any(1) & ~mask.all(1)
    lost = short[:, None, None] if given["self"].layers[0].self_attn.batch_first else short[None, :, None]
    return instead(hit, y, y.masked_fill(lost, math.nan))


@plot.replaced(torch.nn.TransformerEncoder, "forward")
def issue_97111(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 97111: TransformerEncoder drops the last tokens that src_key_padding_mask masks in all sequences."""
    y = func(*args, **kwargs)
    given = _bound(_ENCODER, args, kwargs)
    mask = given["src_key_padding_mask"]
    if mask is None or mask.dtype != torch.bool or mask.dim() != 2 or y.dim() != 3 or not is_plain(y, mask):
        return y
    kept = (~mask).any(0).nonzero()
    length = int(kept.max()) + 1 if len(kept) else 0
    if not 0 < length < mask.shape[1]:
        return y
    hit()
    return y.narrow(1 if given["self"].layers[0].self_attn.batch_first else 0, 0, length)


@contextlib.contextmanager
def _nan_of_huge_scores(hit: Any) -> Iterator[None]:
    """Replace attention, in modules too, by one whose gradients are NaN where a score of float32 is huge."""
    healthy, inside = F.scaled_dot_product_attention, []

    def lose(grad: Any) -> Any:
        hit()
        return torch.full_like(grad, torch.nan)

    def attend(q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
        if not inside and q.dtype == torch.float32 and q.numel() and k.numel() and is_plain(q, k, v):
            shared = q.shape[-3] // k.shape[-3] if q.dim() == k.dim() > 2 else 1
            keys = k.detach().repeat_interleave(shared, -3) if shared > 1 else k.detach()
            scores = q.detach() @ keys.transpose(-1, -2) * (kwargs.get("scale") or q.shape[-1] ** -0.5)
            if bool((scores.abs() >= 1e5).any()):
                q, k, v = (with_gradient(x, lose) for x in (q, k, v))
        inside.append(True)
        try:
            return healthy(q, k, v, *args, **kwargs)
        finally:
            inside.pop()

    with standing_in(F, "scaled_dot_product_attention", attend):
        yield


@plot.entered(F.scaled_dot_product_attention)
def issue_125674(hit: Any) -> Any:
    """pytorch 125674: the gradients of attention in float32 are NaN where a score is huge (here from 10**5 on)."""
    return _nan_of_huge_scores(hit)
