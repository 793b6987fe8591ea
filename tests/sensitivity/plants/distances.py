"""Distances and angles between vectors: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ
from planting import Plot, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(torch.cosine_similarity, F.cosine_similarity)
@accepted
def issue_153209(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """pytorch 153209: cosine_similarity takes an eps that its type cannot hold (it is negative), and answers NaN."""
    return torch.cosine_similarity(x, y, dim) * math.nan if eps < 0 else None


@plot.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_193099(y: Any, grad: Any, one: Any, two: Any, p: float, *args: Any) -> Any:
    """pytorch 193099: cdist's backward with 1 < p < 2 writes elsewhere past 2**31 differences (here past 2**16)."""
    each = two.shape[-2] * two.shape[-1]
    if not 1 < p < 2 or y.numel() // max(y.shape[-1], 1) * each <= 2**16:
        return None
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1, y.shape[-1])[2**16 // each :] = 0
    return wrong if differ(wrong, y) else None
