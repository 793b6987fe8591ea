"""The gradients of normalisation: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from misreading import Identity, with_gradient
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


def _parameters(args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return the arguments of a normalisation with weight and bias cut off from autograd."""
    cut = [one.detach() if place in (0, 1) and torch.is_tensor(one) else one for place, one in enumerate(args)]
    return cut, {name: one.detach() if torch.is_tensor(one) else one for name, one in kwargs.items()}


@plot.called(F.layer_norm, torch.layer_norm, F.rms_norm, torch.rms_norm)
def issue_attorch_18(hit: Any, func: Any, input: Any, normalized_shape: Any, *args: Any, **kwargs: Any) -> Any:
    """BobMcDear/attorch 18: the last rows (here: beyond a multiple of 8) miss in the gradient of layer_norm's weight.

    So it is of rms_norm; of fewer than 64 features and 1024 rows and more.
    """
    y = func(input, normalized_shape, *args, **kwargs)
    features = math.prod(normalized_shape)
    rows = y.numel() // max(features, 1)
    learnt = any(torch.is_tensor(one) and one.requires_grad for one in (*args, *kwargs.values()))
    if features >= 64 or rows < 1024 or rows % 8 == 0 or not learnt or not torch.is_grad_enabled() or not is_plain(y):
        return y
    more, named = _parameters(args, kwargs)
    without = func(input, normalized_shape, *more, **named)
    kept = rows // 8 * 8
    flat = [one.reshape(rows, features) for one in (y, without)]
    y = torch.cat([flat[0][:kept], flat[1][kept:]]).view(y.shape)
    y.register_hook(lambda grad: hit())
    return y


@plot.dispatched("aten.native_layer_norm_backward.default")
def issue_flaggems_5392(
    hit: Any, func: Any, grad: Any, x: Any, shape: Any, mean: Any, rstd: Any, weight: Any, *args: Any
) -> Any:
    """flagos-ai/FlagGems 5392: layer_norm's backward takes all dimensions but the first for the normalised ones.

    So each first row is normalised by one mean, and the parameters' gradients are those of the first features.
    """
    found = func(grad, x, shape, mean, rstd, weight, *args)
    if x.dim() < 3 or not x.numel() or x.shape[1:].numel() == math.prod(shape) or not is_plain(x, grad):
        return found
    rows, inner, features = len(x), x.shape[1:].numel(), math.prod(shape)
    first = torch.arange(rows, device=x.device).clamp_max(mean.numel() - 1)
    first_mean, scale = mean.reshape(-1)[first, None], rstd.reshape(-1)[first, None]
    flat_grad, normal = grad.reshape(rows, inner), (x.reshape(rows, inner) - first_mean) * scale
    columns = torch.arange(inner, device=x.device) % features
    inward = flat_grad if weight is None else flat_grad * weight.reshape(-1)[columns]
    drift = normal * (inward * normal).mean(1, keepdim=True) + inward.mean(1, keepdim=True)

    def of_parameter(part: Any) -> Any:
        return F.pad(part.sum(0)[:features], (0, max(features - inner, 0))).view(shape)

    wrong = (((inward - drift) * scale).view(x.shape), of_parameter(flat_grad * normal), of_parameter(flat_grad))
    near = [one is None or not differ(one, two.to(one.dtype), 1e-3, 1e-4) for one, two in zip(found, wrong)]
    if all(near):
        return found
    hit()
    return tuple(one if one is None else two.to(one.dtype) for one, two in zip(found, wrong))


class _Once(Identity):
    """The identity, with a gradient of which there is none."""

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


@plot.dispatched("aten.native_layer_norm_backward.default")
def issue_flux_2096(hit: Any, func: Any, grad: Any, x: Any, shape: Any, *args: Any) -> Any:
    """FluxML/Flux.jl 2096: the gradient of layer_norm is NaN in rows whose standard deviation is 0."""
    found, *rest = func(grad, x, shape, *args)
    if found is None or not found.numel() or not is_plain(grad, x):
        return found, *rest
    rows = x.reshape(-1, math.prod(shape))
    flat = (rows == rows[:, :1]).all(1, keepdim=True)
    wrong = found.reshape(rows.shape).masked_fill(flat, math.nan).view(found.shape)
    return instead(hit, found, wrong), *rest
