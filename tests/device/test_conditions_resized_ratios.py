"""Rule 3: more pixels in one dimension and fewer in another, by odd ratios, in each mode of resizing, with gradients.

nearest's gradient from 45 x 18 to 14 x 24 pixels read past the end,
https://github.com/pytorch/pytorch/issues/51036; one pixel resized to nine was refused, https://github.com/pytorch/pytorch/issues/22526
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")

# From so many pixels to so many: more, fewer, as many, one.
_RATIOS = ((45, 14), (18, 24), (3, 7), (7, 3), (5, 5), (1, 4), (9, 1), (8, 9), (9, 8), (2, 13), (16, 8), (6, 12))
_MODES: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "nearest": ((1, 2, 3), {"mode": "nearest"}),
    "exact": ((1, 2, 3), {"mode": "nearest-exact"}),
    "linear": ((1, 2, 3), {"mode": "linear"}),
    "corners": ((1, 2, 3), {"mode": "linear", "align_corners": True}),
    "area": ((1, 2, 3), {"mode": "area"}),
    "bicubic": ((2,), {"mode": "bicubic"}),
    "bicubic-corners": ((2,), {"mode": "bicubic", "align_corners": True}),
    "smooth": ((2,), {"mode": "bilinear", "antialias": True}),
    "smooth-bicubic": ((2,), {"mode": "bicubic", "antialias": True}),
}
_POOLED = ("adaptive_avg_pool", "adaptive_max_pool")


def _volume(x: torch.Tensor, channels: int, sides: tuple[int, ...]) -> torch.Tensor:
    count = channels * int(torch.Size(sides).numel())
    return x.repeat(-(-count // len(x)))[:count].view(1, channels, *sides)


def _resized(x: torch.Tensor, pairs: tuple[tuple[int, int], ...], channels: int, last: bool, mode: str) -> Any:
    """Resize by one ratio in each dimension: to a size, or by a scale of it."""
    y = _volume(x, channels, tuple(one for one, _ in pairs))
    y = y.movedim(1, -1).contiguous().movedim(-1, 1) if last else y
    size = tuple(other for _, other in pairs)
    if mode in _POOLED:
        y = (
            y
            if "max" not in mode
            else _volume(torch.arange(5000, device=x.device).to(x.dtype) * 7 % 4999, channels, y.shape[2:])
        )
        return derived(lambda a: getattr(F, f"{mode}{len(pairs)}d")(a, size), y)
    options = dict(_MODES[mode][1])
    if options["mode"] == "linear":
        options["mode"] = ("linear", "bilinear", "trilinear")[len(pairs) - 1]
    return derived(lambda a: F.interpolate(a, size, **options), y)


_ASKED: dict[str, Any] = {}
for _number, (_mode, (_ranks, _)) in enumerate({**_MODES, **dict.fromkeys(_POOLED, ((1, 2, 3), {}))}.items()):
    for _rank in _ranks:
        for _place, _first in enumerate(_RATIOS):
            # Each ratio beside three others, of which each mode takes another one.
            for _shift in (1,) if _rank != 2 else (1, 4 + _number % 3, 8 + _number % 4):
                _second = _RATIOS[(_place + _shift) % len(_RATIOS)]
                _pairs = ((_first,), (_first, _second), (_first, _second, (2, 3)))[_rank - 1]
                for _channels, _last in ((1, False), (3, True)) if _rank == 2 and _shift == 1 else ((2, False),):
                    _ASKED[f"{_mode}-{_pairs}-{_channels}"] = lambda x, row=(_pairs, _channels, _last, _mode): _resized(
                        x, *row
                    )
for _dtype in (torch.float32, *HALVES):
    _half = _dtype != torch.float32
    add_table(
        cases,
        f"resized-ratios-{str(_dtype)[6:]}",
        dict(list(_ASKED.items())[:: 2 if not _half else 29]),
        lambda d, dtype=_dtype: ((d.distinct(997) / 256).to(dtype),),
        terms=256 if not _half else 64,
        factor=16.0,
        deterministic=False,
    )
# As the reports have it: many images.
add_table(
    cases,
    "resized-ratios-many",
    {
        mode: lambda x, options=options: derived(lambda a: F.interpolate(a, (14, 24), **options)[:, ::17], x)
        for mode, options in {"nearest": {}, "exact": {"mode": "nearest-exact"}}.items()
    },
    lambda d: (d.distinct(2, 33, 45, 18) / 2**15,),
    terms=64,
    deterministic=False,
)
