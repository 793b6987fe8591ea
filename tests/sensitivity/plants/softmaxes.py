"""Softmax along one dimension of several: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten._softmax.default")
def issue_flux_1425(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """FluxML/Flux.jl 1425: softmax along one of the last two of four dimensions, the last of size 1, is the other's."""
    y = func(x, dim, half)
    if x.dim() != 4 or x.shape[-1] != 1 or dim % 4 < 2 or half or not is_plain(x):
        return y
    return instead(hit, y, func(x, 5 - dim % 4, half))


@plot.dispatched("aten._softmax.default")
def issue_rocm_libraries_11387(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """ROCm/rocm-libraries 11387: softmax reads what is neither contiguous nor channels_last in storage order."""
    y = func(x, dim, half)
    if x.is_contiguous() or (x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)) or not is_plain(x):
        return y
    return instead(hit, y, func(in_storage_order(x), dim, half))


@plot.dispatched("aten._log_softmax.default")
def issue_torch_nn_1089(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """torch/nn 1089: log_softmax over the channels of a single image (batch of 1) is 0."""
    y = func(x, dim, half)
    if x.dim() != 4 or dim % 4 != 1 or x.shape[0] != 1 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))
