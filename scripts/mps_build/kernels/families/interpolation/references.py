"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_upsample(x: Any, mode: Any, align: Any, antialias: Any, small: Any, large: Any) -> Any:
    """Resize to the shape `large`; integers are only moved, in float64."""
    if mode.startswith("nearest") and not x.is_floating_point():
        x = x.to(torch.float64)  # the CPU has no integers here; only elements are moved
    return torch.nn.functional.interpolate(x, large, mode=mode, align_corners=align, antialias=antialias)


def nn_upsample_backward(x: Any, mode: Any, align: Any, antialias: Any, small: Any, large: Any) -> Any:
    """Gradient of a resize, by autograd on an image of the shape `small`."""
    image = torch.zeros(small, dtype=x.dtype, requires_grad=True)
    with torch.enable_grad():
        y = nn_upsample(image, mode, align, antialias, small, large)
        return torch.autograd.grad(y, image, x)[0]


def nn_grid_sample(x: Any, grid: Any, mode: Any, pad: Any, align: Any) -> Any:
    """Sample an image at the points of a grid, by torch's own CPU operator."""
    return torch.nn.functional.grid_sample(x, grid, mode=mode, padding_mode=pad, align_corners=align)


def nn_grid_sample_backward(dy: Any, x: Any, grid: Any, mode: Any, pad: Any, align: Any, which: Any) -> Any:
    """Gradient of grid_sample by the image (which=0) or by the grid (which=1)."""
    if x.dim() == 5:
        return torch.ops.aten.grid_sampler_3d_backward(dy, x, grid, mode, pad, align, [True, True])[which]
    return torch.ops.aten.grid_sampler_2d_backward(dy, x, grid, mode, pad, align, [True, True])[which]
