"""Rule 3: layers as large as models have them: batches of 1 to 64, sides of 7 to 73 pixels, 1 to 256 channels.

The gradient of a batch norm's weight was wrong for 16 images of 35 x 35, https://github.com/ROCm/MIOpen/issues/2024; a
convolution of 32 volumes was zero, https://github.com/chainer/chainer/issues/8100. Beside the CPU's own answers.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.near import demand_near

cases = Cases("conditions")
Form = Callable[..., Any]
# A share of the largest number: float32 summed in whatever order, and none of the faults that are meant.
_SHARE = 1e-2


def _convolved(function: Any, **options: Any) -> Form:
    return lambda x, w: derived(lambda a, b: function(a, b, **options), x, w)


def _normed(x: torch.Tensor, w: torch.Tensor) -> Any:
    return derived(lambda a, b: F.batch_norm(a, None, None, b, b, training=True), x, w)


def _normed_wider(x: torch.Tensor, w: torch.Tensor) -> Any:
    """Norm float16 by weights and statistics in float32, as mixed training does."""
    return derived(lambda a, b: F.batch_norm(a.half(), b.detach() * 0, b.detach() + 1, b, b, training=True), x, w)


def _alone(form: Form) -> Form:
    return lambda x: derived(form, x)


# Name: (what is asked, sides of each operand).
_LAYERS: dict[str, tuple[Form, tuple[tuple[int, ...], ...]]] = {
    **{
        f"batch_norm-{'-'.join(map(str, sides))}": (_normed, (sides, sides[1:2]))
        for sides in (
            (16, 24, 35, 35),
            (32, 16, 28, 28),
            (8, 64, 14, 14),
            (64, 32, 7, 7),
            (16, 3, 73, 73),
            (1, 48, 56, 56),
            (128, 100),
            (4, 8, 8, 16, 16),
        )
    },
    "batch_norm-mixed-images": (_normed_wider, ((16, 24, 35, 35), (24,))),
    "batch_norm-mixed-volumes": (_normed_wider, ((2, 8, 41, 40, 41), (8,))),
    "conv2d-stem": (_convolved(F.conv2d, stride=2, padding=3), ((16, 3, 64, 64), (16, 3, 7, 7))),
    "conv2d-small": (_convolved(F.conv2d, padding=1), ((32, 3, 32, 32), (32, 3, 3, 3))),
    "conv2d-deep": (_convolved(F.conv2d, padding=1), ((8, 64, 14, 14), (64, 64, 3, 3))),
    "conv2d-deeper": (_convolved(F.conv2d, padding=1), ((2, 256, 7, 7), (256, 256, 3, 3))),
    "conv2d-one": (_convolved(F.conv2d), ((8, 64, 28, 28), (128, 64, 1, 1))),
    "conv2d-depthwise": (_convolved(F.conv2d, padding=1, groups=32), ((16, 32, 35, 35), (32, 1, 3, 3))),
    "conv2d-wide": (_convolved(F.conv2d, padding=3, groups=48), ((4, 48, 28, 28), (48, 1, 7, 7))),
    "conv2d-digits": (_convolved(F.conv2d), ((64, 1, 28, 28), (8, 1, 5, 5))),
    "conv2d-patches": (_convolved(F.conv2d, stride=16), ((8, 3, 64, 64), (96, 3, 16, 16))),
    "conv2d-gaps": (_convolved(F.conv2d, padding=4, dilation=4), ((4, 32, 33, 33), (32, 32, 3, 3))),
    "conv1d-sound": (_convolved(F.conv1d, stride=5), ((16, 1, 1600), (32, 1, 10))),
    "conv1d-mel": (_convolved(F.conv1d, stride=2, padding=1), ((8, 80, 300), (64, 80, 3))),
    "conv1d-text": (_convolved(F.conv1d, padding=2), ((32, 50, 40), (100, 50, 5))),
    "conv3d-batch": (_convolved(F.conv3d, padding=1), ((32, 3, 8, 8, 8), (4, 3, 3, 3, 3))),
    "conv3d-video": (_convolved(F.conv3d, padding=1), ((2, 16, 8, 14, 14), (16, 16, 3, 3, 3))),
    "conv3d-scan": (_convolved(F.conv3d, stride=2, padding=1), ((16, 1, 16, 16, 16), (8, 1, 3, 3, 3))),
    "transposed-up": (_convolved(F.conv_transpose2d, stride=2, padding=1), ((16, 64, 8, 8), (64, 32, 4, 4))),
    "transposed-last": (_convolved(F.conv_transpose2d, stride=2), ((8, 32, 28, 28), (32, 3, 2, 2))),
    "transposed-scan": (_convolved(F.conv_transpose3d, stride=2), ((8, 8, 6, 6, 6), (8, 4, 2, 2, 2))),
    "max_pool": (_alone(lambda x: F.max_pool2d(x, 3, 2, 1)), ((16, 32, 35, 35),)),
    "max_pool-batch": (_alone(lambda x: F.max_pool2d(x, 2)), ((64, 8, 24, 24),)),
    "avg_pool": (_alone(lambda x: F.avg_pool2d(x, 3, 1, 1)), ((8, 48, 28, 28),)),
    "global_pool": (_alone(lambda x: F.adaptive_avg_pool2d(x, 1)), ((32, 256, 7, 7),)),
    "pool3d": (_alone(lambda x: F.max_pool3d(x, 2)), ((16, 4, 16, 16, 16),)),
    "nearest": (_alone(lambda x: F.interpolate(x, scale_factor=2.0)), ((8, 32, 28, 28),)),
    "bilinear": (_alone(lambda x: F.interpolate(x, (73, 73), mode="bilinear")), ((16, 3, 35, 35),)),
    "group_norm": (_alone(lambda x: F.group_norm(x, 32)), ((8, 64, 28, 28),)),
    "instance_norm": (_alone(F.instance_norm), ((16, 16, 35, 35),)),
    "layer_norm": (_alone(lambda x: F.layer_norm(x, (192,))), ((16, 197, 192),)),
    "scores": (_alone(lambda x: (x / 8).softmax(-1)), ((8, 3, 197, 197),)),
    "attention": (_alone(lambda x: F.scaled_dot_product_attention(x, x / 2, x)), ((8, 3, 197, 64),)),
    "attention-causal": (
        _alone(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
        ((4, 12, 128, 64),),
    ),
    "linear": (_convolved(F.linear), ((16, 197, 192), (384, 192))),
    "classes": (_alone(lambda x: F.cross_entropy(x, torch.arange(256, device=x.device) * 19 % 5000)), ((256, 5000),)),
    "pixels": (
        _alone(lambda x: F.cross_entropy(x, x.detach()[:, :3].argmax(1))),
        ((16, 21, 33, 33),),
    ),
    "words": (
        _alone(lambda w: F.embedding(torch.arange(1024, device=w.device).view(8, 128) * 7 % 5000, w)),
        ((5000, 64),),
    ),
    "shuffle": (_alone(lambda x: F.pixel_shuffle(x, 2)), ((16, 64, 14, 14),)),
    "folded": (_alone(lambda x: F.unfold(x, 3, padding=1)), ((8, 16, 28, 28),)),
}


def _beside(form: Form, sides: tuple[tuple[int, ...], ...], name: str, bench: Any) -> Any:
    d = bench.draw(f"layers-{name}")
    operands = [d.distinct(*one) / torch.Size(one).numel() + 0.01 for one in sides]
    return demand_near(form, operands, bench, _SHARE)


for _name, (_form, _sides) in _LAYERS.items():
    cases.add(
        f"condition-limit-layers-{_name}",
        lambda bench, form=_form, sides=_sides, name=_name: _beside(form, sides, name, bench),
        check=True,
        may_be_missing=True,
    )

# Few pixels of many channels that lie beside each other: float16 was refused from 257 on,
# https://github.com/pytorch/pytorch/issues/34083
_LAST: dict[str, Form] = {
    "max_pool": lambda x: F.max_pool2d(x, 2),
    "avg_pool": lambda x: F.avg_pool2d(x, 2),
    "adaptive_max": lambda x: F.adaptive_max_pool2d(x, (2, 1)),
    "adaptive_avg": lambda x: F.adaptive_avg_pool2d(x, (1, 3)),
    "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
    "bilinear": lambda x: F.interpolate(x, (7, 6), mode="bilinear"),
    "bicubic": lambda x: F.interpolate(x, (3, 6), mode="bicubic", align_corners=True),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=0.5),
    "group_norm": lambda x: F.group_norm(x, 1, eps=0.5),
    "depthwise": lambda x: F.conv2d(x, x.detach()[0, :, None, :3, :3] / 2, padding=1, groups=x.shape[1]),
    "one": lambda x: F.conv2d(x, x.detach()[:, :, :1, :1] / 4),
    "padded": lambda x: F.pad(x, (1, 0, 2, 1), mode="replicate"),
    "shares": lambda x: x.softmax(1) * x.shape[1],
    "summed": lambda x: x.sum(1) / x.shape[1],
    "activated": lambda x: F.gelu(x) + F.silu(x),
    "joined": lambda x: torch.cat([x, x.flip(1)], 1),
    "shuffled": lambda x: F.channel_shuffle(x, x.shape[1]),
    "sampled": lambda x: F.grid_sample(x, x.detach()[:, :2].permute(0, 2, 3, 1) * 0.6, align_corners=True),
}
for _dtype in (torch.float32, *HALVES):
    for _channels in (129, 257, 1030):
        add_table(
            cases,
            f"layers-last-{_channels}-{str(_dtype)[6:]}",
            {
                name: lambda x, form=form: derived(form, x.contiguous(memory_format=torch.channels_last))
                for name, form in _LAST.items()
            },
            lambda d, dtype=_dtype, channels=_channels: ((d.distinct(2, channels, 5, 4) / (20 * channels)).to(dtype),),
            terms=_channels if _dtype == torch.float32 else 16,
            factor=16.0,
            deterministic=False,
        )
