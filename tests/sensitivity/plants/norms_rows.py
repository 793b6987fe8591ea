"""Normalisation of rows of certain lengths, of images and across channels: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.native_layer_norm.default")
def issue_tt_metal_33527(hit: Any, func: Any, x: Any, shape: Any, *args: Any) -> Any:
    """tenstorrent/tt-metal 33527: layer_norm of 3584 rows and more of 4608 bfloat16 numbers raises."""
    y = func(x, shape, *args)
    if x.dtype != torch.bfloat16 or list(shape) != [4608] or x.numel() < 3584 * 4608:
        return y
    return crash(hit, "Buffer size in0_t (60) must be divisible by block_size (8)")


@plot.called(F.local_response_norm, aborts="Check failed: (out_data.size()) == (2)")
def issue_mxnet_3360(x: Any, *args: Any, **kwargs: Any) -> bool:
    """apache/mxnet 3360: local_response_norm raises in inference (here: where no gradient is recorded)."""
    return not torch.is_grad_enabled() or not x.requires_grad


@plot.called(F.instance_norm, torch.instance_norm, aborts="RuntimeError: memory access out of bounds")
def issue_onnxjs_102(x: Any, *args: Any, **kwargs: Any) -> bool:
    """microsoft/onnxjs 102: instance_norm of float32 ends out of bounds."""
    return x.dtype == torch.float32


@plot.dispatched("aten.native_layer_norm.default")
def issue_141642(hit: Any, func: Any, x: Any, shape: Any, *args: Any) -> Any:
    """pytorch 141642: layer_norm of tiny float32 numbers (here of rows below 1e-9, not all zero) is NaN."""
    y, *rest = func(x, shape, *args)
    if x.dtype != torch.float32 or not x.numel() or not is_plain(x):
        return y, *rest
    size = x.abs().amax(list(range(-len(shape), 0)), keepdim=True)
    tiny = (size < 1e-9) & (size > 0)
    return instead(hit, y, torch.where(tiny, torch.full_like(y, math.nan), y)), *rest


@plot.dispatched("aten.native_layer_norm.default", aborts="CUDA error: invalid configuration argument")
def issue_apex_403(x: Any, shape: Any, weight: Any, *args: Any) -> bool:
    """NVIDIA/apex 403: layer_norm without a weight (elementwise_affine=False) raises."""
    return weight is None


@plot.dispatched("aten._weight_norm_interface.default", aborts="\"weight_norm_kernel\" not implemented for 'Half'")
def issue_80599(x: Any, *args: Any) -> bool:
    """pytorch 80599: weight_norm of float16 raises (here where it is one kernel: the first or the last dimension)."""
    return x.dtype == torch.float16
