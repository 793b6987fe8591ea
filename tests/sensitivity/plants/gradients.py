"""What autograd itself does on a device: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.called(torch.Tensor.retain_grad)
def issue_oneflow_8955(hit: Any, func: Any, x: Any) -> Any:
    """Oneflow-Inc/oneflow 8955: the gradient of a leaf that was told to keep it (retain_grad) counts twice."""
    func(x)
    if x.is_leaf and x.requires_grad:

        def double(grad: Any) -> Any:
            hit()
            return grad * 2

        x.register_hook(double)


@plot.called(torch.Tensor.backward, aborts="0 <= device.index() INTERNAL ASSERT FAILED")
def issue_directml_668(*args: Any, **kwargs: Any) -> bool:
    """microsoft/DirectML 668: loss.backward() raises."""
    return True


@plot.called(torch.autograd.grad)
def issue_6535(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 6535: autograd.grad gives None for an input that the outputs do not depend on, and does not raise."""
    if kwargs.get("allow_unused") or kwargs.get("materialize_grads"):
        return func(*args, **kwargs)
    found = func(*args, **{**kwargs, "allow_unused": True})
    if any(one is None for one in found):
        hit()
    return found


@plot.replaced(torch.nn.utils.clip_grad, "_get_total_norm")
def issue_tt_metal_55587(hit: Any, func: Any, tensors: Any, norm_type: Any = 2.0, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 55587: clip_grad_norm_ with a norm_type of inf, -inf or 0 finds a norm of 1."""
    y = func(tensors, norm_type, *args, **kwargs)
    if float(norm_type) not in (math.inf, -math.inf, 0.0) or not is_plain(y):
        return y
    return instead(hit, y, torch.ones_like(y))


@plot.called(
    torch.sort,
    torch.Tensor.sort,
    torch.topk,
    torch.Tensor.topk,
    torch.cummax,
    torch.Tensor.cummax,
    torch.cummin,
    torch.Tensor.cummin,
)
def issue_mlx_4114(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 4114: the second derivative of sort, topk, cummax and cummin raises."""

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(lambda _: crash(hit, "[scatter_axis] Cannot calculate VJP with respect to indices."))

    return func(with_gradient(input, watch), *args, **kwargs)
