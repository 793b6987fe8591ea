"""Operators on some places along a dimension: selected, added to, copied to, filled, reduced."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

from .indices import DIM, FEW_SIZES, SIZES, few, row, side, source

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
# One place, all of them, none; int32 where it is allowed.
SOME = (ABSENT, "one", "all", "none")
TYPED = (*SOME, torch.int32)
NUMBERS = (0, 3, -1, 0.5, True)

t.add(
    "index_select",
    "any",
    row,
    act=lambda x, i, dim, **k: torch.index_select(x, dim, i, **k),
    dim=DIM,
    _at=(ABSENT, torch.int32, "equal", "sorted", "more", "none"),
    forms=("call", "out", "grad"),
    sizes=SIZES,
    terms=8,
    **EVERY,
)
t.add(
    "index_select_public",
    "any",
    row,
    act=lambda x, i, dim: x.index_select(dim, i),
    dim=DIM,
    _at=(ABSENT, torch.int32, "equal"),
    forms=("call", "grad"),
    sizes=SIZES,
    terms=8,
    **EVERY,
)
t.add(
    "index_reduce",
    "few",
    few,
    source("positive"),
    act=lambda x, i, y, dim, reduce, **k: torch.index_reduce(x, dim, i, y, reduce, **k),
    dim=DIM,
    reduce=("prod", "mean", "amax", "amin"),
    include_self=(ABSENT, True, False),
    _at=TYPED,
    forms=("call", "out", "grad"),
    sizes=FEW_SIZES,
    dtypes="fi",
    values=("plain", "special", "equal"),
    terms=16,
    factor=32.0,
)
t.add(
    "index_reduce_inplace",
    "few",
    few,
    source("positive"),
    act=lambda x, i, y, dim, reduce, **k: x.index_reduce_(dim, i, y, reduce, **k),
    dim=DIM,
    reduce=("prod", "mean", "amax", "amin"),
    include_self=(ABSENT, False),
    _at=TYPED,
    forms=("inplace",),
    sizes=FEW_SIZES,
    dtypes="fi",
    values=("plain",),
    terms=16,
    factor=32.0,
)
ALPHA = (ABSENT, 1, 0, 2, -1, 0.5)
t.add(
    "index_add",
    "any",
    few,
    source(),
    act=lambda x, i, y, dim, **k: torch.index_add(x, dim, i, y, **k),
    dim=DIM,
    alpha=ALPHA,
    _at=TYPED,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    terms=4,
    **EVERY,
)
# With repeats: more is added than there are places.
t.add(
    "index_add_inplace",
    "any",
    lambda c: c.at(c.indices(side(c), (5 if side(c) else 0,)), side(c)),
    lambda c: c.draw("any", [min(5, 5 * s) if d == c.args["dim"] % len(c.shape) else s for d, s in enumerate(c.shape)]),
    act=lambda x, i, y, dim, **k: x.index_add_(dim, i, y, **k),
    dim=DIM,
    alpha=ALPHA,
    _at=(ABSENT, torch.int32, "equal", "sorted"),
    forms=("inplace",),
    sizes=tuple(size for size in SIZES if size != "none"),
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "index_copy",
    "any",
    few,
    source(),
    act=lambda x, i, y, dim, **k: torch.index_copy(x, dim, i, y, **k),
    dim=DIM,
    _at=SOME,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_copy_inplace",
    "any",
    few,
    source(),
    act=lambda x, i, y, dim: x.index_copy_(dim, i, y),
    dim=DIM,
    _at=SOME,
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
FILLED = (*SOME, "equal", "negative")
t.add(
    "index_fill",
    "any",
    few,
    act=lambda x, i, dim, v: torch.index_fill(x, dim, i, v),
    dim=DIM,
    v=NUMBERS,
    _at=FILLED,
    forms=("call", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_fill_inplace",
    "any",
    few,
    act=lambda x, i, dim, v: x.index_fill_(dim, i, v),
    dim=DIM,
    v=NUMBERS,
    _at=FILLED,
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_fill_tensor",
    "any",
    few,
    lambda c: c.draw("few", (), c.args.get("_with")),
    act=lambda x, i, v, dim: (x.index_fill(dim, i, v), x.clone().index_fill_(dim, i, v)),
    dim=DIM,
    _at=FILLED,
    _with=(ABSENT, torch.float32, torch.int64, torch.bool),
    forms=("call",),
    sizes=FEW_SIZES,
    layouts_of=(0, 1),
    **EVERY,
)
