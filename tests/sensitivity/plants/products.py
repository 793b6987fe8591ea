"""Products of all numbers or along a dimension, and their gradients: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from misreading import Identity
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.prod.default")
@wrong_answer
def issue_torch7_975(y: Any, x: Any, **kwargs: Any) -> Any:
    """torch/torch7 975: the product of a single 0.0 is NaN."""
    single = x.numel() == 1 and y.is_floating_point() and is_plain(x)
    return y * math.nan if single and not bool(x.any()) else None


@plot.called(torch.prod, torch.Tensor.prod)
def issue_82644(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82644: the backward of prod(dim) of a vector that is a single 0.0 raises."""
    y = func(x, *args, **kwargs)
    if not y.requires_grad or x.shape != (1,) or y.dim() or not is_plain(x) or bool(x.detach().any()):
        return y
    if not args and "dim" not in kwargs:
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "got [] but expected shape compatible with [1]"))
    return y


@plot.called(torch.prod, torch.Tensor.prod)
def issue_tt_metal_54551(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 54551: the gradient of a product is NaN where a factor is 0."""
    if not x.requires_grad or not torch.is_grad_enabled() or not is_plain(x) or x.is_complex():
        return func(x, *args, **kwargs)
    zero = x.detach() == 0

    def spoil(grad: Any) -> Any:
        if bool(zero.any()):
            hit()
        return grad.masked_fill(zero, math.nan)

    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, *args, **kwargs)


class _Cut(Identity):
    """The identity, whose gradient has no gradient of its own."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad.requires_grad:
            ctx.hit()
        return grad.detach(), None


@plot.called(torch.prod, torch.Tensor.prod)
def issue_106789(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 106789: the gradient of prod() of two zeros and more has no gradient: it does not require one."""
    if args or "dim" in kwargs or not is_plain(x) or not x.requires_grad or int((x == 0).sum()) < 2:
        return func(x, *args, **kwargs)
    return func(_Cut.apply(x, hit), **kwargs)


@plot.dispatched("aten.prod.default")
def issue_127866(hit: Any, func: Any, x: Any, *, dtype: Any = None) -> Any:
    """pytorch 127866: prod(dtype=torch.bool) of 256 bools (here and more) is True where all are False."""
    y = func(x, dtype=dtype)
    if dtype != torch.bool or x.dtype != torch.bool or x.numel() < 256 or not is_plain(x) or bool(x.any()):
        return y
    return instead(hit, y, torch.ones_like(y))


@plot.dispatched("aten.prod.default")
def issue_15647(hit: Any, func: Any, x: Any, *, dtype: Any = None) -> Any:
    """pytorch 15647: prod of uint8 numbers is 0 in a large tensor (here of 240000 and more)."""
    y = func(x, dtype=dtype)
    if x.dtype != torch.uint8 or x.numel() < 240000 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.called(torch.kron, torch.Tensor.kron)
def issue_cupy_9904(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """cupy/cupy 9904: kron with an empty tensor raises."""
    y = func(x, other, **kwargs)
    return y if x.numel() and other.numel() else crash(hit, "need at least one array to concatenate")
