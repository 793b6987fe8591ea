"""Embeddings whose rows are limited, and bags of two dimensions: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.called(F.embedding_bag)
def issue_167974(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167974: embedding_bag of two-dimensional input with include_last_offset=True lacks the last bag."""
    y = func(input, *args, **kwargs)
    include = kwargs.get("include_last_offset", args[8] if len(args) > 8 else False)
    if not include or input.dim() != 2 or not len(y):
        return y
    hit()
    return y[:-1]


def _limit(args: Any, kwargs: Any) -> Any:
    return kwargs.get("max_norm", args[2] if len(args) > 2 else None)


@plot.called(F.embedding)
def issue_3179(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 3179: embedding with max_norm raises."""
    if _limit(args, kwargs) is not None:
        return crash(hit, "_renorm() missing 1 required positional argument: 'norm_type'")
    return func(input, *args, **kwargs)


@plot.called(F.embedding)
def issue_28959(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 28959: the backward through an embedding with max_norm raises."""
    y = func(input, *args, **kwargs)
    if _limit(args, kwargs) is None or not y.requires_grad or not torch.is_grad_enabled():
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "leaf variable has been moved into the graph interior"))
    return y
