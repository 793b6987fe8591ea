"""Edges of images: one pixel, channels_last out of the middle of a storage, windows of unlike sizes and of one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("conditions")


def _derived(form: Any, x: Any, g: Any) -> Any:
    start = leaf(x)
    return backward(form(start), start, grad=g)


# One pixel in, one pixel out.
for _mode, _rank in (("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3), ("nearest", 2), ("area", 2)):
    for _sides in ((1, 4), (4, 1), (1, 1)):
        for _align in (False, True) if _mode not in ("nearest", "area") else (None,):
            cases.add(
                f"condition-edge-pixel-{_mode}-{_sides[0]}to{_sides[1]}-{_align}",
                lambda x, g, mode=_mode, rank=_rank, out=_sides[1], align=_align: _derived(
                    lambda y: F.interpolate(y, size=(out,) * rank, mode=mode, align_corners=align), x, g
                ),
                make=lambda d, rank=_rank, sides=_sides: (
                    d.normal(2, 3, *(sides[0],) * rank),
                    d.normal(2, 3, *(sides[1],) * rank),
                ),
                terms=16,
                deterministic=False,
            )

# channels_last images out of the middle of their storage.
_IMAGES = {
    "norms": lambda x: [
        F.batch_norm(x, x.mean((0, 2, 3)).detach(), x.var((0, 2, 3)).detach()),
        F.batch_norm(x, None, None, training=True),
        F.group_norm(x, 2),
        F.instance_norm(x),
    ],
    "pools": lambda x: [
        F.avg_pool2d(x, 2),
        F.max_pool2d(x, 3, 2),
        F.adaptive_avg_pool2d(x, 2),
        F.avg_pool2d(x, 3, 1, 1),
    ],
    "convolutions": lambda x: [
        F.conv2d(x, x[:, :, :3, :3]),
        F.conv2d(x, x[:1, :1, :3, :2].expand(4, 1, 3, 2), groups=4),
    ],
    "sizes": lambda x: [
        F.interpolate(x, scale_factor=2),
        F.interpolate(x, size=(5, 4), mode="bilinear"),
        F.pad(x, (1, 2)),
    ],
    "others": lambda x: [
        x.softmax(1),
        x.relu(),
        x.sum(1),
        x.flatten(1),
        x.mean((2, 3)),
        F.pixel_shuffle(x, 2),
        x * x[:, :1],
    ],
}
for _name, _form in _IMAGES.items():
    for _dtype in (torch.float32, torch.float16):
        cases.add(
            f"condition-edge-images-{_name}-{str(_dtype)[6:]}",
            lambda base, form=_form: form(base[1:].permute(0, 3, 1, 2)),
            make=lambda d, dtype=_dtype: (d.normal(4 + d.k, 8, 8, 4, dtype=dtype),),
            terms=256,
            floor=1.0,
        )
cases.add(
    "condition-edge-images-gradients",
    lambda base, g: [
        _derived(form, base[1:].permute(0, 3, 1, 2), g[: 3 if whole else None, :, :side, :side])
        for form, side, whole in (
            (lambda x: F.avg_pool2d(x, 2), 4, True),
            (lambda x: F.max_pool2d(x, 2), 4, True),
            (lambda x: F.batch_norm(x, None, None, training=True), 8, True),
            (lambda x: F.relu(x), 8, True),
        )
    ],
    make=lambda d: (d.normal(4, 8, 8, 4), d.normal(3, 4, 8, 8)),
    terms=256,
    floor=1.0,
)

# Windows of unlike sizes, windows of one, and a dimension counted from the end.
_POOLS = {
    "adaptive1d": lambda x: [
        form(x[:, :, 0], n) for form in (F.adaptive_max_pool1d, F.adaptive_avg_pool1d) for n in (1, 3, 5)
    ],
    "adaptive2d": lambda x: [
        form(x, size)
        for form in (F.adaptive_max_pool2d, F.adaptive_avg_pool2d)
        for size in (3, (5, 3), (1, 4), (9, 2), (None, 3), (10, 12))
    ],
    "adaptive3d": lambda x: [form(x[None], (2, 3, 5)) for form in (F.adaptive_max_pool3d, F.adaptive_avg_pool3d)],
    "indices": lambda x: [
        F.adaptive_max_pool2d(x, (3, 5), return_indices=True),
        F.max_pool2d(x, 3, 2, 1, return_indices=True),
    ],
    "ones": lambda x: [
        form(x, 1, stride, ceil_mode=ceil)
        for form in (F.max_pool2d, F.avg_pool2d)
        for stride in (1, 2, 3)
        for ceil in (False, True)
    ],
    "ceil": lambda x: (
        [
            F.avg_pool2d(x, 3, 2, pad, ceil_mode=True, count_include_pad=count)
            for pad in (0, 1)
            for count in (False, True)
        ]
        + [
            F.max_pool2d(x, 2, 3, ceil_mode=True),
            F.avg_pool1d(x[0], 3, 2, ceil_mode=True),
            F.max_pool1d(x[0], 1, 2, ceil_mode=True),
        ]
    ),
}
for _name, _form in _POOLS.items():
    cases.add(
        f"condition-edge-windows-{_name}",
        lambda x, form=_form: form(x),
        make=lambda d: (d.distinct(2, 3, 7, 10 + d.k) / 64,),
        terms=16,
    )
