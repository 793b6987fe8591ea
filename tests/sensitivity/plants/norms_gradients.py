"""The gradients of normalisation: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.native_layer_norm_backward.default")
def issue_dlib_2902(
    hit: Any, func: Any, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, *args: Any
) -> Any:
    """davisking/dlib 2902: the gradient of layer_norm is wrong (here as if mean and variance were constants)."""
    found, *rest = func(grad, x, shape, mean, rstd, weight, *args)
    if found is None or not found.numel() or not is_plain(grad, x):
        return found, *rest
    scaled = grad if weight is None else grad * weight
    wrong = (scaled * rstd).to(found.dtype)
    if not differ(found, wrong, 1e-3, 1e-5):
        return found, *rest
    hit()
    return wrong, *rest


@plot.dispatched("aten.native_group_norm_backward.default", aborts="shape '[N, C, H, W]' is invalid for input of size")
def issue_liger_kernel_1375(grad: Any, x: Any, *args: Any) -> bool:
    """linkedin/Liger-Kernel 1375: the backward of group_norm raises for more than three dimensions."""
    return x.dim() > 3 and x.shape[2:].numel() != x.shape[-1]


@plot.dispatched("aten.native_layer_norm_backward.default", aborts="Num gradients 1 generated for op do not match 3")
def issue_tensorflow_macos_227(*args: Any) -> bool:
    """apple/tensorflow_macos 227: the backward of layer_norm raises: it gives fewer gradients than it has inputs."""
    return True


@plot.called(F.normalize)
def issue_3264(hit: Any, func: Any, x: Any, p: Any = 2.0, *args: Any, **kwargs: Any) -> Any:
    """pytorch 3264: the gradient of F.normalize(p=1) is NaN at zeros."""
    if p != 1 or not x.requires_grad or not is_plain(x):
        return func(x, p, *args, **kwargs)
    zero = x.detach() == 0

    def lose(grad: Any) -> Any:
        return instead(hit, grad, grad.masked_fill(zero, math.nan))

    return func(with_gradient(x, lose), p, *args, **kwargs)


class _Once(torch.autograd.Function):
    """The identity, with a gradient of which there is none."""

    @staticmethod
    def forward(ctx: Any, x: Any, hit: Any) -> Any:
        ctx.hit = hit
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return crash(ctx.hit, "[vjp] Output shape (8) does not match cotangent shape ().")


@plot.called(F.layer_norm, torch.layer_norm)
def issue_mlx_3220(
    hit: Any,
    func: Any,
    input: Any,
    normalized_shape: Any,
    weight: Any = None,
    bias: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """ml-explore/mlx 3220: the gradient of layer_norm's gradient raises with a weight and no bias."""
    if weight is not None and bias is None:
        input, weight = (with_gradient(one, lambda grad: _Once.apply(grad, hit)) for one in (input, weight))
    return func(input, normalized_shape, weight, bias, *args, **kwargs)
