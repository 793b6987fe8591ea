"""Convolution, pooling, normalisation, resampling, losses: what a layer calls."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
FULL = ("call", "out", "grad")
PLAIN = ("plain",)
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

# Convolution: sizes are (batch, channels in, channels out, spatial...).
for rank, shapes in (
    (
        1,
        {
            "main": (2, 4, 6, 11),
            "one": (1, 2, 2, 5),
            "many": (3, 6, 4, 40),
            "long": (1, 2, 2, 1031),
            "tiles": (2, 32, 16, 32),
            "empty": (0, 4, 6, 11),
        },
    ),
    (
        2,
        {
            "main": (2, 4, 6, 7, 9),
            "one": (1, 2, 2, 5, 5),
            "wide": (1, 2, 4, 3, 33),
            "tiles": (1, 16, 32, 8, 8),
            "empty": (0, 4, 6, 7, 9),
        },
    ),
    (3, {"main": (2, 4, 2, 4, 5, 6), "one": (1, 2, 2, 4, 4, 4), "tiles": (1, 4, 4, 4, 8, 8)}),
):
    for turned in (False, True):
        name = f"conv_transpose{rank}d" if turned else f"conv{rank}d"
        t.add(
            f"{name}",
            lambda c: c.draw("unit", (c.shape[0], c.shape[1], *c.shape[3:])),
            lambda c, turned=turned, rank=rank: c.draw(
                "unit",
                (c.shape[1], c.shape[2] // c.args.get("groups", 1), *(3, 2, 3)[:rank])
                if turned
                else (c.shape[2], c.shape[1] // c.args.get("groups", 1), *(3, 2, 3)[:rank]),
            ),
            lambda c: c.draw("unit", (c.shape[2],)) if c.args["_bias"] else None,
            act=lambda x, w, b, flag, name=name, **k: getattr(F, name)(x, w, b, **k),
            _bias=(True, False),
            stride=(ABSENT, 2, (1, 2, 1)[:rank]),
            padding=(ABSENT, 1, (0, 1, 2)[:rank]),
            dilation=(ABSENT, 2),
            groups=(ABSENT, 2),
            **({"output_padding": (ABSENT,)} if turned else {}),
            sizes=shapes,
            terms=64,
            factor=32.0,
            laid=(0, 1),
            **NEURAL,
        )
for name in ("conv1d", "conv2d"):
    t.add(
        f"{name}_same",
        lambda c: c.draw("unit", (c.shape[0], c.shape[1], *c.shape[3:])),
        lambda c: c.draw("unit", (c.shape[2], c.shape[1], *(3, 2)[: len(c.shape) - 3])),
        act=lambda x, w, name=name, **k: getattr(F, name)(x, w, **k),
        padding=("same", "valid"),
        dilation=(1, 2),
        sizes={
            "main": (2, 4, 6, 11) if name == "conv1d" else (2, 4, 6, 7, 9),
            "unbatched": (2, 3, 4, 40) if name == "conv1d" else (1, 3, 4, 12, 9),
        },
        terms=64,
        factor=32.0,
        **NEURAL,
    )
t.add(
    "conv_transpose2d_more",
    lambda c: c.draw("unit", (2, 4, 5, 6)),
    lambda c: c.draw("unit", (4, 3, 3, 3)),
    act=lambda x, w, **k: F.conv_transpose2d(x, w, **k),
    stride=(2, 3),
    padding=(0, 1),
    output_padding=(0, 1, (1, 0)),
    dilation=(1, 2),
    sizes={"main": (5,)},
    terms=64,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_unbatched",
    lambda c: c.draw("unit", (4, 9, 8)),
    lambda c: c.draw("unit", (6, 4, 3, 3)),
    act=lambda x, w, **k: F.conv2d(x, w, **k),
    stride=(1, 2),
    padding=(0, 1),
    sizes={"main": (5,)},
    terms=64,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_depthwise",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (c.shape[1] * c.args["_m"], 1, 3, 3)),
    act=lambda x, w, m, **k: F.conv2d(x, w, groups=x.shape[1], **k),
    _m=(1, 2),
    stride=(1, 2),
    padding=(0, 1),
    dilation=(1, 2),
    sizes={"main": (2, 4, 7, 9), "odd": (1, 3, 17, 5), "tiles": (1, 32, 8, 8)},
    terms=16,
    factor=32.0,
    **NEURAL,
)
t.add(
    "conv_tbc",
    lambda c: c.draw("unit", c.shape),
    lambda c: c.draw("unit", (3, c.shape[2], 4)),
    lambda c: c.draw("unit", (4,)),
    paths=("torch.conv_tbc",),
    _pad=(0, 1),
    sizes={"main": (7, 2, 3)},
    terms=16,
    factor=32.0,
    **NEURAL,
)

# Pooling.
LINES = {"main": (2, 3, 12), "flat": (3, 11), "long": (1, 2, 1031), "tiles": (2, 16, 32)}
IMAGES = {
    "main": (2, 3, 8, 9),
    "flat": (3, 7, 8),
    "odd": (1, 2, 17, 5),
    "tiles": (2, 16, 16, 32),
    "empty": (0, 3, 8, 9),
    "long": (1, 1, 4, 1031),
}
VOLUMES = {"main": (2, 3, 5, 6, 7), "flat": (3, 6, 5, 8), "tiles": (1, 4, 4, 8, 8)}
for rank, shapes in ((1, LINES), (2, IMAGES), (3, VOLUMES)):
    t.add(
        f"max_pool{rank}d",
        "distinct",
        dtypes="fi",
        act=lambda x, n=f"max_pool{rank}d", **k: getattr(F, n)(x, **k),
        kernel_size=(2, 3, (3, 2, 2)[:rank]),
        stride=(ABSENT, 1, 2),
        padding=(ABSENT, 1),
        dilation=(ABSENT, 2),
        ceil_mode=(ABSENT, True),
        return_indices=(ABSENT, True),
        forms=BOTH,
        values=("plain", "inf"),
        sizes=shapes,
        terms=8,
    )
    t.add(
        f"avg_pool{rank}d",
        act=lambda x, n=f"avg_pool{rank}d", **k: getattr(F, n)(x, **k),
        kernel_size=(2, 3, (3, 2, 2)[:rank]),
        stride=(ABSENT, 1, 2),
        padding=(ABSENT, 1),
        ceil_mode=(ABSENT, True),
        count_include_pad=(ABSENT, False),
        **({"divisor_override": (ABSENT, 5)} if rank > 1 else {}),
        sizes=shapes,
        terms=27,
        **NEURAL,
    )
    exact = {
        name: (*shape[: len(shape) - rank], *(12, 8, 4)[:rank])
        for name, shape in shapes.items()
        if name in ("main", "flat")
    }
    t.add(
        f"adaptive_avg_pool{rank}d",
        act=lambda x, o, n=f"adaptive_avg_pool{rank}d": getattr(F, n)(x, o),
        _o=(1, 2, (4, 2, 1)[:rank], 3 if rank == 1 else (2, 4, 2)[:rank]),
        sizes={**exact, "odd": shapes["main"], "tiles": shapes["tiles"]},
        terms=64,
        **NEURAL,
    )
    t.add(
        f"adaptive_max_pool{rank}d",
        "distinct",
        act=lambda x, o, i, n=f"adaptive_max_pool{rank}d": getattr(F, n)(x, o, i),
        _o=(1, 2, (4, 2, 1)[:rank]),
        _i=(False, True),
        sizes={**exact, "odd": shapes["main"]},
        terms=8,
        **NEURAL,
    )
    t.add(
        f"lp_pool{rank}d",
        "positive",
        act=lambda x, p, k, s, c, n=f"lp_pool{rank}d": getattr(F, n)(x, p, k, s, c),
        _p=(2, 1, 3),
        _k=(2, 3),
        _s=(None, 1),
        _c=(False, True),
        sizes={"main": shapes["main"]},
        terms=64,
        factor=64.0,
        **NEURAL,
    )
    t.add(
        f"max_unpool{rank}d",
        "distinct",
        act=lambda x, k, n=rank: getattr(F, f"max_unpool{n}d")(
            *getattr(F, f"max_pool{n}d")(x, k, return_indices=True), k
        ),
        _k=(2, 3),
        sizes={"main": (2, 3, *(6,) * rank), "flat": (3, *(12,) * rank)},
        terms=8,
        **NEURAL,
    )
t.add(
    "max_pool2d_with_indices",
    "distinct",
    kernel_size=(2, 3),
    stride=(ABSENT, 1),
    padding=(ABSENT, 1),
    ceil_mode=(ABSENT, True),
    paths=("aten.max_pool2d_with_indices",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes=IMAGES,
)
t.add(
    "max_pool3d_with_indices",
    "distinct",
    kernel_size=(2, 3),
    stride=(ABSENT, 1),
    padding=(ABSENT, 1),
    ceil_mode=(ABSENT, True),
    paths=("aten.max_pool3d_with_indices",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes=VOLUMES,
)
for name, shapes in (("avg_pool2d", IMAGES), ("avg_pool3d", VOLUMES)):
    t.add(
        f"{name}_out",
        kernel_size=(2, 3),
        stride=(ABSENT, 1),
        padding=(ABSENT, 1),
        count_include_pad=(ABSENT, False),
        divisor_override=(ABSENT, 5),
        paths=(f"aten.{name}",),
        forms=("out",),
        dtypes="f",
        values=PLAIN,
        sizes=shapes,
        terms=27,
    )
t.add(
    "adaptive_avg_pool2d_out",
    _o=((1, 1), (4, 2)),
    paths=("aten.adaptive_avg_pool2d",),
    forms=("out",),
    dtypes="f",
    values=PLAIN,
    sizes={"main": (2, 3, 8, 6), "flat": (3, 12, 8)},
    terms=64,
)
t.add(
    "adaptive_max_pool2d_out",
    "distinct",
    _o=((1, 1), (4, 2)),
    paths=("aten.adaptive_max_pool2d",),
    forms=("call", "out"),
    dtypes="f",
    values=PLAIN,
    sizes={"main": (2, 3, 8, 6), "flat": (3, 12, 8)},
)

# Resampling.
SCALES = ((5, 7), (16, 18), (3, 3), (1, 1))
# No border of a nearest pixel lies where float32 cannot hold it: odd, and without a divisor of the sizes above.
AWAY = (11, 13, 17)
for mode, rank in (
    ("nearest", 1),
    ("nearest", 2),
    ("nearest", 3),
    ("nearest-exact", 1),
    ("nearest-exact", 2),
    ("nearest-exact", 3),
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
    ("area", 2),
    ("area", 1),
):
    nearest = "nearest" in mode
    long = {"long": (1, 1, *(2, 2, 301)[3 - rank :])} if rank < 3 else {}
    shape = (
        {"main": (2, 3, *AWAY[:rank]), "other": (1, 4, *reversed(AWAY[:rank])), **long}
        if nearest
        else {"main": (2, 3, *(8, 9)[:rank]), "other": (1, 4, *(5, 6)[:rank]), **long}
        if rank < 3
        else {"main": (2, 2, 4, 5, 6), "other": (1, 3, 3, 4, 5)}
    )
    more = {} if "nearest" in mode or mode == "area" else {"align_corners": (ABSENT, True)}
    t.add(
        f"interpolate_{mode.replace('-', '_')}{rank}d",
        act=lambda x, mode=mode, **k: F.interpolate(x, mode=mode, **k),
        size=tuple(one[:rank] if rank < 3 else (*one, 4) for one in SCALES),
        **more,
        dtypes="f",
        sizes=shape,
        terms=16,
        factor=64.0,
        values=PLAIN,
        forms=BOTH,
    )
    if mode != "area":
        t.add(
            f"interpolate_{mode.replace('-', '_')}{rank}d_scaled",
            act=lambda x, mode=mode, **k: F.interpolate(x, mode=mode, **k),
            scale_factor=(2, 0.5, 1.7 if nearest else 1.5, 0.4) if mode != "bicubic" else (2, 0.5),
            **more,
            recompute_scale_factor=(ABSENT, True),
            dtypes="s",
            sizes={"main": (2, 3, *(4, 5, 4)[:rank]) if nearest else shape["main"]},
            terms=16,
            factor=128.0,
            values=PLAIN,
            forms=BOTH,
        )
for mode in ("bilinear", "bicubic"):
    t.add(
        f"interpolate_{mode}_antialias",
        act=lambda x, mode=mode, **k: F.interpolate(x, mode=mode, antialias=True, **k),
        size=((5, 7), (3, 2), (16, 18)),
        align_corners=(ABSENT, True),
        sizes={"main": (2, 3, 8, 9), "other": (1, 4, 12, 6)},
        terms=16,
        factor=64.0,
        **{**NEURAL, "dtypes": "s"},
    )
UP = {"dtypes": "s", "values": PLAIN, "forms": ("call", "out", "grad"), "terms": 16, "factor": 64.0}
for name, shape, size in (
    ("upsample_nearest1d", (2, 3, 11), (5,)),
    ("upsample_nearest2d", (2, 3, 11, 13), (5, 18)),
    ("upsample_nearest3d", (1, 2, 11, 13, 17), (3, 5, 7)),
    ("_upsample_nearest_exact1d", (2, 3, 11), (5,)),
    ("_upsample_nearest_exact2d", (2, 3, 11, 13), (5, 18)),
    ("_upsample_nearest_exact3d", (1, 2, 11, 13, 17), (3, 5, 7)),
):
    t.add(name, _size=(size, tuple(2 * one for one in shape[2:])), paths=(f"aten.{name}",), sizes={"main": shape}, **UP)
for name, shape, size in (
    ("upsample_linear1d", (2, 3, 8), (5,)),
    ("upsample_bilinear2d", (2, 3, 8, 9), (5, 18)),
    ("upsample_bicubic2d", (2, 3, 8, 9), (5, 18)),
    ("upsample_trilinear3d", (1, 2, 4, 5, 6), (3, 5, 7)),
    ("_upsample_bilinear2d_aa", (2, 3, 8, 9), (5, 18)),
    ("_upsample_bicubic2d_aa", (2, 3, 8, 9), (5, 18)),
):
    t.add(
        name,
        _size=(size, tuple(2 * one for one in shape[2:])),
        _align=(False, True),
        paths=(f"aten.{name}",),
        sizes={"main": shape},
        **UP,
    )
GRID = ("bilinear", "nearest", "bicubic")
t.add(
    "grid_sample",
    lambda c: c.draw("any", c.shape),
    lambda c: c.draw("unit", (c.shape[0], 5, 4, 2)) * 1.3 + 0.013,
    act=lambda x, g, **k: F.grid_sample(x, g, **k),
    mode=GRID,
    padding_mode=("zeros", "border", "reflection"),
    align_corners=(False, True),
    dtypes="s",
    sizes={"main": (2, 3, 6, 7), "one": (1, 1, 3, 3), "many": (3, 8, 9, 4)},
    terms=16,
    factor=256.0,
    values=PLAIN,
    forms=BOTH,
)
t.add(
    "grid_sample3d",
    lambda c: c.draw("any", c.shape),
    lambda c: c.draw("unit", (c.shape[0], 3, 4, 2, 3)) * 1.3 + 0.013,
    act=lambda x, g, **k: F.grid_sample(x, g, **k),
    mode=GRID[:2],
    padding_mode=("zeros", "border", "reflection"),
    align_corners=(False, True),
    dtypes="s",
    sizes={"main": (2, 2, 4, 5, 3)},
    terms=16,
    factor=256.0,
    values=PLAIN,
    forms=BOTH,
)
t.add(
    "affine_grid",
    lambda c: c.draw("any", (2, 2, 3)),
    act=lambda x, size, **k: F.affine_grid(x, size, **k),
    _size=((2, 3, 5, 6), (2, 1, 1, 4)),
    align_corners=(False, True),
    sizes={"main": (1,)},
    terms=8,
    **{**NEURAL, "dtypes": "s"},
)
t.add(
    "pixel_shuffle",
    _r=(2,),
    dtypes="fi",
    forms=BOTH,
    values=PLAIN,
    sizes={"main": (2, 8, 3, 5), "flat": (4, 3, 5), "more": (1, 2, 8, 3, 4)},
)
t.add(
    "pixel_unshuffle", _r=(2,), dtypes="fi", forms=BOTH, values=PLAIN, sizes={"main": (2, 3, 6, 4), "flat": (3, 4, 8)}
)
t.each(
    "channel_shuffle",
    _groups=(2, 4),
    dtypes="f",
    forms=BOTH,
    values=PLAIN,
    layouts=("dense", "offset"),  # without a kernel of its own it takes a view: an error for others, by design
    sizes={"main": (2, 8, 3, 5), "line": (1, 4, 7)},
)
UNFOLD = {"dilation": (ABSENT, 2), "padding": (ABSENT, 1), "stride": (ABSENT, 2)}
t.add(
    "unfold_images",
    act=lambda x, k, **o: F.unfold(x, k, **o),
    _k=(2, (3, 2)),
    **UNFOLD,
    dtypes="fc",
    values=PLAIN,
    forms=BOTH,
    sizes={"main": (2, 3, 7, 8), "flat": (3, 7, 8)},
    terms=9,
)
t.add(
    "im2col",
    _k=((2, 2), (3, 2)),
    _dilation=((1, 1), (2, 1)),
    _padding=((0, 0), (1, 1)),
    _stride=((1, 1), (2, 1)),
    paths=("aten.im2col",),
    forms=FULL,
    dtypes="f",
    values=PLAIN,
    sizes={"main": (2, 3, 7, 8), "flat": (3, 7, 8)},
    terms=9,
)
t.add(
    "col2im",
    lambda c: c.draw("any", (2, 12, 42) if c.shape[0] else (12, 42)),
    _o=((7, 8),),
    _k=((2, 2),),
    _dilation=((1, 1),),
    _padding=((0, 0),),
    _stride=((1, 1),),
    paths=("aten.col2im",),
    forms=FULL,
    dtypes="f",
    values=PLAIN,
    sizes={"main": (1,), "flat": (0,)},
    terms=9,
)

# Normalisation.
ROWS = {
    "main": (5, 7),
    "three": (2, 3, 8),
    "long": (3, 1031),
    "high": (1031, 3),
    "tiles": (32, 64),
    "longer": (2, 4099),
    "four": (2, 3, 4, 6),
}
WEIGHTS = {"terms": 64, "factor": 64.0, "floor": 0.25}


def _affine(place):
    return lambda c: c.draw("any", (c.shape[place],)) if c.args["_affine"] else None


t.add(
    "layer_norm",
    "any",
    _affine(-1),
    _affine(-1),
    act=lambda x, w, b, flag, **k: F.layer_norm(x, x.shape[-1:], w, b, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes=ROWS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "layer_norm_two",
    "any",
    lambda c: c.draw("any", c.shape[-2:]),
    act=lambda x, w, **k: F.layer_norm(x, x.shape[-2:], w, **k),
    sizes={"three": (2, 3, 8), "four": (2, 3, 4, 6)},
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "rms_norm",
    "any",
    _affine(-1),
    act=lambda x, w, flag, **k: F.rms_norm(x, x.shape[-1:], w, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes=ROWS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
CHANNELS = {
    "image": (4, 6, 5, 7),
    "line": (4, 6, 9),
    "volume": (2, 6, 2, 3, 4),
    "rows": (9, 6),
    "big": (2, 6, 33, 32),
    "tiles": (4, 32, 4, 4),
}
t.add(
    "group_norm",
    "any",
    _affine(1),
    _affine(1),
    act=lambda x, w, b, flag, g, **k: F.group_norm(x, g, w, b, **k),
    _affine=(True, False),
    _groups=(1, 2),
    eps=(ABSENT, 0.1),
    sizes=CHANNELS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "instance_norm",
    "any",
    _affine(1),
    _affine(1),
    act=lambda x, w, b, flag, **k: F.instance_norm(x, None, None, w, b, **k),
    _affine=(True, False),
    eps=(ABSENT, 0.1),
    sizes={k: v for k, v in CHANNELS.items() if k != "rows"},
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "batch_norm",
    "any",
    lambda c: c.draw("unit", (c.shape[1],)),
    lambda c: c.draw("positive", (c.shape[1],)),
    _affine(1),
    _affine(1),
    act=lambda x, m, v, w, b, flag, training, **k: F.batch_norm(x, m.detach(), v.detach(), w, b, training, **k),
    _affine=(True, False),
    _training=(False, True),
    momentum=(ABSENT, 0.5),
    eps=(ABSENT, 0.1),
    sizes=CHANNELS,
    laid=(0,),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "batch_norm_stats",
    "any",
    lambda c: c.draw("unit", (c.shape[1],)),
    lambda c: c.draw("positive", (c.shape[1],)),
    act=lambda x, m, v, mom: (F.batch_norm(x, m, v, None, None, True, mom), m, v),
    _mom=(0.1, 0.7),
    dtypes="f",
    values=PLAIN,
    forms=("call",),
    sizes=CHANNELS,
    laid=(0,),
    **WEIGHTS,
)
t.add(
    "local_response_norm",
    size=(2, 3),
    alpha=(ABSENT, 0.1),
    beta=(ABSENT, 0.5),
    k=(ABSENT, 2.0),
    sizes={k: CHANNELS[k] for k in ("image", "line", "volume")},
    paths=("F.local_response_norm",),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "normalize",
    p=(ABSENT, 1, 3, float("inf")),
    dim=(ABSENT, 0, -1),
    sizes=ROWS,
    paths=("F.normalize",),
    **NEURAL,
    **WEIGHTS,
)
t.add(
    "weight_norm",
    "any",
    lambda c: c.draw("positive", (c.shape[0], 1)),
    act=lambda v, g: torch._weight_norm(v, g, 0),
    sizes={"main": (5, 7), "tiles": (32, 64)},
    **NEURAL,
    **WEIGHTS,
)
t.add("cosine_similarity", "any", "any", dim=(ABSENT, 0, -1), eps=(ABSENT, 0.1), sizes=ROWS, **NEURAL, **WEIGHTS)
t.add(
    "pairwise_distance",
    "any",
    "any",
    p=(ABSENT, 1, 3),
    keepdim=(ABSENT, True),
    sizes={"main": (5, 7), "long": (3, 1031)},
    **NEURAL,
    **WEIGHTS,
)

# Losses and embedding, each argument; hand-shaped ones are elsewhere.
REDUCED = ("mean", "sum", "none")
LOSS = {"terms": "all", "factor": 32.0, "floor": 0.25, "dtypes": "f", "values": PLAIN, "forms": BOTH}
SHAPES = ("small", "four", "none", "empty", "line", "long", "high")
for name, more in (
    ("mse_loss", {}),
    ("l1_loss", {}),
    ("smooth_l1_loss", {"beta": (ABSENT, 0.5)}),
    ("huber_loss", {"delta": (ABSENT, 0.5)}),
    ("soft_margin_loss", {}),
):
    t.add(
        name,
        "any",
        "whole" if name == "soft_margin_loss" else "any",
        reduction=REDUCED,
        **more,
        paths=(f"F.{name}",),
        sizes=SHAPES,
        **LOSS,
    )
    if name in ("soft_margin_loss", "l1_loss"):
        continue
    t.add(
        f"{name}_aten",
        "any",
        "any",
        reduction=(0, 1, 2),
        paths=(f"aten.{name}",),
        **{**LOSS, "forms": ("out",)},
        sizes=("small", "four", "none", "line"),
        **({"delta": (0.5, 1.0)} if more and name == "huber_loss" else {}),
    )
t.add("kl_div", "any", "inner", reduction=REDUCED, log_target=(ABSENT, True), paths=("F.kl_div",), sizes=SHAPES, **LOSS)
t.add(
    "binary_cross_entropy",
    "inner",
    "inner",
    lambda c: c.draw("positive", c.shape) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.binary_cross_entropy(x, y, None if w is None else w.detach(), **k),
    _w=(False, True),
    reduction=REDUCED,
    sizes=SHAPES,
    laid=(0, 1),
    **{**LOSS, "factor": 64.0},
)
t.add(
    "bce_with_logits",
    "any",
    "inner",
    lambda c: c.draw("positive", c.shape[-1:]),
    act=lambda x, y, w, how, **k: F.binary_cross_entropy_with_logits(
        x, y, pos_weight=w.detach() if how == "pos" else None, weight=w.detach() if how == "weight" else None, **k
    ),
    _how=("none", "pos", "weight"),
    reduction=REDUCED,
    sizes=("small", "four", "line", "long"),
    laid=(0, 1),
    **LOSS,
)
t.add(
    "nll_loss",
    "any",
    lambda c: c.indices(c.shape[1], (c.shape[0], *c.shape[2:])),
    lambda c: c.draw("positive", (c.shape[1],)) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.nll_loss(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    ignore_index=(ABSENT, 1),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5), "line": (2, 4, 9), "long": (3, 1031), "high": (1031, 3)},
    laid=(0,),
    **LOSS,
)
t.add(
    "cross_entropy",
    "any",
    lambda c: c.indices(c.shape[1], (c.shape[0], *c.shape[2:])),
    lambda c: c.draw("positive", (c.shape[1],)) if c.args["_w"] else None,
    act=lambda x, y, w, flag, **k: F.cross_entropy(x, y, w if w is None else w.detach(), **k),
    _w=(False, True),
    ignore_index=(ABSENT, 1),
    label_smoothing=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5), "line": (2, 4, 9), "long": (3, 1031), "high": (1031, 3)},
    laid=(0,),
    **LOSS,
)
t.add(
    "cross_entropy_soft",
    "any",
    "inner",
    act=lambda x, y, **k: F.cross_entropy(x, y, **k),
    label_smoothing=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes={"main": (7, 5), "image": (2, 4, 3, 5)},
    **LOSS,
)
t.add(
    "poisson_nll_loss",
    "unit",
    "positive",
    log_input=(ABSENT, False),
    full=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small",),
    **{**LOSS, "factor": 128.0},
    paths=("F.poisson_nll_loss",),
)
t.add(
    "gaussian_nll_loss",
    "any",
    "any",
    "positive",
    full=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.gaussian_nll_loss",),
    **LOSS,
)
t.add(
    "hinge_embedding_loss",
    "any",
    "whole",
    margin=(ABSENT, 0.5),
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.hinge_embedding_loss",),
    **{**LOSS, "forms": ("call",)},
)
t.add(
    "margin_ranking_loss",
    "any",
    "any",
    "whole",
    margin=(ABSENT, 0.5),
    reduction=REDUCED,
    sizes=("small", "line"),
    paths=("F.margin_ranking_loss",),
    **LOSS,
)
t.add(
    "triplet_margin_loss",
    "any",
    "any",
    "any",
    margin=(ABSENT, 0.5),
    p=(ABSENT, 1),
    swap=(ABSENT, True),
    reduction=REDUCED,
    sizes=("small", "high"),
    paths=("F.triplet_margin_loss",),
    **LOSS,
)
t.add(
    "cosine_embedding_loss",
    "any",
    "any",
    lambda c: c.indices(2, (c.shape[0],)) * 2 - 1,
    margin=(ABSENT, 0.2),
    reduction=REDUCED,
    sizes=("small", "high"),
    paths=("F.cosine_embedding_loss",),
    laid=(0, 1),
    **LOSS,
)
t.add(
    "multilabel_soft_margin_loss",
    "any",
    "inner",
    reduction=REDUCED,
    sizes=("small",),
    paths=("F.multilabel_soft_margin_loss",),
    **LOSS,
)
t.add(
    "ctc_loss",
    lambda c: torch.log_softmax(c.draw("any", c.shape).double(), -1).to(c.draw("any", (1,)).dtype),
    lambda c: c.indices(c.shape[2] - 1, (c.shape[1], 3)) + 1,
    act=lambda x, y, **k: F.ctc_loss(
        x, y, torch.full((x.shape[1],), x.shape[0]), torch.tensor([3, 1, 2][: x.shape[1]]), **k
    ),
    reduction=REDUCED,
    zero_infinity=(ABSENT, True),
    sizes={"main": (9, 3, 5), "one": (12, 1, 4)},
    laid=(0,),
    **{**LOSS, "dtypes": "s", "factor": 256.0},
)
t.add(
    "embedding",
    lambda c: c.indices(c.shape[0], (3, 4) if c.row.number % 2 else (5,)),
    "any",
    act=lambda i, w, **k: F.embedding(i, w, **k),
    padding_idx=(ABSENT, 1, -1),
    scale_grad_by_freq=(ABSENT, True),
    dtypes="fc",
    values=("plain", "wide"),
    forms=BOTH,
    sizes={"main": (7, 5), "long": (3, 1031), "high": (1031, 3), "tiles": (32, 64)},
    terms=12,
)
t.add(
    "embedding_bag",
    lambda c: c.indices(c.shape[0], (4, 3)),
    "any",
    act=lambda i, w, **k: F.embedding_bag(i, w, **k),
    mode=("sum", "mean", "max"),
    padding_idx=(ABSENT, 1),
    include_last_offset=(ABSENT,),
    dtypes="f",
    values=PLAIN,
    forms=BOTH,
    sizes={"main": (7, 5), "long": (3, 1031), "high": (1031, 3)},
    terms=12,
)
t.add(
    "embedding_bag_offsets",
    lambda c: c.indices(c.shape[0], (9,)),
    "any",
    lambda c: torch.tensor([0, 2, 2, 7]),
    act=lambda i, w, o, **k: F.embedding_bag(i, w, o, **k),
    mode=("sum", "mean", "max"),
    dtypes="f",
    values=PLAIN,
    forms=BOTH,
    sizes={"main": (7, 5), "high": (1031, 3)},
    laid=(1,),
    terms=12,
)
