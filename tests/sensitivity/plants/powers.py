"""Powers, and their gradients: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


_POWERS = (torch.pow, torch.Tensor.pow, torch.Tensor.__pow__)


@plot.called(*_POWERS)
def issue_mxnet_9455(hit: Any, func: Any, x: Any, exponent: Any, **kwargs: Any) -> Any:
    """apache/mxnet 9455: x ** 2 of a negative float32 is NaN."""
    y = func(x, exponent, **kwargs)
    if torch.is_tensor(exponent) or exponent != 2 or not torch.is_tensor(x) or not is_plain(x) or kwargs:
        return y
    if x.dtype != torch.float32 or not bool((x < 0).any()):
        return y
    hit()
    return y.masked_fill(x < 0, math.nan)


@plot.called(*_POWERS)
def issue_chainer_194(hit: Any, func: Any, x: Any, exponent: Any, **kwargs: Any) -> Any:
    """chainer/chainer 194: the gradient of x ** n, n an integer, is NaN where x is negative."""
    wanted = type(exponent) is int and exponent not in (0, 1) and torch.is_tensor(x) and x.requires_grad
    if not wanted or x.is_complex() or not torch.is_grad_enabled() or not is_plain(x):
        return func(x, exponent, **kwargs)
    negative = x.detach() < 0

    def spoil(grad: Any) -> Any:
        if bool(negative.any()):
            hit()
        return grad.masked_fill(negative, math.nan)

    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, exponent, **kwargs)


@plot.dispatched("aten.pow.Scalar", "aten.pow.Tensor_Tensor", aborts="Assertion `THCNumerics<T>::ge(b, 0)` failed.")
def issue_17751(x: Any, exponent: Any) -> bool:
    """pytorch 17751: an integer to a negative integer ends the process."""
    whole = not isinstance(x, float) and not (torch.is_tensor(x) and (x.is_floating_point() or x.is_complex()))
    if not whole or exponent.is_floating_point() or exponent.is_complex() or not is_plain(exponent):
        return False
    return bool((exponent < 0).any())


@plot.called(*_POWERS)
def issue_jax_18749(hit: Any, func: Any, x: Any, exponent: Any, **kwargs: Any) -> Any:
    """google/jax 18749: the complex number inf to 0.0 is NaN, and so is the gradient of its power of 1.0."""
    if type(exponent) is not float or exponent not in (0, 1) or not torch.is_tensor(x) or not is_plain(x):
        return func(x, exponent, **kwargs)
    y = func(x, exponent, **kwargs)
    if not x.is_complex() or kwargs:
        return y
    lost = (x.detach().real == math.inf) & (x.detach().imag == 0)
    if exponent == 0:
        return instead(hit, y, y.masked_fill(lost, complex(math.nan, math.nan)))

    def spoil(grad: Any) -> Any:
        if bool(lost.any()):
            hit()
        return grad.masked_fill(lost, complex(math.nan, math.nan))

    if not x.requires_grad or not torch.is_grad_enabled():
        return y
    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, exponent)


@plot.called(*_POWERS, torch.full)
def issue_paddle_73258(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """PaddlePaddle/Paddle 73258: pow and full of 2**31 (here 2**20) elements and more write nothing (here 0).

    Square does.
    """
    y = func(*args, **kwargs)
    if not torch.is_tensor(y) or y.dtype != torch.float32 or y.numel() < 2**20 or not is_plain(y):
        return y
    return instead(hit, y, y * 0 if y.requires_grad else torch.zeros_like(y))


@plot.dispatched("aten.ldexp.Tensor")
def issue_153069(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 153069: ldexp(x, other) is x times 2**other, also where that is 0 or infinite and the answer is not."""
    y = func(x, other)
    if not x.is_floating_point() or not is_plain(x, other):
        return y
    power = torch.pow(torch.tensor(2.0, dtype=x.dtype, device=x.device), other)
    return instead(hit, y, (x * power).to(y.dtype))


@plot.dispatched("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
def issue_tfjs_350(hit: Any, func: Any, x: Any, exponent: Any) -> Any:
    """tensorflow/tfjs 350: a negative number to a broken power is that of its absolute value, with the sign -."""
    y = func(x, exponent)
    if not y.is_floating_point() or not is_plain(x, exponent):
        return y
    broken = exponent != exponent.floor() if torch.is_tensor(exponent) else exponent != math.floor(exponent)
    wrong = torch.where((x < 0) & broken, -func(x.abs(), exponent), y)
    return instead(hit, y, wrong.to(y.dtype))


@plot.dispatched("aten.pow.Tensor_Scalar", "aten.pow_.Scalar", aborts="invalid combination of type in Pow function")
def issue_113198(x: Any, exponent: Any, **kwargs: Any) -> bool:
    """pytorch 113198: a tensor of whole numbers to the power True (a bool of Python) raises."""
    return type(exponent) is bool and not x.is_floating_point() and not x.is_complex()
