"""The gradients of complex numbers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead
from misreading import with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _is_complex(x: Any) -> bool:
    return x.is_complex() if torch.is_tensor(x) else isinstance(x, complex)


@plot.called(torch.mul, torch.Tensor.mul, torch.Tensor.__mul__, torch.Tensor.__rmul__)
def issue_43349(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 43349: the backward of a real tensor times a complex number raises."""

    def refuse(grad: Any) -> Any:
        return crash(hit, "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex)")

    if len({_is_complex(one) for one in args}) == 1:
        return func(*args, **kwargs)
    return func(*(one if _is_complex(one) else with_gradient(one, refuse) for one in args), **kwargs)


@plot.called(torch.Tensor.backward)
def issue_92750(hit: Any, func: Any, x: Any, gradient: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 92750: backward() of a complex number goes on without a gradient, as if that were 1."""
    if gradient is None and x.is_complex() and x.numel() == 1:
        hit()
        gradient = torch.ones_like(x)
    return func(x, gradient, *args, **kwargs)


@plot.called(torch.polar)
def issue_54340(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 54340: polar raises where an operand requires a gradient."""
    z = func(*args, **kwargs)
    return crash(hit, "polar does not support automatic differentiation") if z.requires_grad else z


@plot.called(torch.angle, torch.Tensor.angle)
def issue_46144(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 46144: the gradient of a complex angle is wrong (here without the factor i)."""
    if not x.is_complex():
        return func(x, *args, **kwargs)
    return func(with_gradient(x, lambda grad: instead(hit, grad, grad / 1j)), *args, **kwargs)


@plot.called(torch.Tensor.sum_to_size)
def issue_85409(hit: Any, func: Any, x: Any, *size: Any, **kwargs: Any) -> Any:
    """pytorch 85409: sum_to_size of a list: the gradient of what is conjugated or negated lazily is not.

    Here it is conjugated, or has the other sign.
    """
    if not size or not isinstance(size[0], list) or not (x.is_conj() or x.is_neg()):
        return func(x, *size, **kwargs)

    def change(grad: Any) -> Any:
        wrong = grad.conj() if x.is_conj() else -grad
        return instead(hit, grad, wrong.resolve_conj())

    return func(with_gradient(x, change), *size)
