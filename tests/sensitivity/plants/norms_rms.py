"""Normalisation by the root of the mean square: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.called(F.rms_norm, torch.rms_norm)
def issue_quack_88(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Dao-AILab/quack 88: the backward of rms_norm raises for a gradient that is not contiguous, as sum() gives it."""
    y = func(*args, **kwargs)

    def refuse(grad: Any) -> None:
        if not grad.is_contiguous():
            crash(hit, "view size is not compatible with input tensor's size and stride")

    if y.requires_grad and torch.is_grad_enabled():
        y.register_hook(refuse)
    return y


@plot.called(F.rms_norm, torch.rms_norm)
def issue_candle_2168(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """huggingface/candle 2168: rms_norm of a contiguous tensor has no gradient."""
    y = func(input, *args, **kwargs)
    if not input.is_contiguous() or not y.requires_grad:
        return y
    hit()
    return y.detach()


@plot.called(F.rms_norm, torch.rms_norm)
def issue_tt_metal_8597(
    hit: Any, func: Any, input: Any, shape: Any, weight: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """tenstorrent/tt-metal 8597: rms_norm of more than two dimensions, with a weight, raises."""
    y = func(input, shape, weight, *args, **kwargs)
    return y if weight is None or input.dim() < 3 else crash(hit, "gamma.get_legacy_shape()[-2] == TILE_HEIGHT")
