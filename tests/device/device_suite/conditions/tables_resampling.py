"""Resampling, grids, folding: what moves pixels."""

from __future__ import annotations

import torch.nn.functional as F

from .spec import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
FULL = ("call", "out", "grad")
PLAIN = ("plain",)
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}

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
