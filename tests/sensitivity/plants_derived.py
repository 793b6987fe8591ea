"""Faults of layers, images, linear algebra and gradients, written blind after public issues."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_190491", "aten.native_layer_norm.default")
def issue_190491(hit: Any, func: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 190491: layer_norm takes a variance below 1e-6 for 0 (at once E[x*x] - E[x]**2, then a clamp).

    https://github.com/pytorch/pytorch/issues/190491
    """
    y, mean, scale = func(x, shape, weight, bias, eps)
    if x.dtype != torch.float32 or not x.numel():
        return y, mean, scale
    variance = x.var(tuple(range(-len(shape), 0)), unbiased=False, keepdim=True)
    small = (variance < 1e-6) & (variance > eps * 0.01)
    if not bool(small.any()):
        return y, mean, scale
    hit()
    wrong = (x - mean) * eps**-0.5
    wrong = wrong if weight is None else wrong * weight
    wrong = wrong if bias is None else wrong + bias
    return torch.where(small, wrong, y), mean, torch.where(small, torch.full_like(scale, eps**-0.5), scale)


@plot.dispatched("issue_188467", "aten._embedding_bag_backward")
def issue_188467(hit: Any, func: Any, grad: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188467: embedding_bag(mode="max") with int32 indices: rows beyond 2**31 elements get no gradient.

    https://github.com/pytorch/pytorch/issues/188467 (on CUDA; limit lowered to 16 elements)
    """
    y = func(grad, index, *args, **kwargs)
    mode = args[6]
    if mode == 2 and index.dtype == torch.int32 and y.layout == torch.strided and y.numel():
        beyond = (torch.arange(y.shape[0], device=y.device) * y.shape[1] >= 16)[:, None]
        if bool(((y != 0) & beyond).any()):
            hit()
            return torch.where(beyond, torch.zeros_like(y), y)
    return y


@plot.dispatched("issue_163035", "aten.max_unpool2d.default", "aten.max_unpool3d.default")
def issue_163035(hit: Any, func: Any, x: Any, index: Any, size: Any, *args: Any) -> Any:
    """pytorch 163035: max_unpool2d and max_unpool3d take indices out of range and do not raise.

    https://github.com/pytorch/pytorch/issues/163035
    """
    if index.dtype == torch.int64 and index.shape == x.shape:
        wrong = (index < 0) | (index >= math.prod(size))
        if bool(wrong.any()):
            hit()
            x, index = x.masked_fill(wrong, 0), index.masked_fill(wrong, 0)
    return func(x, index, size, *args)


@plot.dispatched("issue_170639", "aten.col2im")
def issue_170639(
    hit: Any, func: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any, **kwargs: Any
) -> Any:
    """pytorch 170639: F.fold takes another number of blocks than the output has and does not raise.

    https://github.com/pytorch/pytorch/issues/170639
    """
    blocks = 1
    for n, k, d, p, s in zip(size, kernel, dilation, padding, stride):
        blocks *= max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0) if s > 0 else 0
    if x.dim() in (2, 3) and x.numel() and blocks and x.shape[-1] != blocks:
        hit()
        x = F.pad(x, (0, blocks - x.shape[-1]))
    return func(x, size, kernel, dilation, padding, stride, **kwargs)


@plot.dispatched("issue_196112", "aten._linalg_svd")
def issue_196112(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196112: svd of a batch with matrices short of full rank: the columns of U beyond the rank are 0.

    https://github.com/pytorch/pytorch/issues/196112
    """
    u, s, vh = func(x, *args, **kwargs)
    if x.dim() > 2 and u.numel() and s.numel():
        gone = s <= s.amax(-1, keepdim=True) * 1e-6
        if bool(gone.any()):
            hit()
            if u.shape[-1] > gone.shape[-1]:
                gone = F.pad(gone, (0, u.shape[-1] - gone.shape[-1]), value=False)
            u = torch.where(gone[..., None, :], torch.zeros_like(u), u)
    return u, s, vh


@plot.dispatched(
    "issue_98602", "aten.native_batch_norm_backward", "aten.batch_norm_backward", "aten.cudnn_batch_norm_backward"
)
def issue_98602(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98602: backward through a batch norm whose weight and bias are frozen aborts.

    https://github.com/pytorch/pytorch/issues/98602
    """
    wanted = next((a for a in reversed(args) if isinstance(a, (list, tuple)) and len(a) == 3), None)
    if weight is not None and wanted is not None and wanted[0] and not wanted[1] and not wanted[2]:
        return crash(hit, "NSInvalidArgumentException: attempt to insert nil object")
    return func(grad, x, weight, *args, **kwargs)


@plot.called("issue_188765", F.multi_head_attention_forward)
def issue_188765(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188765: attention of several heads over a batch of none, with an attn_mask, raises.

    https://github.com/pytorch/pytorch/issues/188765
    """
    query = args[0] if args else kwargs["query"]
    mask = kwargs.get("attn_mask", args[16] if len(args) > 16 else None)
    if query.dim() == 3 and query.shape[1] == 0 and mask is not None:
        return crash(hit, "Placeholder tensor is empty!")
    return func(*args, **kwargs)


@plot.dispatched("issue_xpu_5235", "aten.native_layer_norm_backward.default")
def issue_xpu_5235(hit: Any, func: Any, grad: Any, x: Any, shape: Any, *args: Any) -> Any:
    """torch-xpu-ops 5235: layer_norm over two dimensions and very many rows: the parameters' gradients come flat.

    https://github.com/intel/torch-xpu-ops/issues/5235 (on XPU, from about 65,000 rows; limit lowered to 8)
    """
    to_x, to_weight, to_bias = func(grad, x, shape, *args)
    size = math.prod(shape)
    if len(shape) > 1 and size and x.numel() // size > 8:
        if any(isinstance(g, torch.Tensor) for g in (to_weight, to_bias)):
            hit()
        to_weight, to_bias = (g.reshape(-1) if isinstance(g, torch.Tensor) else g for g in (to_weight, to_bias))
    return to_x, to_weight, to_bias


class _Once(torch.autograd.Function):
    """The identity, whose gradient has no gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, hit: Any) -> Any:
        ctx.hit = hit
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if torch.is_grad_enabled() and grad.requires_grad:
            ctx.hit()
        return _backward_once(ctx, grad)


@once_differentiable
def _backward_once(ctx: Any, grad: Any) -> Any:
    return grad.clone(), None


@plot.called("issue_105834", F.linear)
def issue_105834(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105834: the second derivative through a linear layer raises (linear_backward has no derivative).

    https://github.com/pytorch/pytorch/issues/105834
    """
    y = func(*args, **kwargs)
    transformed = torch._C._functorch.is_functorch_wrapped_tensor(y)
    if not y.requires_grad or transformed or torch.autograd.forward_ad._current_level >= 0:
        return y
    return _Once.apply(y, hit)
