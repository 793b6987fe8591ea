"""References of upsampling that are more than an expression."""

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
