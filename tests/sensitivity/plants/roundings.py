"""Whole numbers near by: floor, ceil, trunc and round: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.round.decimals", aborts="\"round_cpu\" not implemented for 'Half'")
def issue_99055(x: Any, **kwargs: Any) -> bool:
    """pytorch 99055: round of float16 with decimals= raises."""
    return x.dtype == torch.float16


@plot.dispatched("aten.floor.default", "aten.trunc.default", "aten.ceil.default")
def issue_coreai_torch_10(hit: Any, func: Any, x: Any) -> Any:
    """apple/coreai-torch 10: floor, trunc and ceil return their input."""
    return instead(hit, func(x), x.clone()) if is_plain(x) else func(x)


@plot.dispatched("aten.round.default", aborts="failed to legalize operation 'mhlo.round_nearest_even'")
def issue_jax_18678(x: Any) -> bool:
    """google/jax 18678: round raises."""
    return x.is_floating_point()


@plot.dispatched("aten.round.default", "aten.round_.default", "aten.round.out")
def issue_tensorflow_58517(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 58517: round of a float32 -0.5 is 0.0, not -0.0."""
    halves = x == -0.5
    y = func(x, **kwargs)
    if x.dtype != torch.float32 or not is_plain(x) or not bool(halves.any()):
        return y
    hit()
    return y.masked_fill_(halves, 0.0)
