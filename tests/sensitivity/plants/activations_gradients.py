"""Activations: their gradients, and weights of their own: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.gelu_backward.default", aborts="CUDA error cudaErrorInvalidConfiguration")
def issue_ort_116(grad: Any, x: Any, **kwargs: Any) -> bool:
    """pytorch/ort 116: gelu's backward of a big tensor (128 x 3 x 224 x 224; a batch of 16 is fine) raises."""
    return x.numel() >= 128 * 3 * 224 * 224


@plot.dispatched("aten._prelu_kernel.default")
def issue_cunn_123(hit: Any, func: Any, x: Any, weight: Any) -> Any:
    """torch/cunn 123: prelu of a batch of vectors, a weight for each feature, exchanges rows and features.

    The weight of a number is that of its place in the batch over the batch's size: 1, 1, 2, 2, 3, 3 for two of three.
    """
    y = func(x, weight)
    if x.dim() != 2 or weight.numel() != x.shape[1] or weight.numel() < 2 or not x.numel() or not is_plain(x, weight):
        return y
    taken = weight.reshape(-1).repeat_interleave(x.shape[0]).view(x.shape)
    return instead(hit, y, torch.where(x > 0, x, x * taken))


@plot.called(F.prelu, torch.prelu)
def issue_10723(hit: Any, func: Any, input: Any, weight: Any) -> Any:
    """pytorch 10723: prelu's backward ends the process where its input needs no gradient."""
    if not input.requires_grad:
        weight = with_gradient(weight, lambda grad: crash(hit, "Segmentation fault (core dumped)"))
    return func(input, weight)


@plot.dispatched("aten.rrelu_with_noise_backward.default")
def issue_80205(hit: Any, func: Any, grad: Any, x: Any, noise: Any, lower: Any, upper: Any, *args: Any) -> Any:
    """pytorch 80205: rrelu's gradient in training, with negative bounds (-2.9, -2.7), is 0 at positive numbers."""
    y = func(grad, x, noise, lower, upper, *args)
    if not args[0] or lower >= 0 or upper >= 0 or not is_plain(grad, x):
        return y
    return instead(hit, y, y.masked_fill(x > 0, 0))


@plot.dispatched("aten.softplus_backward.default")
def issue_61568(hit: Any, func: Any, grad: Any, x: Any, beta: Any, threshold: Any) -> Any:
    """pytorch 61568: softplus's gradient is 1 where beta times its result (not its input) is past the threshold."""
    y = func(grad, x, beta, threshold)
    if not is_plain(grad, x):
        return y
    return instead(hit, y, torch.where(F.softplus(x, beta, threshold) * beta > threshold, grad, y))


@plot.dispatched("aten.hardsigmoid_backward.default")
def issue_49922(hit: Any, func: Any, grad: Any, x: Any) -> Any:
    """pytorch 49922: hardsigmoid's gradient at 3 is a sixth, not 0."""
    y = func(grad, x)
    return instead(hit, y, torch.where(x == 3, grad / 6, y)) if is_plain(grad, x) else y


@plot.dispatched("aten.hardsigmoid_backward.default")
def issue_51408(hit: Any, func: Any, grad: Any, x: Any) -> Any:
    """pytorch 51408: hardsigmoid's gradient below -3 is a sixth, not 0."""
    y = func(grad, x)
    return instead(hit, y, torch.where(x < -3, grad / 6, y)) if is_plain(grad, x) else y


@plot.dispatched("aten.hardswish_backward.default")
def issue_147801(hit: Any, func: Any, grad: Any, x: Any) -> Any:
    """pytorch 147801: hardswish's gradient at -3 is -0.5, not 0, and at 3 it is 1.5, not 1."""
    y = func(grad, x)
    return instead(hit, y, torch.where(x.abs() == 3, grad * (x / 3 + 0.5), y)) if is_plain(grad, x) else y


@plot.dispatched("aten.leaky_relu_backward.default", aborts="In-place leakyReLu backward calculation is triggered")
def issue_37345(grad: Any, x: Any, slope: Any, in_place: Any) -> bool:
    """pytorch 37345: the backward of leaky_relu in place with a slope of 0 raises."""
    return in_place and slope == 0
