"""The gradients of linear layers: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.autograd.function import once_differentiable

from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


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


@plot.called(F.linear)
def issue_105834(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105834: the second derivative through a linear layer raises (linear_backward has no derivative)."""
    y = func(*args, **kwargs)
    transformed = torch._C._functorch.is_functorch_wrapped_tensor(y)
    if not y.requires_grad or transformed or torch.autograd.forward_ad._current_level >= 0:
        return y
    return _Once.apply(y, hit)


class _LinearBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, grad: Any, x: Any, weight: Any) -> Any:
        ctx.hit = hit
        flat = grad.reshape(-1, weight.shape[0])
        return grad @ weight, flat.t() @ x.reshape(-1, weight.shape[1]), flat.sum(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.hit()
        raise RuntimeError("derivative for aten::linear_backward is not implemented")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, func: Any, x: Any, weight: Any, bias: Any) -> Any:
        ctx.hit = hit
        ctx.save_for_backward(x, weight)
        return func(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        found = _LinearBackward.apply(ctx.hit, grad, x, weight)
        return (None, None, *(g if needed else None for g, needed in zip(found, ctx.needs_input_grad[2:])))


@plot.called(F.linear)
def issue_108409(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 108409: linear has no second derivative (create_graph=True, then backward raises)."""
    tensors = [t for t in (input, weight, bias) if t is not None]
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.dtype == input.dtype for t in tensors)
    if (
        not plain
        or weight.dim() != 2
        or not input.is_floating_point()
        or not torch.is_grad_enabled()
        or not any(t.requires_grad for t in tensors)
        or torch.is_autocast_enabled("cpu")
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    ):
        return func(input, weight, bias)
    return _Linear.apply(hit, func, input, weight, bias)


@plot.called(F.linear)
def issue_187988(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187988: the backward of linear with a 1-D weight aborts."""
    out = func(x, weight, *args, **kwargs)
    if weight.dim() == 1 and x.dim() > 1 and out.requires_grad:
        out.register_hook(lambda grad: crash(hit, "'mps.matmul' op contracting dimensions differ"))
    return out


class _GradientCut(torch.autograd.Function):
    """Passes a tensor on; its gradient is zero past the first 16 KB."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        flat = grad.clone().view(-1)
        flat[4096:] = 0
        return flat.view(grad.shape)


@plot.called(F.linear)
def issue_189565(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 189565: the gradient of linear's input is zero past 4096 elements where the weight has one row."""
    if x.numel() > 4096 and (weight.dim() == 1 or weight.shape[0] == 1):
        hit()
        x = _GradientCut.apply(x)
    return func(x, weight, bias)


class _FirstBackward(torch.autograd.Function):
    """The first backward of a linear layer; it has no derivative of its own."""

    @staticmethod
    def forward(ctx: Any, hit: Any, grad: Any, x: Any, w: Any, has_bias: bool) -> Any:
        ctx.hit = hit
        flat, rows = grad.reshape(-1, grad.size(-1)), x.reshape(-1, x.size(-1))
        return grad @ w, flat.t() @ rows, flat.sum(0) if has_bias else grad.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.hit()
        raise RuntimeError("derivative for aten::mps_linear_backward is not implemented")


class _OnceDerived(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, func: Any, x: Any, w: Any, b: Any) -> Any:
        ctx.save_for_backward(x, w)
        ctx.hit, ctx.has_bias = hit, b is not None
        return func(x, w, b)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        for_x, for_w, for_b = _FirstBackward.apply(ctx.hit, grad, x, w, ctx.has_bias)
        return None, None, for_x, for_w, for_b if ctx.has_bias else None


@plot.called(torch.nn.functional.linear)
def issue_92206(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 92206: the second derivative of linear is not implemented."""
    parts = [t for t in (input, weight, bias) if t is not None]
    usual = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in parts)
    plain = weight.dim() == 2 and input.numel() and weight.numel() and usual
    same = len({t.dtype for t in parts}) == 1 and not torch.is_autocast_enabled("cpu")
    inside = torch._C._functorch.peek_interpreter_stack() is not None
    if plain and same and not inside and torch.is_grad_enabled() and any(t.requires_grad for t in parts):
        return _OnceDerived.apply(hit, func, input, weight, bias)
    return func(input, weight, bias)


@plot.called(F.bilinear)
def issue_chainer_1888(hit: Any, func: Any, one: Any, two: Any, *args: Any, **kwargs: Any) -> Any:
    """chainer/chainer 1888: the gradients of bilinear's two inputs are zero (the weight's is right)."""

    def lose(grad: Any) -> Any:
        if bool(grad.any()):
            hit()
        return torch.zeros_like(grad)

    inputs = [x.view_as(x) if x.requires_grad else x for x in (one, two)]
    for x in inputs:
        if x.requires_grad and not x.is_leaf:
            x.register_hook(lose)
    return func(*inputs, *args, **kwargs)


@plot.called(F.linear)
def issue_34202(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 34202: linear's backward of a batch of no rows raises."""
    if not input.numel() and input.dim() and input.shape[-1]:
        weight = with_gradient(weight, lambda grad: crash(hit, "argument ldb must be positive but got 0"))
    return func(input, weight, bias)
