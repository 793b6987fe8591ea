"""Layouts of normalisation, convolution, pooling, interpolation, padding and attention."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, Arg, Op

cases = Cases("layouts")


def _layer(name: str, act: Any, *shapes: Any, **fields: Any) -> None:
    args = tuple(shape if isinstance(shape, Arg) else Arg(shape) for shape in shapes)
    add_layout_cases(cases, Op(name=name, args=args, forms=(act,), **{"terms": 256, "expanded": False, **fields}))


# The CPU's own backward in evaluation misreads strided statistics (2.13.0): nobody has such, so they stay plain.
_PER_CHANNEL, _VAR = Arg("c", fixed=True), Arg("c", "positive", fixed=True)
_layer("layer_norm", lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b), "b r n", "n", "n", factor=16, expanded=True)
_layer(
    "layer_norm_plain",
    lambda x: [F.layer_norm(x, x.shape[-1:]), F.layer_norm(x, x.shape[-2:], eps=1e-3)],
    "b r n",
    factor=16,
)
_layer(
    "layer_norm_long",
    lambda x, w, b: F.layer_norm(x, (1030,), w, b),
    "m 1030",
    "1030",
    "1030",
    factor=16,
    dtypes=FLOATS[:1],
    terms=1030,
)
_layer("group_norm", lambda x, w, b: [F.group_norm(x, 2, w, b), F.group_norm(x, 4, w)], "b 4 h w", "4", "4", factor=16)
_layer("group_norm_line", lambda x, w, b: F.group_norm(x, 2, w, b), "b 4 s", "4", "4", factor=16)
_layer("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), "b c h w", "c", "c", factor=16)
_layer(
    "batch_norm_train",
    lambda x, w, b, m, v: [F.batch_norm(x, m, v, w, b, training=True), m, v],
    "b c h w",
    _PER_CHANNEL,
    _PER_CHANNEL,
    _PER_CHANNEL,
    _VAR,
    grads=(0, 1, 2),
    factor=16,
)
_layer(
    "batch_norm_eval",
    lambda x, w, b, m, v: F.batch_norm(x, m, v, w, b),
    "b c h w",
    _PER_CHANNEL,
    _PER_CHANNEL,
    _PER_CHANNEL,
    _VAR,
    grads=(0, 1, 2),
    factor=16,
)
_layer(
    "batch_norm_line",
    lambda x, m, v: F.batch_norm(x, m, v, training=True),
    "s c",
    _PER_CHANNEL,
    _VAR,
    grads=(0,),
    factor=16,
)
_layer(
    "batch_norm_volume",
    lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "b c 2 h w",
    _PER_CHANNEL,
    _PER_CHANNEL,
    factor=16,
)
_layer("local_response_norm", lambda x: F.local_response_norm(x, 2), "b c h w", factor=64)
_layer("rms_norm", lambda x, w: F.rms_norm(x, x.shape[-1:], w, eps=0.1), "b r n", "n", factor=16, since="2.4")

_layer("conv1d", lambda x, w, b: F.conv1d(x, w, b, padding=1), "b c s", "m c 3", "m")
_layer("conv2d", lambda x, w, b: F.conv2d(x, w, b), "b c h w", "m c 3 3", "m")
_layer("conv2d_strided", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), "b c h w", "m c 3 3", "m")
_layer(
    "conv2d_dilated",
    lambda x, w: [F.conv2d(x, w, dilation=2, padding=2), F.conv2d(x, w, padding="same")],
    "b c h w",
    "m c 3 3",
)
_layer("conv2d_grouped", lambda x, w, b: F.conv2d(x, w, b, groups=2), "b 4 h w", "6 2 3 3", "6")
_layer("conv2d_depthwise", lambda x, w: F.conv2d(x, w, groups=4, padding=1), "b 4 h w", "4 1 3 3")
_layer("conv2d_pointwise", lambda x, w: F.conv2d(x, w), "b c h w", "m c 1 1")
_layer("conv2d_unbatched", lambda x, w: F.conv2d(x, w), "c h w", "m c 3 3", dtypes=FLOATS[:1])
_layer("conv3d", lambda x, w, b: F.conv3d(x, w, b, padding=1), "b c 3 h w", "m c 2 3 3", "m", dtypes=FLOATS[:1])
_layer("conv_transpose1d", lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2), "b c s", "c m 3", "m")
_layer(
    "conv_transpose2d",
    lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
    "b c h w",
    "c m 3 3",
    "m",
)
_layer(
    "conv_transpose2d_grouped", lambda x, w: F.conv_transpose2d(x, w, groups=2), "b 4 h w", "4 2 3 3", dtypes=FLOATS[:1]
)
_layer("conv_transpose3d", lambda x, w: F.conv_transpose3d(x, w), "b c 2 h w", "c m 2 3 3", dtypes=FLOATS[:1])
_layer("unfold_image", lambda x: F.unfold(x, (2, 3), padding=1), "b c h w")
_layer("fold_image", lambda x: F.fold(x, (4, 5), (2, 2)), "b 8 12")

_PLAIN = Arg("b c h w", "distinct")
_layer(
    "max_pool2d",
    lambda x: [F.max_pool2d(x, 2), F.max_pool2d(x, 3, stride=1, padding=1), F.max_pool2d(x, 2, ceil_mode=True)],
    _PLAIN,
)
_layer("max_pool2d_dilated", lambda x: F.max_pool2d(x, 2, dilation=2, stride=1), _PLAIN, dtypes=FLOATS[:1])
_layer("max_pool2d_places", lambda x: F.max_pool2d(x, 2, return_indices=True), _PLAIN)
_layer("max_pool1d", lambda x: F.max_pool1d(x, 2), Arg("b c s", "distinct"))
_layer("max_pool3d", lambda x: F.max_pool3d(x, 2), Arg("b c 4 h w", "distinct"), dtypes=FLOATS[:1])
_layer("avg_pool2d", lambda x: [F.avg_pool2d(x, 2), F.avg_pool2d(x, (2, 1))], "b c h w")
# Windows that overlap: CUDA's backward for a channels_last input and a dense gradient is wrong (off by 0.77 where its
# own answer for a contiguous input is right: torch 2.11.0 on an H100, found by this suite).
_layer(
    "avg_pool2d_overlapping",
    lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False),
    "b c h w",
    devices=("cpu", "mps"),
)
_layer("avg_pool1d", lambda x: F.avg_pool1d(x, 3, stride=2, padding=1), "b c s", devices=("cpu", "mps"))
_layer(
    "avg_pool3d",
    lambda x: [F.avg_pool3d(x, 2), F.avg_pool3d(x, 3, stride=1, padding=1)],
    "b c 4 h w",
    dtypes=FLOATS[:1],
)
_layer(
    "adaptive_avg_pool",
    lambda x: [F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool2d(x, (2, 1)), x.mean((2, 3))],
    "b c 6 4",
)
_layer("adaptive_avg_pool1d", lambda x: F.adaptive_avg_pool1d(x, 3), "b c 6", dtypes=FLOATS[:1])
_layer("adaptive_avg_pool3d", lambda x: F.adaptive_avg_pool3d(x, 2), "b c 4 4 4", dtypes=FLOATS[:1])
_layer(
    "adaptive_max_pool",
    lambda x: [F.adaptive_max_pool2d(x, 2), F.adaptive_max_pool1d(x[0], 2)],
    Arg("b c 6 4", "distinct"),
)
_layer(
    "lp_pool",
    lambda x: [F.lp_pool2d(x, 2, 2), F.lp_pool1d(x[0], 2, 2)],
    Arg("b c h w", "inner"),
    dtypes=FLOATS[:1],
    factor=16,
)


def _unpooled(x: Any) -> Any:
    pooled, places = F.max_pool2d(x, 2, return_indices=True)
    return F.max_unpool2d(pooled, places, 2)


_layer("max_unpool2d", _unpooled, Arg("b c 6 4", "distinct"), dtypes=FLOATS[:1])

for _mode in ("nearest", "bilinear", "bicubic", "area", "nearest-exact"):
    _layer(
        f"interpolate_{_mode.replace('-', '_')}",
        lambda x, mode=_mode: [F.interpolate(x, scale_factor=2, mode=mode), F.interpolate(x, size=(4, 3), mode=mode)],
        "b c h w",
        dtypes=FLOATS[:1],
        factor=64,
    )
_layer(
    "interpolate_corners",
    lambda x: [F.interpolate(x, (9, 7), mode=mode, align_corners=True) for mode in ("bilinear", "bicubic")],
    "b c h w",
    dtypes=FLOATS[:1],
    factor=64,
)
_layer(
    "interpolate_line",
    lambda x: [F.interpolate(x, 11, mode=mode) for mode in ("nearest", "linear")],
    "b c s",
    dtypes=FLOATS[:1],
    factor=64,
)
_layer(
    "interpolate_volume",
    lambda x: [F.interpolate(x, (4, 5, 6), mode=mode) for mode in ("nearest", "trilinear")],
    "b c 3 h w",
    dtypes=FLOATS[:1],
    factor=64,
)

for _mode in ("constant", "reflect", "replicate", "circular"):
    _layer(
        f"pad_{_mode}",
        lambda x, mode=_mode: [F.pad(x, (1, 2, 2, 1), mode=mode), F.pad(x[0], (2, 1), mode=mode)],
        "b c h w",
    )
_layer(
    "pad_negative",
    lambda x: [F.pad(x, (-1, 2)), F.pad(x, (1, -2, 0, 3), value=4.0), torch.nn.functional.pad(x, (0, 0, 0, 0, 1, 1))],
    "b c h w",
)
_layer("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), "b 8 h w")
_layer("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), "b c 6 4")
# CUDA cuts channel_shuffle by view: it takes contiguous images only, forward and backward.
_layer("channel_shuffle", lambda x: torch.channel_shuffle(x.contiguous(), 2), "b 4 h w", grads=())
_layer(
    "grid_sample",
    lambda x, g: [
        F.grid_sample(x, g, align_corners=False),
        F.grid_sample(x, g, mode="nearest", padding_mode="border", align_corners=True),
    ],
    "b c h w",
    Arg("b r n 2", "unit"),
    dtypes=FLOATS[:1],
    factor=64,
)
_layer("affine_grid", lambda t: F.affine_grid(t, (2, 3, 4, 5), align_corners=False), "2 2 3", dtypes=FLOATS[:1])
_layer(
    "glu",
    lambda x: [F.glu(x), F.glu(x, 1), F.dropout(x, 0.0), F.alpha_dropout(x, 0.5, training=False)],
    "b 4 6",
    factor=32,
)

_MASK = Arg("r s", lambda d, dtype, shape: (d.uniform(0, 1, *shape) > 0.3) | (torch.arange(shape[-1]) == 0))


def _attention(q: Any, k: Any, v: Any, mask: Any) -> Any:
    weights = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -1e4)
    return [
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q, k, v, attn_mask=mask),
        F.scaled_dot_product_attention(q, k, v, attn_mask=weights),
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
    ]


_layer(
    "attention",
    _attention,
    "b c r 8",
    "b c s 8",
    "b c s 8",
    _MASK,
    since="2.0",
    factor=16,
    grads=(0, 1, 2),
    expanded=True,
)
