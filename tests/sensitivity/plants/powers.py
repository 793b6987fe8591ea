"""Powers, and their gradients: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import is_plain
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
