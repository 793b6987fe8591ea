"""Padding, the last sides first: constants, and what stands at the border."""

from __future__ import annotations

import torch.nn.functional as F

from engine.description import ABSENT, REDUCED, Table

t = Table()

MOVED = {"values": ("plain", "wide", "special"), "forms": ("call", "grad"), "sizes": REDUCED}
t.add(
    "pad_constant",
    act=lambda x, p, **k: F.pad(x, p, **k),
    _p=(
        *((1, 2), (0, 3), (3, 0), (0, 0), (70, 1), ()),  # the last side
        *((1, 0, 2, 1), (0, 0, 1, 0), (0, 0, 0, 2), (1, 1, 0, 0)),  # one of two sides alone
        *((-1, 1), (-1, -1), (2, 0, -1, 1), (0, -1, 0, 0)),  # cut
        *((1, 0, 0, 2, 1, 1), (0, 0, 0, 0, 1, 0), (1, 1, 1, 1, 1, 1, 1, 1), (0, 0, -1, 2, 0, 0, 1, 0)),
    ),
    mode=(ABSENT, "constant"),
    value=(ABSENT, 1.5, -2, 0, None, True, float("inf"), float("nan")),
    **{**MOVED, "dtypes": "fibc", "sizes": (*REDUCED, "rows")},
)
t.add(
    "constant_pad_nd",
    _p=((1, 2), (0, 3), (), (-1, 1), (0, 0, 1, 0), (2, 0, -1, 1), (0, 0, 0, 0, 1, 2)),
    _value=(0, 1.5, -2, True),
    paths=("torch.constant_pad_nd", "aten.constant_pad_nd"),
    **{**MOVED, "dtypes": "fib", "forms": ("call", "out", "grad")},
)
SIDES = {
    "line": (3, 17),
    "small": (2, 3, 7),
    "image": (2, 3, 4, 6),
    "volume": (1, 2, 3, 4, 5),
    "long": (1, 2, 1031),
    "flat": (4, 3, 5),
    "empty": (0, 3, 7),
    "wide": (1, 2, 3, 400),
    "point": (2, 3, 1, 1),
    "two": (2, 2, 2, 2),
    "column": (1, 5, 33, 1),
    "many": (300, 1, 3, 4),
    "channels": (1, 130, 4, 5),
    "tall": (1, 1, 65543),
}
t.add(
    "pad_reflect",
    act=lambda x, p, mode: F.pad(x, p, mode),
    _p=(
        *((1, 2), (2, 0), (0, 2), (0, 0), (4, 5), (6, 0), (17, 0)),
        *((1, 1, 2, 0), (1, 0, 1, 2), (0, 0, 1, 0), (0, 1, 0, 0), (3, 2, 3, 3)),
        *((1, 1, 1, 0, 1, 1), (0, 0, 0, 0, 0, 1), (4, 4, 3, 3, 2, 2)),
    ),
    _mode=("reflect", "replicate", "circular"),
    dtypes="fic",
    values=("plain", "wide", "special"),
    forms=("call", "grad"),
    sizes=SIDES,
    terms=8,
)
for kind in ("reflection", "replication"):
    for rank, shape in (
        (1, {"three": (2, 3, 7), "flat": (3, 9), "long": (1, 2, 1031), "many": (1031, 1, 3)}),
        (2, {"four": (2, 3, 5, 6), "flat": (3, 5, 6), "wide": (1, 1, 3, 1031), "high": (1, 33, 31, 3)}),
        (3, {"five": (1, 2, 3, 4, 5), "flat": (2, 3, 4, 5), "long": (1, 1, 3, 3, 301), "many": (33, 1, 3, 3, 3)}),
    ):
        name = f"{kind}_pad{rank}d"
        pads = (
            (1, 2, 0, 1, 2, 1)[: 2 * rank],
            (1,) * 2 * rank,
            (0,) * 2 * rank,
            *(tuple(2 if place == one else 0 for place in range(2 * rank)) for one in range(2 * rank)),
        )
        t.add(
            name,
            _padding=pads,
            dtypes="f",
            values=("plain", "special"),
            forms=("call", "out", "grad"),
            sizes={**shape, "point": (2, 3, *(1,) * rank), "empty": (0, 3, *(4,) * rank)},
            paths=(f"aten.{name}",),
            terms=8,
        )
