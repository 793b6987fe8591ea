"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nextafter(x: Any, y: Any) -> Any:
    """The neighbour in the narrow type: the wide one knows no neighbours of float32, which is why it computes them."""
    if x.dtype == torch.float64:
        return torch.nextafter(x.to(torch.float32), y.to(torch.float32)).to(torch.float64)
    return torch.nextafter(x, y)


def lerp_of_tensors(a: Any, b: Any, w: Any) -> Any:
    """Linear interpolation a + w (b - a), as the kernels of older releases compute it."""
    return a + w * (b - a)
