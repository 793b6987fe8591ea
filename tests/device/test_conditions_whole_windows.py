"""Rule 3: windows as large as what they slide over, depthwise ladders, and the gradients of torch.nn.grad.

conv2d of 5 x 5 pixels and 320 channels was wrong where its kernel had many zeros; 24 groups with a stride of two,
https://github.com/pytorch/pytorch/issues/50042; torch.nn.grad with groups,
https://github.com/pytorch/pytorch/issues/51430
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import grad as gradients

from device_suite import Cases
from device_suite.acts import derived, uneven
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")


def _cut(x: torch.Tensor, start: int, *shape: int) -> torch.Tensor:
    """Return numbers of a line, from the start again where it ends."""
    count = int(torch.Size(shape).numel())
    return x.roll(-start).repeat(-(-count // len(x)))[:count].view(shape)


def _thinned(w: torch.Tensor, every: int) -> torch.Tensor:
    """Keep every so many numbers of a kernel, and make zeros of the others."""
    keep = torch.arange(w.numel(), device=w.device).view_as(w) % every == 0
    return w * keep


def _convolved(rank: int, channels: int, sides: Any, kernel: Any, every: int, x: torch.Tensor, **options: Any) -> Any:
    groups = options.get("groups", 1)
    out = channels if groups > 1 else min(channels, 3)
    y = _cut(x, 3, 2, channels, *sides)
    w = _thinned(_cut(x, 50, out, channels // groups, *kernel), every)
    return derived(lambda a, b, c: getattr(F, f"conv{rank}d")(a, b, c, **options), y, w, _cut(x, 7, out))


def _turned(rank: int, channels: int, kernel: Any, x: torch.Tensor, **options: Any) -> Any:
    """Turn one pixel into a window."""
    y = _cut(x, 3, 2, channels, *(1,) * rank)
    w = _cut(x, 50, channels, 3 if options.get("groups", 1) == 1 else 1, *kernel)
    return derived(lambda a, b: getattr(F, f"conv_transpose{rank}d")(a, b, **options), y, w)


def _pooled(rank: int, kind: str, sides: Any, window: Any, x: torch.Tensor, **options: Any) -> Any:
    y = _cut(x, 3, 2, 3, *sides).contiguous()
    if kind == "max":  # each number once
        y = torch.arange(y.numel(), device=x.device).mul(37).remainder(1009).to(x.dtype).view_as(y) / 64
    pool = getattr(F, f"{kind}_pool{rank}d")
    if kind == "lp":
        return derived(lambda a: pool(a.abs() + 1, 2.0, window if rank > 1 else window[0], **options), y)
    return derived(lambda a: pool(a, window, **options), y)


_SIDES = {
    1: ((1,), (2,), (5,), (9,)),
    2: ((1, 1), (3, 3), (5, 5), (2, 7), (7, 1)),
    3: ((2, 2, 2), (3, 1, 4), (1, 3, 3)),
}
_WHOLE: dict[str, Any] = {}
for _rank, _all in _SIDES.items():
    for _sides, _channels in itertools.product(_all, (1, 3, 16)):
        _key = f"{_rank}-{_channels}-{'-'.join(map(str, _sides))}"
        _more = tuple(side + 2 for side in _sides)
        _rows: dict[str, tuple[Any, int, dict[str, Any]]] = {
            "plain": (_sides, 1, {}),
            "zeros": (_sides, 4, {}),
            "stride": (_sides, 1, {"stride": 3}),
            "padded": (_more, 1, {"padding": 1}),
            "padded-stride": (_sides, 3, {"padding": 1, "stride": 2}),
            "groups": (_sides, 1, {"groups": _channels}),
        }
        _WHOLE |= {
            f"conv-{_key}-{how}": lambda x, row=(_rank, _channels, _sides, kernel, every), o=options: _convolved(
                *row, x, **o
            )
            for how, (kernel, every, options) in _rows.items()
        }
        _WHOLE |= {
            f"turned-{_key}-{how}": lambda x, row=(_rank, _channels, _sides), o=options: _turned(*row, x, **o)
            for how, options in {
                "plain": {},
                "stride": {"stride": 2},
                "out": {"stride": 3, "output_padding": 2},
                "groups": {"groups": _channels},
            }.items()
        }
    for _sides, _kind in itertools.product(_all, ("max", "avg", "lp")):
        _key = f"{_kind}-{_rank}-{'-'.join(map(str, _sides))}"
        _WHOLE[f"{_key}-plain"] = lambda x, row=(_rank, _kind, _sides, _sides): _pooled(*row, x)
        _WHOLE[f"{_key}-stride"] = lambda x, row=(_rank, _kind, _sides, _sides): _pooled(*row, x, stride=4)
        _WHOLE[f"{_key}-ceil"] = lambda x, row=(_rank, _kind, _sides, (1,) * _rank): _pooled(
            *row, x, stride=2, ceil_mode=True
        )
        if _kind != "lp" and (_kind, _rank) != ("avg", 3):
            _wider = tuple(side + 2 for side in _sides)
            _WHOLE[f"{_key}-wider"] = lambda x, row=(_rank, _kind, _sides, _wider): _pooled(*row, x, padding=1)
for _every in (1, 2, 5, 25, 8000):
    _WHOLE[f"many-{_every}"] = lambda x, every=_every: _convolved(2, 320, (5, 5), (5, 5), every, x)
# As many groups as channels.
for _rank, _count, _stride in itertools.product((1, 2, 3), (1, 2, 3, 7, 8, 15, 16, 23, 24, 25, 31, 32, 33), (1, 2)):
    if (_rank == 2 and _stride == 2) or (_count + _rank + _stride) % 7 == 0:
        _row = (_rank, _count, (6, 5, 3)[:_rank], (3, 3, 2)[:_rank], 1)
        _WHOLE[f"depthwise-{_rank}-{_count}-{_stride}"] = lambda x, row=_row, stride=_stride: _convolved(
            *row, x, groups=row[1], stride=stride, padding=1
        )


def _by_grad(rank: int, kind: str, layout: str, x: torch.Tensor, **options: Any) -> Any:
    """Return what torch.nn.grad gives for a convolution: given sizes, and a gradient."""
    groups = options.get("groups", 1)
    y, w = _cut(x, 3, 2, 4, *(7, 6, 4)[:rank]), _cut(x, 50, 6, 4 // groups, *(3, 2, 2)[:rank])
    g = uneven(getattr(F, f"conv{rank}d")(y, w, **options))
    g = g.movedim(1, -1).contiguous().movedim(-1, 1) if layout == "last" else g
    if kind == "input":
        return getattr(gradients, f"conv{rank}d_input")(y.shape, w, g, **options)
    return getattr(gradients, f"conv{rank}d_weight")(y, w.shape, g, **options)


_WHOLE |= {
    f"grad-{rank}-{kind}-{layout}-{place}": lambda x, row=(rank, kind, layout), o=options: _by_grad(*row, x, **o)
    for rank, kind, layout in itertools.product((1, 2, 3), ("input", "weight"), ("last",))
    for place, options in enumerate(
        (
            {},
            {"groups": 2},
            {"stride": 2},
            {"padding": 1},
            {"padding": 2, "dilation": 2},
            {"stride": 3, "padding": 1, "groups": 2},
        )
    )
}
# Of what is convolved, some in each rank.
_ASKED = {
    name: form
    for place, (name, form) in enumerate(_WHOLE.items())
    if place % 9 == 0 or not name.startswith(("conv-1", "conv-2", "conv-3", "turned"))
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"whole-windows-{str(_dtype)[6:]}",
        dict(list(_ASKED.items())[:: 1 if _dtype == torch.float32 else 43]),
        lambda d, dtype=_dtype: ((d.distinct(997) / 512 + 0.001).to(dtype),),
        terms=8192 if _dtype == torch.float32 else 64,
        deterministic=False,
    )
