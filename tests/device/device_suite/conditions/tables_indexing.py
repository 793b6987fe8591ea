"""Indexing by tensors and masks, and writing a part of a tensor."""

from __future__ import annotations

import torch

from .spec import REDUCED, Table

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide")}
DIM = (0, -1, 1)


def _picked(x, how, i, j):
    return {
        "first": lambda: x[i],
        "second": lambda: x[:, j],
        "both": lambda: x[i, j],
        "grid": lambda: x[i[:, None], j],
        "last": lambda: x[..., j],
        "slice": lambda: x[1:, j],
        "none": lambda: x[None, i],
        "negative": lambda: x[i - x.shape[0]],
    }[how]()


def _index(place):
    return lambda c: c.indices(c.shape[place] if len(c.shape) > place else 1, (4,))


HOW = ("first", "second", "both", "grid", "last", "slice", "none", "negative")
t.add(
    "index",
    "any",
    _index(0),
    lambda c: c.indices(
        c.shape[1] if 1 < len(c.shape) < 3 else min([*c.shape[1:], 1]) if len(c.shape) != 2 else 1, (4,)
    ),
    act=lambda x, i, j, how: _picked(x, how, i, j),
    _how=HOW,
    forms=("call", "grad"),
    sizes=("small", "four", "three", "high", "long", "five", "tall"),
    terms=8,
    dtypes="fibc",
    values=("plain", "wide", "special"),
)
t.add(
    "index_mask",
    "any",
    "mask",
    act=lambda x, m: x[m],
    forms=("call", "grad"),
    sizes=REDUCED,
    terms=8,
    dtypes="fibc",
    values=("plain", "wide", "special"),
)
t.add(
    "index_mask_rows",
    "any",
    lambda c: c.draw("any", c.shape[:1], torch.bool),
    act=lambda x, m: (x[m], x[~m]),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "high", "three", "empty"),
    dtypes="fibc",
    values=("plain",),
)
t.add(
    "masked_select",
    "any",
    "mask",
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    dtypes="fibc",
    values=("plain", "wide", "special"),
)
t.add("masked_scatter", "any", "mask", "any", forms=("call", "inplace", "grad"), sizes=REDUCED, **EVERY)
t.add(
    "index_put_mask",
    "any",
    "mask",
    act=lambda x, m, v: x.__setitem__(m, v),
    _v=(0, 3),
    forms=("inplace",),
    sizes=REDUCED,
    dtypes="fibc",
    values=("plain",),
)
t.add(
    "index_put_rows",
    "any",
    lambda c: c.unique(c.shape[0], min(3, c.shape[0])),
    lambda c: c.draw("any", (min(3, c.shape[0]), *c.shape[1:])),
    act=lambda x, i, y: x.__setitem__(i, y),
    forms=("inplace",),
    sizes=("small", "four", "line", "high", "three", "five"),
    **EVERY,
)
t.add(
    "index_put_columns",
    "any",
    lambda c: c.unique(c.shape[1], min(3, c.shape[1])),
    act=lambda x, i, v: x.__setitem__((slice(None), i), v),
    _v=(0, -2),
    forms=("inplace",),
    sizes=("small", "four", "three", "long"),
    dtypes="fi",
    values=("plain",),
)
t.add(
    "index_put",
    "any",
    _index(0),
    lambda c: c.draw("any", (4, *c.shape[1:])),
    act=lambda x, i, y, acc: x.index_put((i,), y, accumulate=acc),
    _acc=(True,),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three", "high"),
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "index_put_inplace",
    "any",
    _index(0),
    lambda c: c.indices(c.shape[1], (4,)),
    lambda c: c.draw("any", (4, *c.shape[2:])),
    act=lambda x, i, j, y: x.index_put_((i, j), y, accumulate=True),
    forms=("inplace",),
    sizes=("small", "four", "three", "high", "long"),
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "put",
    "any",
    lambda c: c.unique(max(c.draw("any", c.shape).numel(), 1), 4),
    lambda c: c.draw("any", (min(4, max(c.draw("any", c.shape).numel(), 1)),)),
    act=lambda x, i, y, acc: x.put_(i, y, accumulate=acc),
    _acc=(False, True),
    forms=("inplace",),
    sizes=("small", "four", "line"),
    dtypes="fi",
    values=("plain",),
)
t.add(
    "select_scatter",
    "any",
    lambda c: c.draw("any", [s for d, s in enumerate(c.shape) if d != c.args["dim"] % len(c.shape)]),
    dim=DIM,
    index=(0, -1),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three"),
    **EVERY,
)
t.add(
    "slice_scatter",
    "any",
    lambda c: c.draw(
        "any", [min(2, max(s - 1, 0)) if d == c.args["dim"] % len(c.shape) else s for d, s in enumerate(c.shape)]
    ),
    dim=DIM,
    start=(1,),
    end=(3,),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three"),
    **EVERY,
)
t.add(
    "diagonal_scatter",
    "any",
    lambda c: c.draw("any", (min(c.shape),)),
    forms=("call", "grad"),
    sizes=("small", "tiles", "long"),
    **EVERY,
)
t.add(
    "bool_sums",
    "any",
    "mask",
    act=lambda x, m: (m.sum(), m.sum(0), m.long().cumsum(0), m.any(), m.all()),
    dtypes="s",
    forms=("call",),
    sizes=REDUCED,
    values=("plain", "wide"),
)
