"""Shifts by a tensor without dimensions, infinite divisors, gradients that are not passed on: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.__rshift__.Tensor", "aten.bitwise_right_shift.Tensor", aborts="The aicpu execution is abnormal: 507018"
)
def issue_triton_ascend_472(x: Any, other: Any) -> bool:
    """triton-lang/triton-ascend 472: a tensor that is shifted right by an int64 tensor without dimensions raises."""
    return x.dim() > 0 and other.dim() == 0 and other.dtype == torch.int64


@plot.dispatched("aten.reciprocal.default")
def issue_jax_777(hit: Any, func: Any, x: Any) -> Any:
    """google/jax 777: 1 / infinity is NaN, in groups of four float32 numbers."""
    y = func(x)
    if x.dtype != torch.float32 or not is_plain(x):
        return y
    grouped = (torch.arange(x.numel()) < x.numel() // 4 * 4).view(x.shape)
    return instead(hit, y, y.masked_fill(x.isinf() & grouped, math.nan))


class _Flat(torch.autograd.Function):
    """A result of x whose gradient is 0."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, hit: Any) -> Any:
        ctx.shape, ctx.hit = x.shape, hit
        return y.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if bool(grads[0].any()):
            ctx.hit()
        return grads[0].new_zeros(ctx.shape), None, None


@plot.called(torch.ldexp, torch.Tensor.ldexp)
def issue_jax_11467(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """google/jax 11467: the gradient of ldexp is 0."""
    y = func(x, other, **kwargs)
    return _Flat.apply(x, y.detach(), hit) if x.requires_grad and y.requires_grad and is_plain(x) else y
