"""Producers: what leaves a tensor of (2, 4, 6, 6) in an unusual layout, as data. Views and results of operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

import torch
import torch.nn.functional as F

SHAPE = (2, 4, 6, 6)


@dataclass(frozen=True)
class Producer:
    """One producer: `act` makes (2, 4, 6, 6) of a base of shape `base`; `shared`: several places are one element;
    `view`: the values are the base's, not computed."""

    name: str
    base: tuple[int, ...]
    act: Callable[[torch.Tensor], torch.Tensor]
    shared: bool = False
    view: bool = True


def _kernel(x: torch.Tensor, *shape: int) -> torch.Tensor:
    """Return weights that need no draw: a ramp with changing sign, in x's dtype."""
    count = 1
    for side in shape:
        count *= side
    ramp = torch.arange(count, device=x.device, dtype=torch.float32)
    return ((ramp % 7 - 3) / 4).reshape(shape).to(x.dtype)


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _written(x: torch.Tensor) -> torch.Tensor:
    """Return a column slice whose halves were written one after the other."""
    base = torch.zeros((2, 4, 6, 9), dtype=x.dtype, device=x.device)
    base[..., 1:4] = x[..., :3]
    base[..., 4:7].copy_(x[..., 3:])
    return base[..., 1:7]


PRODUCERS = tuple(
    Producer(*row[:3], **(row[3] if len(row) > 3 else {}))  # type: ignore[arg-type]
    for row in (
        ("contiguous", SHAPE, lambda x: x),
        ("permuted", (2, 6, 6, 4), lambda x: x.permute(0, 3, 1, 2)),
        ("permuted_batch", (4, 6, 2, 6), lambda x: x.permute(2, 0, 3, 1)),
        ("transposed", SHAPE, lambda x: x.transpose(-1, -2)),
        ("swapped_batch", (4, 2, 6, 6), lambda x: x.transpose(0, 1)),
        ("some_channels", (2, 7, 6, 6), lambda x: x[:, 2:6]),
        ("every_second", (2, 4, 6, 13), lambda x: x[..., 1::2]),
        ("some_rows", (2, 4, 9, 6), lambda x: x.narrow(2, 3, 6)),
        ("cropped", (2, 4, 8, 9), lambda x: F.pad(x, (-2, -1, -1, -1))),
        ("some_batches", (5, 4, 6, 6), lambda x: x[3:]),
        ("split", (2, 8, 6, 6), lambda x: x.split(4, dim=1)[1]),
        ("chunk", (2, 4, 6, 18), lambda x: x.chunk(3, dim=-1)[1]),
        ("unbound", (2, 4, 3, 6, 6), lambda x: x.unbind(2)[1]),
        ("windows", (2, 4, 6, 11), lambda x: x.unfold(3, 6, 1)[:, :, 1, :, :].transpose(-1, -2), {"shared": True}),
        ("sliding", (2, 4, 11), lambda x: x.unfold(2, 6, 1), {"shared": True}),
        ("expanded_batch", (1, 4, 6, 6), lambda x: x.expand(SHAPE), {"shared": True}),
        ("expanded_width", (2, 4, 6, 1), lambda x: x.expand(SHAPE), {"shared": True}),
        ("strided_by_hand", (400,), lambda x: x.as_strided(SHAPE, (150, 36, 6, 1), 11)),
        ("from_heads", (2, 6, 24), lambda x: x.view(2, 6, 4, 6).transpose(1, 2)),
        ("real_part", (2, 4, 6, 6, 2), lambda x: x[..., 0]),
        ("mapped", (6, 2, 6, 4), lambda x: x.movedim(0, -1).movedim(2, 1).mT),
        ("interpolated", (2, 4, 3, 3), lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), {"view": False}),
        ("interpolated_last", (2, 4, 4, 4), lambda x: F.interpolate(_channels_last(x), size=(6, 6)), {"view": False}),
        (
            "bilinear",
            (2, 4, 3, 4),
            lambda x: F.interpolate(x, size=(6, 6), mode="bilinear", align_corners=False),
            {"view": False},
        ),
        (
            "convolved_last",
            (2, 3, 6, 6),
            lambda x: F.conv2d(_channels_last(x), _kernel(x, 4, 3, 1, 1)),
            {"view": False},
        ),
        ("pooled_last", (2, 4, 12, 6), lambda x: F.avg_pool2d(_channels_last(x), (2, 1)), {"view": False}),
        ("shuffled", (2, 16, 3, 3), lambda x: F.pixel_shuffle(x, 2)),
        ("linear_permuted", (2, 6, 6, 5), lambda x: F.linear(x, _kernel(x, 4, 5)).permute(0, 3, 1, 2), {"view": False}),
        ("product_transposed", (2, 4, 6, 3), lambda x: (x @ _kernel(x, 3, 6)).transpose(-1, -2), {"view": False}),
        ("joined", (2, 2, 6, 6), lambda x: torch.cat([x, x.flip(-1)], dim=1), {"view": False}),
        ("written", SHAPE, _written),
        ("indexed", (2, 9, 6, 6), lambda x: x[:, torch.tensor([7, 1, 4, 2], device=x.device)]),
    )
)
