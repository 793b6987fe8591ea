"""Grids, shuffles, folding: what moves pixels without a size or a scale."""

from __future__ import annotations

import torch.nn.functional as F

from engine.description import ABSENT, Table

t = Table()
BOTH = ("call", "grad")
FULL = ("call", "out", "grad")
PLAIN = ("plain",)
ODD = ("plain", "special", "wide")
NEURAL = {"dtypes": "f", "values": PLAIN, "forms": BOTH}
PADDED = ("zeros", "border", "reflection")


def _grid(c, *sides):
    """Places within and beyond the borders; each of its own, or one for a whole image."""
    spread = c.draw("unit", (c.shape[0], *sides, len(sides)), values="plain")
    return {"around": spread * 1.3 + 0.013, "far": spread * 7 + 0.013, "one": spread * 0 + 0.313}[c.args["_where"]]


SAMPLED = {"dtypes": "s", "terms": 16, "factor": 256.0, "values": PLAIN, "forms": BOTH}
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
MOVED = {"dtypes": "fib", "forms": BOTH, "values": ODD}
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
for name, forms in (("channel_shuffle", BOTH), ("native_channel_shuffle", ("call",))):
    t.add(
        name,
        _groups=(2, 4, 1, 8),
        dtypes="f",
        forms=forms,
        values=ODD,
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
    values=ODD,
    forms=BOTH,
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
    values=PLAIN,
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
        forms=BOTH if name == "fold" else FULL,
        dtypes="fc" if name == "fold" else "f",
        values=PLAIN,
        sizes=IMAGES,
        laid=(0,),
        terms=9,
    )
