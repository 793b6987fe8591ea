"""References of unfold that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


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
