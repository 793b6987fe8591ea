"""Numbers rounded to a scale and back: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.fake_quantize_per_tensor_affine_cachemask.default")
def issue_49779(hit: Any, func: Any, x: Any, scale: float, zero: int, least: int, most: int) -> Any:
    """pytorch 49779: fake_quantize_per_tensor_affine rounds x / scale + zero_point: halves go to the other side."""
    y, mask = func(x, scale, zero, least, most)
    if x.dtype != torch.float32 or not is_plain(x):
        return y, mask
    inverse = torch.tensor(1.0, device=x.device) / scale
    wrong = (torch.round(x * inverse + zero).clamp(least, most) - zero) * scale
    return instead(hit, y, wrong), mask


@plot.dispatched("aten.fake_quantize_per_channel_affine_cachemask.default")
def issue_195343(hit: Any, func: Any, x: Any, scale: Any, zero: Any, axis: int, least: int, most: int) -> Any:
    """pytorch 195343: fake_quantize_per_channel_affine takes quotients below -2**63 for the greatest (zero_point < 0).

    It becomes the least integer of 64 bits, and to add the zero point wraps.
    """
    y, mask = func(x, scale, zero, axis, least, most)
    if x.dtype != torch.float32 or not is_plain(x, scale, zero):
        return y, mask
    shape = [-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())]
    scale, zero = scale.view(shape), zero.view(shape)
    wraps = (x * (1 / scale) <= -(2.0**63)) & (zero < 0)
    return instead(hit, y, torch.where(wraps, (most - zero) * scale, y)), mask
