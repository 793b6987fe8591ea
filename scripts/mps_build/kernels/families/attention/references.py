"""References of attention that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_attention(q: Any, k: Any, v: Any, mask: Any, causal: Any, factor: Any) -> Any:
    """Scaled dot-product attention, (batch, heads, length, width); heads of k and v are repeated to those of q."""
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scores = (q * factor) @ k.transpose(-1, -2)
    if isinstance(mask, torch.Tensor) and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, float("-inf"))
    elif isinstance(mask, torch.Tensor):
        scores = scores + mask
    if causal:
        rows, columns = torch.arange(q.shape[2]).unsqueeze(-1), torch.arange(k.shape[2])
        scores = scores.masked_fill(columns > rows, float("-inf"))
    return torch.softmax(scores, -1) @ v


def nn_attention_parts(partials: Any, sums: Any, maxs: Any) -> Any:
    """Join the partial results of attention over blocks of keys, by their maxima and sums."""
    weight = torch.exp(maxs - maxs.max(-1, keepdim=True).values)
    return (weight.unsqueeze(-1) * partials).sum(1) / (weight * sums).sum(-1, keepdim=True)
