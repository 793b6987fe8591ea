"""Slices: read, written and updated in place."""

from __future__ import annotations

from engine.description import REDUCED, Table

t = Table()
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
        laid=(0,),
    )
