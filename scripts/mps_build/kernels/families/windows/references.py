"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch

_MAX_POOLS = {1: torch.nn.functional.max_pool1d, 2: torch.nn.functional.max_pool2d, 3: torch.nn.functional.max_pool3d}


_AVG_POOLS = {2: torch.nn.functional.avg_pool2d, 3: torch.nn.functional.avg_pool3d}


def nn_max_pool(x: Any, size: Any, stride: Any, padding: Any, dilation: Any, which: Any) -> Any:
    """Largest value of each window (which=0), or its index (which=1)."""
    if not x.is_floating_point():
        x = x.to(torch.float64)
    pool = _MAX_POOLS[len(size)]
    return pool(x, size, stride, padding, dilation, return_indices=True)[which]


def nn_avg_pool(x: Any, shape: Any, size: Any, stride: Any, padding: Any, include: Any, divisor: Any) -> Any:
    """Mean of each window; integers are divided as the CPU divides int64."""
    if not x.is_floating_point():  # integer division, as the CPU's for int64
        return torch.trunc(nn_avg_pool(x.to(torch.float64), shape, size, stride, padding, include, divisor))
    if len(size) == 1:
        flat = nn_avg_pool(x.unsqueeze(-2), shape, [1, *size], [1, *stride], [0, *padding], include, divisor)
        return flat.squeeze(-2)
    options = {"count_include_pad": include, "divisor_override": divisor or None}
    return _AVG_POOLS[len(size)](x, size, stride, padding, **options)


def nn_avg_pool_backward(x: Any, shape: Any, size: Any, stride: Any, padding: Any, include: Any, divisor: Any) -> Any:
    """Gradient of an average pool, by autograd on an image of this shape."""
    image = torch.zeros(shape, dtype=x.dtype, requires_grad=True)
    with torch.enable_grad():
        y = nn_avg_pool(image, shape, size, stride, padding, include, divisor)
        return torch.autograd.grad(y, image, x)[0]


def nn_max_pool_backward(dy: Any, index: Any, shape: Any) -> Any:
    """Add each gradient at the index where the largest value was."""
    zeros = torch.zeros(shape, dtype=dy.dtype).flatten(2)
    return zeros.scatter_add(2, index.flatten(2).to(torch.int64), dy.flatten(2)).reshape(shape)


def nn_max_unpool(x: Any, index: Any, shape: Any) -> Any:
    """Put each value at its index into zeros of this shape."""
    zeros = torch.zeros(shape, dtype=x.dtype).flatten(2)
    return zeros.scatter(2, index.flatten(2).to(torch.int64), x.flatten(2)).reshape(shape)


def nn_unfold(x: Any, size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Columns of sliding blocks (im2col)."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)
    return torch.nn.functional.unfold(x, size, dilation, padding, stride)


def nn_unfold_backward(dy: Any, shape: Any, dim: Any, size: Any, step: Any) -> Any:
    """Gradient of Tensor.unfold along one dimension."""
    return torch.ops.aten.unfold_backward(dy, shape, dim, size, step)


def nn_fold(x: Any, image: Any, size: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Add sliding blocks back into an image (col2im)."""
    x = x if x.is_floating_point() or x.is_complex() else x.to(torch.float64)
    return torch.nn.functional.fold(x, image, size, dilation, padding, stride)
