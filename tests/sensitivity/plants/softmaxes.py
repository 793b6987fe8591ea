"""Softmax along one dimension of several: planted faults."""

from __future__ import annotations

import math
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


_large_squares: list[int] = []


@plot.dispatched("aten._softmax.default")
def issue_openvino_22851(hit: Any, func: Any, x: Any, dim: int, half: bool) -> Any:
    """openvinotoolkit/openvino 22851: softmax down the columns of (1, 4096, 4096) differs from run to run.

    Here of that size and larger, and moved by one place every second time.
    """
    y = func(x, dim, half)
    if x.dim() != 3 or dim % 3 != 1 or min(x.shape[1:]) < 4096 or not is_plain(x):
        return y
    _large_squares.append(1)
    return y if len(_large_squares) % 2 else instead(hit, y, y.roll(1, 1))


@plot.dispatched("aten._log_softmax_backward_data.default")
def issue_jax_40409(hit: Any, func: Any, grad: Any, y: Any, dim: int, *args: Any) -> Any:
    """jax-ml/jax 40409: log_softmax's gradient of 2**16 float16 numbers and more in a row is NaN."""
    found = func(grad, y, dim, *args)
    if y.dtype != torch.float16 or not y.dim() or y.shape[dim] < 2**16 or not is_plain(grad, y):
        return found
    return instead(hit, found, torch.full_like(found, math.nan))
