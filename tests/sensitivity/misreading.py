"""Tensors read and written wrongly, as back ends do: strides ignored, an offset dropped, bits cut, a write lost."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils._pytree import tree_map

from differences import is_plain


def dense_strides(shape: Any) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    found, step = [], 1
    for side in reversed(shape):
        found.insert(0, step)
        step *= max(side, 1)
    return tuple(found)


def is_dense(x: torch.Tensor) -> bool:
    """Tell whether a tensor fills one run of its storage, in whatever order of its dimensions."""
    if any(step == 0 and side > 1 for side, step in zip(x.shape, x.stride())):
        return False
    return x.numel() == 0 or 1 + sum((side - 1) * step for side, step in zip(x.shape, x.stride())) == x.numel()


def in_storage_order(x: torch.Tensor) -> torch.Tensor:
    """Read a view as if it were contiguous, as far as its storage goes."""
    if x.is_contiguous() or x.storage_offset() + x.numel() > x.untyped_storage().nbytes() // x.element_size():
        return x
    return x.as_strided(x.shape, dense_strides(x.shape), x.storage_offset())


def without_offset(x: torch.Tensor) -> torch.Tensor:
    """Read a view from the beginning of its storage."""
    return x.as_strided(x.shape, x.stride(), 0)


def in_tf32(x: torch.Tensor) -> torch.Tensor:
    """Round float32 to 10 bits after the leading one, as tensor cores read it."""
    bits = x.contiguous().view(torch.int32)
    return torch.where(x.isfinite(), ((bits + 0x1000) & ~0x1FFF).view(torch.float32), x)


def misread(read: Callable[[torch.Tensor], torch.Tensor], hit: Callable[[], None], value: Any) -> Any:
    """Return nested arguments with every tensor that `read` would change read wrongly."""

    def change(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.numel() < 2 or x.layout != torch.strided:
            return x
        wrong = read(x)
        if wrong is x or (wrong.stride() == x.stride() and wrong.storage_offset() == x.storage_offset()):
            return x
        hit()
        return wrong

    return tree_map(change, value)


def lost(hit: Callable[[], None], func: Any, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Compute on a copy where the destination is not contiguous, and return the destination unchanged."""
    if target.is_contiguous():
        return func(target, *args, **kwargs)
    hit()
    func(target.contiguous(), *args, **kwargs)
    return target


def with_gradient(x: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """Return a tensor as it is; what comes back to it as its gradient goes through `change` first."""
    if not torch.is_tensor(x) or not x.requires_grad or not torch.is_grad_enabled() or not is_plain(x):
        return x
    x = x.view_as(x)
    x.register_hook(change)
    return x


class Identity(torch.autograd.Function):
    """The identity, of which a fault says what its gradient is; the context has the fault's `hit`."""

    @staticmethod
    def forward(ctx: Any, x: Any, hit: Any) -> Any:
        ctx.hit = hit
        return x.view_as(x)


class RolledGradient(Identity):
    """The identity, with a gradient that is not."""

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        if grad.numel() > 1:
            ctx.hit()
        return grad.reshape(-1).roll(1).view(grad.shape), None
