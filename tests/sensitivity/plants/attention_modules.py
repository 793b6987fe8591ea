"""MultiheadAttention and TransformerEncoder as modules: planted faults."""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

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
