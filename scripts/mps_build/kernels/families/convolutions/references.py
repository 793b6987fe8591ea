"""References of convolutions that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_conv2d(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    """Two-dimensional convolution, by torch's own CPU operator."""
    bias = bias if isinstance(bias, torch.Tensor) else None
    return torch.nn.functional.conv2d(x, w, bias, stride, padding, dilation, groups)


def nn_conv3d(x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: Any) -> Any:
    """Three-dimensional convolution, by torch's own CPU operator."""
    bias = bias if isinstance(bias, torch.Tensor) else None
    return torch.nn.functional.conv3d(x, w, bias, stride, padding, dilation, groups)
