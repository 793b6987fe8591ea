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
