"""Indexing by tensors, masks and slices: read, written and updated in place."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table

from .ternary import MASK, mask

t = Table()
EVERY = {"dtypes": "fibc", "values": ("plain", "wide", "special")}
AT = (ABSENT, torch.int32, "equal", "sorted", "negative", "none")


def _picked(x, how, i, j):
    return {
        "first": lambda: x[i],
        "second": lambda: x[:, j],
        "both": lambda: x[i, j],
        "grid": lambda: x[i[:, None], j],
        "last": lambda: x[..., j],
        "slice": lambda: x[1:, j],
        "steps": lambda: x[::2, j],
        "none": lambda: x[None, i],
        "middle": lambda: x[:, None, j],
        "negative": lambda: x[i - x.shape[0]],
        "apart": lambda: x[i, :, j],
        "number": lambda: x[0, j],
        "scalar": lambda: x[i[:1].reshape(())],
        "mask": lambda: x[torch.arange(x.shape[0], device=x.device) % 2 == 0],
        "mask_grid": lambda: x[torch.arange(x.shape[0], device=x.device) == 0, j[:1]],
        "list": lambda: x[[0, -1]],
    }[how]()


HOW = (
    *("first", "second", "both", "grid", "last", "slice", "none", "negative"),
    *("steps", "middle", "apart", "number", "scalar", "mask", "mask_grid", "list"),
)


def _first(c):
    return c.at(c.indices(c.shape[0], (4,)), c.shape[0])


def _second(c):
    """Return indices that are allowed for the second dimension and for the last."""
    below = c.shape[1] if len(c.shape) == 2 else min([*c.shape[1:], 1])
    return c.at(c.indices(below, (4,)), below)


PLACED = ("small", "four", "three", "high", "long", "five", "column", "row", "tall_column", "wide", "many", "middle")
t.add(
    "index",
    "any",
    _first,
    _second,
    act=lambda x, i, j, how: _picked(x, how, i, j),
    _how=HOW,
    _at=AT,
    forms=("call", "grad"),
    sizes=(*PLACED, "tall", "line"),
    terms=8,
    **EVERY,
)
t.add(
    "index_mask",
    "any",
    mask,
    act=lambda x, m: x[m],
    _at=MASK,
    forms=("call", "grad"),
    sizes=REDUCED,
    terms=8,
    **EVERY,
)
t.add(
    "index_mask_rows",
    "any",
    lambda c: c.draw("any", c.shape[:1], torch.bool),
    act=lambda x, m: (x[m], x[~m]),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "high", "three", "empty", "hollow", "column", "row", "many"),
    **EVERY,
)
t.add(
    "index_mask_columns",
    "any",
    lambda c: c.draw("any", c.shape[-1:], torch.bool),
    act=lambda x, m: (x[..., m], x[..., ~m]),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "high", "three", "empty", "hollow", "column", "row", "wide"),
    **EVERY,
)
t.add(
    "masked_select",
    "any",
    "mask:cast",
    _cast=(ABSENT, "row", "column", "none", "ones", "more"),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **EVERY,
)
t.add(
    "masked_select_whole",
    "any",
    mask,
    _at=MASK,
    paths=("torch.masked_select", "Tensor.masked_select"),
    forms=("call", "grad"),
    sizes=REDUCED,
    **EVERY,
)
t.add("masked_scatter", "any", mask, "any", _at=MASK, forms=("call", "inplace", "grad"), sizes=REDUCED, **EVERY)
t.add(
    "masked_scatter_cast",
    "any",
    "mask:cast",
    lambda c: c.draw("any", (max(c.draw("any", c.shape).numel(), 1) + 5,)),
    _cast=(ABSENT, "row", "column", "none", "ones"),
    paths=("torch.masked_scatter", "Tensor.masked_scatter"),
    forms=("call", "inplace", "grad"),
    sizes=("small", "four", "none", "line", "long", "column", "three", "middle"),
    **EVERY,
)
t.add(
    "bool_sums",
    "any",
    mask,
    act=lambda x, m: (
        m.sum(),
        m.sum(0),
        m.long().cumsum(0),
        m.any(),
        m.all(),
        m.sum(-1),
        m.cumsum(-1),
        m.any(-1),
        m.all(0),
    ),
    _at=MASK,
    dtypes="s",
    forms=("call",),
    sizes=REDUCED,
    values=("plain",),
)

ALL = slice(None)
# From the middle, to before the end, by steps, of several dimensions, of none, behind 2**16.
SLICES = (
    (slice(1, None, 2),),
    (Ellipsis, slice(None, -1)),
    (slice(1, 3), Ellipsis, slice(2, 5)),
    (-1,),
    (Ellipsis, 0),
    (slice(1, None),),
    (Ellipsis, slice(1, None, 2)),
    (ALL, slice(1, 3)),
    (Ellipsis, slice(None, None, 3)),
    (slice(2, 2),),
    (0, Ellipsis, -1),
    (ALL, slice(30, None)),
    (slice(65_537, None),),
    (Ellipsis,),
)
t.add(
    "sliced",
    act=lambda x, how: x[how] * 1,
    _how=(*SLICES, (None, Ellipsis, None), (ALL, None, slice(1, None))),
    dtypes="fic",
    forms=("call", "grad"),
    sizes=REDUCED,
)
WRITTEN = {"forms": ("inplace",), "sizes": REDUCED, "_how": SLICES}
t.add(
    "slice_written",
    "any",
    act=lambda x, v, how: x.__setitem__(how, v),
    _v=(0, 3, -1, 0.5, True),
    dtypes="fibc",
    values=("plain",),
    **WRITTEN,
)
# What is written is a tensor: of the slice's sides, of one row, of no dimension.
t.add(
    "slice_assigned",
    "any",
    "any",
    act=lambda x, y, part, how: x.__setitem__(
        how, {"whole": lambda: y[how], "one": lambda: y.reshape(-1)[0], "row": lambda: y[how][..., :1]}[part]()
    ),
    _part=("whole", "one", "row"),
    dtypes="fibc",
    values=("plain", "special"),
    **WRITTEN,
)
t.add(
    "slice_updated",
    "any",
    act=lambda x, v, how: x[how].add_(v),
    _v=(3, -1),
    dtypes="fic",
    values=("plain", "wide"),
    **WRITTEN,
)
t.add(
    "slice_moved",
    "any",
    act=lambda x, how: x[how].copy_(x.clone().flip(0)[how]),
    dtypes="fibc",
    values=("plain", "wide"),
    **WRITTEN,
)
for name in ("mul", "copy", "fill", "zero", "sub", "clamp", "neg", "exp", "sqrt", "div", "tanh", "sigmoid", "relu"):
    given = {"mul": (2,), "fill": (3,), "sub": (1,), "clamp": (0, 1), "div": (2,)}.get(name, ())
    t.add(
        f"slice_{name}",
        "positive",
        act=lambda x, how, name=name, given=given: getattr(x[how], name + "_")(
            *(given if name != "copy" else (x[how].flip(0) * 1,))
        ),
        _how=SLICES,
        dtypes="fi" if name in ("mul", "copy", "fill", "zero", "sub", "neg", "clamp", "relu") else "f",
        forms=("inplace",),
        sizes=("small", "four", "long", "line", "three", "high", "many", "wide", "tall", "middle"),
        values=("plain", "special"),
        factor=32.0,
        layouts_of=(0,),
    )
