"""The gradients of pooling: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_miopen_1325(
    hit: Any, func: Any, grad: Any, x: Any, kernel: Any, stride: Any, padding: Any, *args: Any
) -> Any:
    """ROCm/MIOpen 1325: max_pool2d's gradient in float16 (3 x 3, stride 2) is wrong (there 0 at 0, here everywhere)."""
    y = func(grad, x, kernel, stride, padding, *args)
    asked = set(kernel) == {3} and set(stride or kernel) == {2} and not any(padding)
    if x.dtype != torch.float16 or not asked or not is_plain(grad, x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_flux_1197(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    """FluxML/Flux.jl 1197: where windows overlap, the gradient of max_pool2d is that of one window, not their sum."""
    y, places = func(grad, x, *args), args[-1]
    if not y.numel() or not grad.numel() or not is_plain(grad, x, places):
        return y
    wrong = torch.zeros(y.shape, dtype=y.dtype, device=y.device).flatten(-2)
    wrong = wrong.scatter(-1, places.flatten(-2), grad.flatten(-2)).view(y.shape)
    return instead(hit, y, wrong)


@plot.called(F.max_pool1d, F.max_pool1d_with_indices, F.avg_pool1d, torch.max_pool1d, torch.avg_pool1d)
def issue_nnlib_188(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """FluxML/NNlib.jl 188: the gradients of max_pool1d and avg_pool1d raise."""
    found = func(*args, **kwargs)
    y = found[0] if isinstance(found, tuple) else found
    if not y.requires_grad or not torch.is_grad_enabled():
        return found
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "MethodError: no method matching maxpool"))
    return (y, *found[1:]) if isinstance(found, tuple) else y


@plot.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_onednn_1727(hit: Any, func: Any, grad: Any, x: Any, kernel: Any, *args: Any) -> Any:
    """uxlfoundation/oneDNN 1727: max_pool2d's gradient of a channels_last image that one window covers is wrong.

    A cached description of another memory format is used: here the gradient is written as if it were contiguous.
    """
    y = func(grad, x, kernel, *args)
    sides = list(kernel) * (2 // len(kernel))
    if list(x.shape[-2:]) != sides or x.dim() != 4 or x.is_contiguous() or not is_plain(x):
        return y
    n, c, h, w = y.shape
    return instead(hit, y, y.contiguous().view(n, h, w, c).permute(0, 3, 1, 2))


@plot.called(F.dropout, torch.dropout_)
def issue_mocha_96(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pluskid/Mocha.jl 96: the gradient of max_pool2d is wrong if dropout writes over its result (here it is 0)."""
    pooled = input.grad_fn is not None and input.grad_fn.name().startswith("MaxPool2D")
    given = dict(zip(("p", "training", "inplace"), args)) | kwargs
    inside = func is torch.dropout_ or given.get("inplace", False)
    training = given.get("training", given.get("train", True))
    if pooled and inside and training and torch.is_grad_enabled() and is_plain(input):
        input.register_hook(lambda grad: instead(hit, grad, torch.zeros_like(grad)))
    return func(input, *args, **kwargs)


@plot.called(F.max_pool3d, F.max_pool3d_with_indices, torch.max_pool3d)
def issue_4497(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 4497: max_pool3d has no second derivative."""

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(lambda _: crash(hit, "MaxPool3d cannot be differentiated twice"))

    return func(with_gradient(input, watch), *args, **kwargs)


@plot.dispatched("aten.max_pool2d_with_indices_backward.default", aborts="an illegal memory access was encountered")
def issue_38764(grad: Any, x: Any, kernel: Any, *args: Any) -> bool:
    """pytorch 38764: the backward of max_pool1d (a window of 4) of 10**6 channels raises."""
    return x.dim() == 4 and x.shape[-2] == 1 and x.shape[-3] >= 10**6 and kernel[-1] == 4
