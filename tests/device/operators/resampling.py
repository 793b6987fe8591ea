"""Resampling by size and by scale."""

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
