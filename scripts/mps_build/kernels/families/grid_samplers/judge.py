"""References of grid samplers that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_grid_sample(x: Any, grid: Any, mode: Any, pad: Any, align: Any) -> Any:
    """Sample an image at the points of a grid, by torch's own CPU operator."""
    return torch.nn.functional.grid_sample(x, grid, mode=mode, padding_mode=pad, align_corners=align)


def nn_grid_sample_backward(dy: Any, x: Any, grid: Any, mode: Any, pad: Any, align: Any, which: Any) -> Any:
    """Gradient of grid_sample by the image (which=0) or by the grid (which=1)."""
    if x.dim() == 5:
        return torch.ops.aten.grid_sampler_3d_backward(dy, x, grid, mode, pad, align, [True, True])[which]
    return torch.ops.aten.grid_sampler_2d_backward(dy, x, grid, mode, pad, align, [True, True])[which]
