"""Resampling by size, scale and grid; shuffles and folding."""

from __future__ import annotations

import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
PLAIN = ("plain",)
ODD = ("plain", "inf", "special")

# Sides of an answer: fewer, more, all alike, one, the same as before, and one side alone.
SCALES = ((5, 7), (16, 18), (3, 3), (1, 1), "same", "half", (1, 9), (33, 2))
# No border of a nearest pixel lies where float32 cannot hold it: odd, and without a divisor of the sizes above.
AWAY = (11, 13, 17)


def _sides(x, size):
    """The sides that a word names, from those of the input; one side alone is halved."""
    own = tuple(x.shape[2:])
    return own if size == "same" else (*own[:-1], max(own[-1] // 2, 1)) if size == "half" else size


for mode, rank in (
    *(("nearest", 1), ("nearest", 2), ("nearest", 3)),
    *(("nearest-exact", 1), ("nearest-exact", 2), ("nearest-exact", 3)),
    *(("linear", 1), ("bilinear", 2), ("bicubic", 2), ("trilinear", 3)),
    *(("area", 1), ("area", 2), ("area", 3)),
):
    nearest = "nearest" in mode
    main = AWAY[:rank] if nearest else (8, 9)[:rank] if rank < 3 else (4, 5, 6)
    shape = {
        "main": (2, 3, *main),
        "other": (1, 4, *reversed(main)),
        "single": (3, 1, *main),
        "many": (1, 33, *main[:-1], 3),
        "empty": (0, 3, *main),
        "point": (2, 5, *(1,) * rank),
        "row": (1, 2, *(1,) * (rank - 1), 17),
        "column": (1, 2, 17, *(1,) * (rank - 1)),
        **({"long": (1, 1, *(2, 2, 301)[3 - rank :]), "batch": (300, 1, *(3, 2)[:rank])} if rank < 3 else {}),
    }
    more = {} if nearest or mode == "area" else {"align_corners": (ABSENT, False, True)}
    name = f"interpolate_{mode.replace('-', '_')}{rank}d"
    t.add(
        name,
        act=lambda x, size, mode=mode, **k: F.interpolate(x, _sides(x, size), mode=mode, **k),
        _size=tuple(one if isinstance(one, str) else one[:rank] if rank < 3 else (*one, 4) for one in SCALES),
        **more,
        dtypes="f" if (mode, rank) != ("area", 3) else "s",
        sizes=shape,
        terms=16,
        factor=64.0,
        values=ODD if nearest or mode == "area" else PLAIN,
        forms=BOTH,
    )
    if mode == "area":
        continue
    differing = ((2, 0.5, 1.0), (1, 3, 2))
    t.add(
        f"{name}_scaled",
        act=lambda x, mode=mode, **k: F.interpolate(x, mode=mode, **k),
        scale_factor=(
            *((2, 0.5, 1.0, 1, 3, 0.25) if mode == "bicubic" else (2, 0.5, 1.7 if nearest else 1.5, 0.4, 1.0, 1, 3)),
            *((one[:rank] for one in differing) if rank > 1 else ()),
        ),
        **more,
        recompute_scale_factor=(ABSENT, False, True),
        dtypes="s",
        sizes={
            "main": (2, 3, *(4, 5, 4)[:rank]) if nearest else shape["main"],
            "point": shape["point"],
            "row": (1, 2, *(1,) * (rank - 1), 8),
            "single": (3, 1, *(4, 8, 4)[:rank]),
            "empty": (0, 2, *(4,) * rank),
        },
        terms=16,
        factor=128.0,
        values=PLAIN,
        forms=BOTH,
    )
for mode in ("bilinear", "bicubic"):
    t.add(
        f"interpolate_{mode}_antialias",
        act=lambda x, size, mode=mode, **k: F.interpolate(x, _sides(x, size), mode=mode, antialias=True, **k),
        _size=((5, 7), (3, 2), (16, 18), (1, 1), "same", "half"),
        align_corners=(ABSENT, False, True),
        sizes={
            "main": (2, 3, 8, 9),
            "other": (1, 4, 12, 6),
            "single": (3, 1, 7, 8),
            "point": (1, 2, 1, 1),
            "row": (1, 5, 1, 33),
            "long": (1, 1, 2, 301),
        },
        terms=16,
        factor=64.0,
        dtypes="s",
        values=PLAIN,
        forms=BOTH,
    )
    t.add(
        f"interpolate_{mode}_antialias_scaled",
        act=lambda x, mode=mode, **k: F.interpolate(x, mode=mode, antialias=True, **k),
        scale_factor=(2, 0.5, 1.5, 1.0, (0.5, 2), 0.25),
        align_corners=(ABSENT, True),
        recompute_scale_factor=(ABSENT, True),
        sizes={"main": (2, 3, 8, 9), "single": (3, 1, 4, 8), "row": (1, 2, 1, 12)},
        terms=16,
        factor=128.0,
        dtypes="s",
        values=PLAIN,
        forms=BOTH,
    )
UP = {"dtypes": "s", "values": PLAIN, "forms": ("call", "out", "grad"), "terms": 16, "factor": 64.0}


def _sizes(shape):
    return {"main": shape, "single": (3, 1, *shape[2:]), "point": (2, 3, *(1,) * (len(shape) - 2))}


for name, shape, size in (
    ("upsample_nearest1d", (2, 3, 11), (5,)),
    ("upsample_nearest2d", (2, 3, 11, 13), (5, 18)),
    ("upsample_nearest3d", (1, 2, 11, 13, 17), (3, 5, 7)),
    ("_upsample_nearest_exact1d", (2, 3, 11), (5,)),
    ("_upsample_nearest_exact2d", (2, 3, 11, 13), (5, 18)),
    ("_upsample_nearest_exact3d", (1, 2, 11, 13, 17), (3, 5, 7)),
):
    sizes = (size, tuple(2 * one for one in shape[2:]), shape[2:], (1,) * len(size))
    t.add(name, _size=sizes, paths=(f"aten.{name}",), sizes=_sizes(shape), **UP)
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
        _size=(size, tuple(2 * one for one in shape[2:]), shape[2:], (1,) * len(size)),
        _align=(False, True),
        paths=(f"aten.{name}",),
        sizes=_sizes(shape),
        **UP,
    )

BOTH_OF_GRIDS = ("call", "grad")
FULL = ("call", "out", "grad")
PLAIN_OF_GRIDS = ("plain",)
ODD_OF_GRIDS = ("plain", "special", "wide")
NEURAL = {"dtypes": "f", "values": PLAIN_OF_GRIDS, "forms": BOTH_OF_GRIDS}
PADDED = ("zeros", "border", "reflection")


def _grid(c, *sides):
    """Places within and beyond the borders; each of its own, or one for a whole image."""
    spread = c.draw("unit", (c.shape[0], *sides, len(sides)), values="plain")
    return {"around": spread * 1.3 + 0.013, "far": spread * 7 + 0.013, "one": spread * 0 + 0.313}[c.args["_where"]]


SAMPLED = {"dtypes": "s", "terms": 16, "factor": 256.0, "values": PLAIN_OF_GRIDS, "forms": BOTH_OF_GRIDS}
t.add(
    "grid_sample",
    lambda c: c.draw("any", c.shape),
    lambda c: _grid(c, *c.args["_to"]),
    act=lambda x, g, where, to, **k: F.grid_sample(x, g, **k),
    _where=("around", "far", "one"),
    _to=((5, 4), (1, 1), (1, 33), (17, 1)),
    mode=("bilinear", "nearest", "bicubic"),
    padding_mode=PADDED,
    align_corners=(False, True),
    sizes={
        "main": (2, 3, 6, 7),
        "one": (1, 1, 3, 3),
        "many": (3, 8, 9, 4),
        "row": (1, 5, 1, 33),
        "column": (2, 2, 17, 1),
        "point": (2, 3, 1, 1),
        "empty": (0, 3, 6, 7),
        "batch": (130, 1, 2, 3),
    },
    **SAMPLED,
)
t.add(
    "grid_sample3d",
    lambda c: c.draw("any", c.shape),
    lambda c: _grid(c, *c.args["_to"]),
    act=lambda x, g, where, to, **k: F.grid_sample(x, g, **k),
    _where=("around", "far", "one"),
    _to=((3, 4, 2), (1, 1, 1), (1, 1, 33)),
    mode=("bilinear", "nearest"),
    padding_mode=PADDED,
    align_corners=(False, True),
    sizes={
        "main": (2, 2, 4, 5, 3),
        "single": (1, 1, 3, 3, 3),
        "point": (1, 3, 1, 1, 1),
        "plate": (3, 1, 1, 6, 5),
        "empty": (0, 2, 4, 5, 3),
    },
    **SAMPLED,
)
t.add(
    "affine_grid",
    lambda c: c.draw("any", c.shape[1:]),
    act=lambda x, size, **k: F.affine_grid(x, size[: x.shape[1] + 2], **k),
    _size=((2, 3, 5, 6, 4), (2, 1, 1, 4, 1), (2, 1, 1, 1, 1), (2, 2, 33, 2, 3), (2, 1, 4, 1, 5)),
    align_corners=(False, True),
    sizes={"main": (1, 2, 2, 3), "volume": (1, 2, 3, 4)},
    terms=8,
    **{**NEURAL, "dtypes": "s"},
)
t.add(
    "affine_grid_generator",
    _size=((2, 3, 5, 6), (2, 1, 1, 4), (2, 1, 1, 1), (2, 2, 33, 2)),
    _align=(False, True),
    sizes={"main": (2, 2, 3)},
    paths=("torch.affine_grid_generator",),
    terms=8,
    **{**NEURAL, "dtypes": "s"},
)
MOVED = {"dtypes": "fib", "forms": BOTH_OF_GRIDS, "values": ODD_OF_GRIDS}
t.add(
    "pixel_shuffle",
    _r=(2, 1, 3),
    sizes={
        "main": (2, 8, 3, 5),
        "flat": (4, 3, 5),
        "more": (1, 2, 8, 3, 4),
        "nine": (2, 36, 2, 3),
        "point": (3, 36, 1, 1),
        "empty": (0, 36, 3, 5),
        "hollow": (2, 36, 0, 5),
        "row": (1, 36, 1, 33),
    },
    **MOVED,
)
t.add(
    "pixel_unshuffle",
    _r=(2, 1, 3),
    sizes={
        "main": (2, 3, 6, 4),
        "flat": (3, 4, 8),
        "nine": (2, 1, 6, 12),
        "point": (3, 5, 1, 1),
        "small": (1, 2, 6, 6),
        "more": (1, 2, 3, 6, 6),
    },
    **MOVED,
)
for name, forms in (("channel_shuffle", BOTH_OF_GRIDS), ("native_channel_shuffle", ("call",))):
    t.add(
        name,
        _groups=(2, 4, 1, 8),
        dtypes="f",
        forms=forms,
        values=ODD_OF_GRIDS,
        layouts=("dense", "offset"),  # without a kernel of its own it takes a view: an error for others, by design
        sizes={
            "main": (2, 8, 3, 5),
            "line": (1, 4, 7),
            "volume": (2, 8, 2, 3, 4),
            "point": (3, 8, 1, 1),
            "long": (1, 8, 1031),
            "many": (130, 8, 2, 2),
        },
    )
IMAGES = {
    "main": (2, 3, 7, 8),
    "flat": (3, 7, 8),
    "single": (1, 1, 5, 6),
    "row": (2, 2, 1, 33),
    "column": (1, 5, 31, 1),
    "point": (3, 4, 1, 1),
    "empty": (0, 3, 7, 8),
    "long": (1, 1, 3, 1031),
}
t.add(
    "unfold_images",
    act=lambda x, k, **o: F.unfold(x, k, **o),
    _k=(2, (3, 2), 1, (1, 3), (5, 1)),
    dilation=(ABSENT, 1, 2, (1, 3)),
    padding=(ABSENT, 0, 1, (2, 0)),
    stride=(ABSENT, 1, 2, (1, 4), 6),
    dtypes="fcb",
    values=ODD_OF_GRIDS,
    forms=BOTH_OF_GRIDS,
    sizes=IMAGES,
    terms=9,
)
t.add(
    "im2col",
    _k=((2, 2), (3, 2), (1, 1), (1, 3)),
    _dilation=((1, 1), (2, 1), (1, 2)),
    _padding=((0, 0), (1, 1), (0, 2)),
    _stride=((1, 1), (2, 1), (3, 4)),
    paths=("aten.im2col",),
    forms=FULL,
    dtypes="f",
    values=PLAIN_OF_GRIDS,
    sizes=IMAGES,
    terms=9,
)


def _columns(c):
    """Columns for an image, as many as its blocks are."""
    sides, blocks = c.shape[-2:], 1
    for place, side in enumerate(sides):
        kernel, gap, pad, step = (c.args[key][place] for key in ("_k", "_dilation", "_padding", "_stride"))
        blocks *= max((side + 2 * pad - gap * (kernel - 1) - 1) // step + 1, 0)
    return c.draw("any", (*c.shape[:-3], c.shape[-3] * c.args["_k"][0] * c.args["_k"][1], blocks))


for name in ("fold", "col2im"):
    t.add(
        name,
        _columns,
        lambda c: c.shape[-2:],
        act=(lambda x, o, k, d, p, s: F.fold(x, o, k, d, p, s)) if name == "fold" else None,
        _k=((2, 2), (3, 2), (1, 1), (1, 3)),
        _dilation=((1, 1), (2, 1), (1, 2)),
        _padding=((0, 0), (1, 1), (0, 2)),
        _stride=((1, 1), (2, 1), (3, 4)),
        paths=() if name == "fold" else ("aten.col2im",),
        forms=BOTH_OF_GRIDS if name == "fold" else FULL,
        dtypes="fc" if name == "fold" else "f",
        values=PLAIN_OF_GRIDS,
        sizes=IMAGES,
        layouts_of=(0,),
        terms=9,
    )
