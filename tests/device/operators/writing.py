"""Writing a part of a tensor: at indices, under a mask, over a slice."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table

from .indices import DIM
from .ternary import MASK, mask

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
NUMBERS = (0, 3, -2, 0.5, True)

t.add(
    "index_put_mask",
    "any",
    mask,
    act=lambda x, m, v: x.__setitem__(m, v),
    _at=MASK,
    _v=(*NUMBERS, torch.tensor(2), torch.tensor(0.5)),
    forms=("inplace",),
    sizes=REDUCED,
    dtypes="fibc",
    values=("plain",),
)


def _rows(c, most=3):
    count = {"none": 0, "one": 1}.get(c.args.get("_at"), most)
    return min(count, c.shape[0])


# Assignment converts what is written; one row may be written to all places.
t.add(
    "index_put_rows",
    "any",
    lambda c: c.at(c.unique(c.shape[0], _rows(c)), c.shape[0]),
    lambda c: c.draw(
        "few",
        {None: (_rows(c), *c.shape[1:]), "one": (1, *c.shape[1:]), "row": c.shape[1:], "none": ()}[c.args.get("_cast")],
        c.args.get("_with"),
    ),
    act=lambda x, i, y: x.__setitem__(i, y),
    _at=(ABSENT, torch.int32, "negative", "one", "none"),
    _cast=(ABSENT, "one", "row", "none"),
    _with=(ABSENT, torch.float32, torch.int64, torch.bool),
    forms=("inplace",),
    sizes=("small", "four", "line", "high", "three", "five", "column", "row", "many", "empty"),
    dtypes="fibc",
    values=("plain", "special"),
)
t.add(
    "index_put_columns",
    "any",
    lambda c: c.at(c.unique(c.shape[1], min(3, c.shape[1])), c.shape[1]),
    act=lambda x, i, v: x.__setitem__((slice(None), i), v),
    _at=(ABSENT, torch.int32, "negative", "equal"),
    _v=(*NUMBERS, torch.tensor(2)),
    forms=("inplace",),
    sizes=("small", "four", "three", "long", "column", "row", "wide", "middle"),
    dtypes="fibc",
    values=("plain", "special"),
)
t.add(
    "index_put",
    "any",
    lambda c: c.at(c.indices(c.shape[0], (4,)) if c.args.get("_acc") else c.unique(c.shape[0], 4), c.shape[0]),
    lambda c: c.draw(
        "any",
        {None: (min(4, c.shape[0]) if not c.args.get("_acc") else 4, *c.shape[1:]), "row": c.shape[1:], "none": ()}[
            c.args.get("_cast")
        ],
    ),
    act=lambda x, i, y, acc: x.index_put((i,), y, accumulate=acc),
    _acc=(True, False),
    _at=(ABSENT, torch.int32, "negative", "equal", "sorted"),
    _cast=(ABSENT, "row", "none"),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "three", "high", "column", "row", "long", "many"),
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "index_put_inplace",
    "any",
    lambda c: c.at(c.indices(c.shape[0], (4,)), c.shape[0]),
    lambda c: c.at(c.indices(c.shape[1], (4,)), c.shape[1]),
    lambda c: c.draw("any", (4, *c.shape[2:])),
    act=lambda x, i, j, y: x.index_put_((i, j), y, accumulate=True),
    _at=(ABSENT, torch.int32, "negative", "equal", "sorted"),
    forms=("inplace",),
    sizes=("small", "four", "three", "high", "long", "column", "row", "wide"),
    terms=8,
    floor=4.0,
    **EVERY,
)
t.add(
    "index_put_grid",
    "any",
    lambda c: c.unique(c.shape[0], 3),
    lambda c: c.unique(c.shape[1], 2),
    act=lambda x, i, j, v, how: (
        x.__setitem__((i[:, None], j), v)
        if how == "grid"
        else x.__setitem__((Ellipsis, slice(None), j), v)
        if how == "last"
        else x.__setitem__((i, None, Ellipsis), v)
    ),
    _v=NUMBERS,
    _how=("grid", "last", "new"),
    forms=("inplace",),
    sizes=("small", "tiles", "long", "high", "column"),
    dtypes="fi",
    values=("plain",),
)


def _numel(c):
    return max(c.draw("any", c.shape).numel(), 1)


t.add(
    "put",
    "any",
    lambda c: c.at(c.unique(_numel(c), 4) if not c.args["_acc"] else c.indices(_numel(c), (4,)), _numel(c)),
    lambda c: c.draw("any", (4 if c.args["_acc"] else min(4, _numel(c)),)),
    act=lambda x, i, y, acc: x.put_(i, y, accumulate=acc),
    _acc=(False, True),
    _at=(ABSENT, "negative", "equal", "sorted"),
    forms=("inplace",),
    sizes=("small", "four", "none", "one", "line", "high", "column", "three", "wide"),
    terms=4,
    **EVERY,
)
t.add(
    "select_scatter",
    "any",
    lambda c: c.draw("any", [s for d, s in enumerate(c.shape) if d != c.args["dim"] % len(c.shape)]),
    dim=DIM,
    index=(0, -1, 1, 2),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "one", "three", "high", "long", "row", "middle", "five"),
    **EVERY,
)


def _sliced(c):
    """Return what fits the slice of a row's arguments."""
    dim = c.args.get("dim", 0) % len(c.shape)
    start, end, step = (c.args.get(one, default) for one, default in (("start", None), ("end", None), ("step", 1)))
    count = len(range(c.shape[dim])[slice(start, end, step)])
    return c.draw("any", [count if d == dim else s for d, s in enumerate(c.shape)])


t.add(
    "slice_scatter",
    "any",
    _sliced,
    dim=(ABSENT, *DIM),
    start=(ABSENT, None, 1, 0, -2),
    end=(ABSENT, None, 3, -1, 99),
    step=(ABSENT, 1, 2, 3),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "one", "three", "high", "long", "row", "middle", "five", "empty"),
    **EVERY,
)
t.add(
    "diagonal_scatter",
    "any",
    lambda c: torch.diagonal(
        c.draw("any", c.shape), c.args.get("offset", 0), c.args.get("dim1", 0), c.args.get("dim2", 1)
    ).clone(),
    offset=(ABSENT, 0, 1, -2),
    dim1=(ABSENT, 0, -1, 1),
    dim2=(ABSENT, 1, -2, 0),
    forms=("call", "grad"),
    sizes=("small", "tiles", "long", "high", "four", "three", "column", "row"),
    **EVERY,
)
