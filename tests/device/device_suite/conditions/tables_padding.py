"""Padding, the last sides first: constants, and what stands at the border."""

from __future__ import annotations

import torch.nn.functional as F

from .spec import ABSENT, REDUCED, Table

t = Table()

MOVED = {"values": ("plain", "wide", "special"), "forms": ("call", "grad"), "sizes": REDUCED}
t.add(
    "pad_constant",
    act=lambda x, p, **k: F.pad(x, p, **k),
    _p=((1, 2), (0, 3), (1, 0, 2, 1), (-1, 1), (-1, -1), (2, 0, -1, 1)),
    value=(ABSENT, 1.5, -2),
    **{**MOVED, "dtypes": "fibc"},
)
t.add(
    "pad_reflect",
    act=lambda x, p, mode: F.pad(x, p, mode),
    _p=((1, 2), (2, 0), (1, 1, 2, 0), (1, 0, 1, 2), (1, 1, 1, 0, 1, 1)),
    _mode=("reflect", "replicate", "circular"),
    dtypes="fi",
    values=("plain", "wide", "special"),
    forms=("call", "grad"),
    sizes={
        "line": (3, 17),
        "small": (2, 3, 7),
        "image": (2, 3, 4, 6),
        "volume": (1, 2, 3, 4, 5),
        "long": (1, 2, 1031),
        "flat": (4, 3, 5),
        "empty": (0, 3, 7),
        "wide": (1, 2, 3, 400),
    },
    terms=8,
)
for kind in ("reflection", "replication"):
    for rank, shape in (
        (1, {"three": (2, 3, 7), "flat": (3, 9), "long": (1, 2, 1031)}),
        (2, {"four": (2, 3, 5, 6), "flat": (3, 5, 6), "wide": (1, 1, 3, 1031)}),
        (3, {"five": (1, 2, 3, 4, 5), "flat": (2, 3, 4, 5)}),
    ):
        pads = tuple((1, 2, 0, 1, 2, 1)[: 2 * rank] if one else (1,) * 2 * rank for one in range(2))
        t.add(
            f"{kind}_pad{rank}d",
            _padding=pads,
            dtypes="f",
            values=("plain",),
            forms=("call", "out", "grad"),
            sizes=shape,
            paths=(f"aten.{kind}_pad{rank}d",),
            terms=8,
        )
