"""Gathering and scattering: every dimension, index dtype and reduction."""

from __future__ import annotations

import torch

from .spec import ABSENT, REDUCED, Table

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide")}
SIZES = ("small", "four", "none", "empty", "one", "line", "long", "high", "three", "five", "tall")
DIM = (0, -1, 1)


def _side(c):
    return c.shape[c.args["dim"]] if c.shape else 1


def _row(c):
    """Indices along one dimension, with repeats."""
    return c.indices(_side(c), (min(_side(c), 4) + 2,) if c.shape else ()) if _side(c) else c.indices(1, (0,))


def _whole(c):
    """An index for each element, with repeats."""
    return c.indices(_side(c), c.shape)


def _apart(c):
    """An index for each element, unlike the others along the dimension."""
    if not c.shape:
        return torch.zeros((), dtype=torch.int64)
    dim, side = c.args["dim"] % len(c.shape), _side(c)
    places = torch.arange(side).reshape([side if d == dim else 1 for d in range(len(c.shape))])
    turn = (
        (torch.arange(max(c.draw("any", c.shape).numel() // max(side, 1), 1)) * 3 + 1).reshape(
            [1 if d == dim else s for d, s in enumerate(c.shape)]
        )
        if 0 not in c.shape
        else torch.zeros((), dtype=torch.int64)
    )
    return ((places + turn) % max(side, 1)).expand(c.shape).clone()


def _few(c):
    return c.unique(_side(c), min(_side(c), 3))


def _source(domain="any"):
    return lambda c: c.draw(
        domain,
        [min(s, 3) if d == c.args["dim"] % len(c.shape) else s for d, s in enumerate(c.shape)] if c.shape else (),
    )


t.add(
    "index_select",
    "any",
    _row,
    act=lambda x, i, dim, **k: torch.index_select(x, dim, i, **k),
    dim=DIM,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    terms=8,
    dtypes="fibc",
    values=("plain", "wide", "special"),
)
t.add(
    "index_select_public",
    "any",
    _row,
    act=lambda x, i, dim: torch.index_select(x, dim, i if c32(x) else i.int()),
    dim=DIM,
    forms=("call", "grad"),
    sizes=SIZES,
    terms=8,
    **EVERY,
)


def c32(x):
    """Take turns with the index's dtype: even sizes get int32."""
    return x.numel() % 2 == 1


t.add(
    "gather",
    "any",
    _whole,
    act=lambda x, i, dim, **k: torch.gather(x, dim, i, **k),
    dim=DIM,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    terms=8,
    dtypes="fibc",
    values=("plain", "wide", "special"),
)
t.add(
    "take_along_dim",
    "any",
    _whole,
    act=lambda x, i, dim: torch.take_along_dim(x, i, dim),
    dim=DIM,
    forms=("call", "grad"),
    sizes=SIZES,
    terms=8,
    **EVERY,
)
t.add(
    "take",
    "any",
    lambda c: c.indices(max(c.draw("any", c.shape).numel(), 1), (3, 4)),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    terms=8,
    **EVERY,
)
t.add(
    "scatter",
    "any",
    _apart,
    "any",
    act=lambda x, i, y, dim, **k: torch.scatter(x, dim, i, y, **k),
    dim=DIM,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "scatter_inplace",
    "any",
    _apart,
    "any",
    act=lambda x, i, y, dim: x.scatter_(dim, i, y),
    dim=DIM,
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "scatter_value",
    "any",
    _whole,
    act=lambda x, i, v, dim, **k: torch.scatter(x, dim, i, v, **k),
    dim=DIM,
    _v=(0, 3),
    forms=("call", "out", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "scatter_value_inplace",
    "any",
    _whole,
    act=lambda x, i, v, dim: x.scatter_(dim, i, v),
    dim=DIM,
    _v=(0, 3),
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
for how in ("add", "multiply"):
    t.add(
        f"scatter_{how}_old",
        "any",
        _apart,
        "any",
        act=lambda x, i, y, dim, how=how, **k: torch.scatter(x, dim, i, y, reduce=how, **k),
        dim=DIM,
        forms=("call", "out"),
        sizes=SIZES,
        dtypes="fi",
        values=("plain",),
    )
    t.add(
        f"scatter_{how}_old_inplace",
        "any",
        _apart,
        "any",
        act=lambda x, i, y, dim, how=how: (x.scatter_(dim, i, y, reduce=how), x.scatter_(dim, i, 2, reduce=how)),
        dim=DIM,
        forms=("inplace",),
        sizes=SIZES,
        dtypes="fi",
        values=("plain",),
    )
    t.add(
        f"scatter_value_{how}",
        "any",
        _apart,
        act=lambda x, i, dim, how=how, **k: torch.scatter(x, dim, i, 2, reduce=how, **k),
        dim=DIM,
        forms=("call", "out"),
        sizes=("small", "four", "line"),
        dtypes="fi",
        values=("plain",),
    )
t.add(
    "scatter_add",
    "any",
    _whole,
    "any",
    act=lambda x, i, y, dim, **k: torch.scatter_add(x, dim, i, y, **k),
    dim=DIM,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    dtypes="fibc",
    values=("plain", "wide"),
    terms=64,
    floor=4.0,
)
t.add(
    "scatter_add_inplace",
    "any",
    _whole,
    "any",
    act=lambda x, i, y, dim: x.scatter_add_(dim, i, y),
    dim=DIM,
    forms=("inplace",),
    sizes=SIZES,
    dtypes="fibc",
    values=("plain",),
    terms=64,
    floor=4.0,
)
REDUCE = ("sum", "prod", "mean", "amax", "amin")
t.add(
    "scatter_reduce",
    "few",
    _whole,
    "positive",
    act=lambda x, i, y, dim, reduce, **k: torch.scatter_reduce(x, dim, i, y, reduce, **k),
    dim=DIM,
    reduce=REDUCE,
    include_self=(ABSENT, False),
    forms=("call", "out", "grad"),
    sizes=("small", "four", "none", "empty", "one", "line", "three", "five"),
    dtypes="fi",
    values=("plain",),
    terms=64,
    floor=4.0,
    factor=32.0,
)
t.add(
    "scatter_reduce_inplace",
    "few",
    _whole,
    "positive",
    act=lambda x, i, y, dim, reduce, **k: x.scatter_reduce_(dim, i, y, reduce, **k),
    dim=DIM,
    reduce=REDUCE,
    include_self=(ABSENT, False),
    forms=("inplace",),
    sizes=("small", "four", "none", "line", "three"),
    dtypes="fi",
    values=("plain",),
    terms=64,
    floor=4.0,
    factor=32.0,
)
t.add(
    "index_reduce",
    "few",
    _few,
    _source("positive"),
    act=lambda x, i, y, dim, reduce, **k: torch.index_reduce(x, dim, i, y, reduce, **k),
    dim=DIM,
    reduce=REDUCE[1:],
    include_self=(ABSENT, False),
    forms=("call", "out", "grad"),
    sizes=("small", "four", "line", "three", "high"),
    dtypes="fi",
    values=("plain",),
    terms=16,
    factor=32.0,
)
t.add(
    "index_add",
    "any",
    _few,
    _source(),
    act=lambda x, i, y, dim, **k: torch.index_add(x, dim, i, y, **k),
    dim=DIM,
    alpha=(ABSENT, 2, -1),
    forms=("call", "out", "grad"),
    sizes=SIZES,
    terms=4,
    **EVERY,
)
t.add(
    "index_add_inplace",
    "any",
    lambda c: c.indices(_side(c), (5 if _side(c) else 0,)),
    lambda c: c.draw("any", [min(5, 5 * s) if d == c.args["dim"] % len(c.shape) else s for d, s in enumerate(c.shape)]),
    act=lambda x, i, y, dim, **k: x.index_add_(dim, i if c32(x) else i.int(), y, **k),
    dim=DIM,
    alpha=(ABSENT, 2),
    forms=("inplace",),
    sizes=SIZES,
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "index_copy",
    "any",
    _few,
    _source(),
    act=lambda x, i, y, dim, **k: torch.index_copy(x, dim, i, y, **k),
    dim=DIM,
    forms=("call", "out", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_copy_inplace",
    "any",
    _few,
    _source(),
    act=lambda x, i, y, dim: x.index_copy_(dim, i, y),
    dim=DIM,
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_fill",
    "any",
    _few,
    act=lambda x, i, dim, v: torch.index_fill(x, dim, i, v),
    dim=DIM,
    v=(0, 3),
    forms=("call", "grad"),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_fill_inplace",
    "any",
    _few,
    act=lambda x, i, dim, v: x.index_fill_(dim, i, v),
    dim=DIM,
    v=(0, 3),
    forms=("inplace",),
    sizes=SIZES,
    **EVERY,
)
t.add(
    "index_fill_tensor",
    "any",
    _few,
    lambda c: c.draw("few", ()),
    act=lambda x, i, v, dim: (x.index_fill(dim, i, v), x.clone().index_fill_(dim, i, v)),
    dim=DIM,
    forms=("call",),
    sizes=("small", "four", "line"),
    laid=(0, 1),
    **EVERY,
)
