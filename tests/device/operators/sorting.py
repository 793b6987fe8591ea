"""Scans, differences and sorting; what is unique, and where it is."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table
from engine.pools import SINGLES

t = Table()
ONE = (0, -1, 1, -2, 2)
DTYPE = (ABSENT, torch.float32, torch.int64, torch.float16, torch.int32, torch.complex64)
R = {"sizes": REDUCED}

# Scans.
t.add(
    "cumsum",
    dtypes="fibc",
    dim=ONE,
    dtype=DTYPE,
    terms="all",
    floor=1.0,
    forms=("call", "inplace", "out", "grad"),
    values=("plain", "wide", "inf", "special", "equal", *SINGLES),
    **R,
)
t.add(
    "cumprod",
    "unit",
    dtypes="fibc",
    dim=ONE,
    dtype=DTYPE,
    terms=64,
    floor=0.1,
    forms=("call", "inplace", "out", "grad"),
    values=("plain", "wide", "inf", "special", *SINGLES),
    sizes=(
        *("small", "four", "none", "empty", "hollow", "one", "line", "three", "five", "six"),
        *("high", "row", "tall_column", "many", "middle"),
    ),
)
# Zeros have gradients of their own.
t.add(
    "cumprod_zeros",
    "few",
    dtypes="fi",
    dim=ONE,
    terms=64,
    floor=1.0,
    paths=("torch.cumprod", "Tensor.cumprod"),
    forms=("call", "grad"),
    values=("plain", "zero", "equal"),
    sizes=("small", "four", "line", "three", "row", "column"),
)
t.add(
    "logcumsumexp",
    dtypes="f",
    dim=ONE,
    terms="all",
    forms=("call", "out", "grad"),
    values=("plain", "wide", "inf", "masked", "special", "equal", *SINGLES),
    factor=64.0,
    **R,
)
# One element may get the gradients of a whole line.
t.each(
    "cummax cummin",
    "distinct",
    dtypes="fib",
    dim=ONE,
    terms="all",
    forms=("call", "out", "grad"),
    values=("plain", "wide", "special", "inf", "ties", "sorted", "descending", *SINGLES),
    **R,
)
DIFFERENCES = {
    "n": (ABSENT, 0, 1, 2, 3, 9),
    "dim": (ABSENT, 0, -1, 1, -2),
    "dtypes": "fib",
    "forms": ("call", "out", "grad"),
    "values": ("plain", "wide", "special", "inf"),
    "terms": 4,
    "sizes": ("small", "four", "one", "line", "long", "three", "five", "column", "row", "many", "empty"),
}
t.add("diff", **DIFFERENCES)


def _beside(c):
    """Return what is joined to an end of the dimension: two of its places, or none."""
    dim = c.args.get("dim", -1)
    return c.draw("any", [c.args.get("_at", 2) if d == dim % len(c.shape) else s for d, s in enumerate(c.shape)])


t.add(
    "diff_joined",
    "any",
    _beside,
    _beside,
    act=lambda x, before, after, **k: torch.diff(x, prepend=before, append=after, **k),
    _at=(ABSENT, 1, 0),
    **{**DIFFERENCES, "forms": ("call", "grad")},
)
AREAS = {
    "dim": (ABSENT, 0, -1, 1, -2),
    "dtypes": "fc",
    "terms": "all",
    "floor": 1.0,
    "forms": ("call", "grad"),
    "values": ("plain", "wide", "special"),
    "sizes": ("small", "four", "one", "line", "long", "column", "row", "many", "three", "empty"),
}
t.each("trapezoid cumulative_trapezoid trapz", dx=(ABSENT, 1, 0.5, 0, -2.0), **AREAS)
for name in ("trapezoid", "cumulative_trapezoid"):
    t.add(
        f"{name}_at",
        "any",
        lambda c: c.draw(
            "any", c.shape if c.args.get("_at") is None else (c.shape[c.args.get("dim", -1)] if c.shape else 1,)
        ),
        _at=(ABSENT, "line"),
        paths=(f"torch.{name}",),
        **AREAS,
    )
t.add(
    "gradient",
    dtypes="fc",
    act=lambda x, **k: torch.gradient(x, **k),
    spacing=(ABSENT, 1, 0.5, 2.0, -1.0),
    dim=(ABSENT, 0, -1, 1, (0, 1), -2),
    edge_order=(ABSENT, 1, 2),
    forms=("call", "grad"),
    values=("plain", "wide"),
    terms=8,
    sizes=("small", "four", "line", "long", "three", "high"),
)
t.add(
    "gradient_at",
    "any",
    lambda c: c.draw("positive", (c.shape[c.args["dim"]] if c.shape else 1,), values="plain").cumsum(0),
    act=lambda x, at, **k: torch.gradient(x, spacing=(at,), **k),
    dim=(0, -1, 1),
    edge_order=(ABSENT, 2),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    terms=8,
    factor=64.0,
    sizes=("small", "four", "line"),
    layouts_of=(0,),
)

# Sorting: equal values have no order, so they are distinct, or the order is to be kept.
ORDERED = ("plain", "wide", "inf", "special", "sorted", "descending")
SORTED = {"dtypes": "fi", "values": (*ORDERED, *SINGLES)}
DESCENDING = (ABSENT, True)
t.add(
    "sort",
    "distinct",
    without=("chained",),  # small integers repeat: which of two equal ones comes first is open
    dim=(ABSENT, *ONE),
    descending=DESCENDING,
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **SORTED,
)
t.add(
    "sort_stable",
    "few",
    dtypes="fib",
    stable=(True,),
    dim=ONE,
    descending=DESCENDING,
    paths=("torch.sort", "Tensor.sort"),
    forms=("call", "out", "grad"),
    values=(*ORDERED, "ties", "equal", *SINGLES),
    sizes=REDUCED,
)
t.add(
    "argsort",
    "distinct",
    dim=(ABSENT, *ONE),
    descending=DESCENDING,
    forms=("call",),
    sizes=REDUCED,
    **SORTED,
)
t.add(
    "argsort_stable",
    "few",
    dtypes="fib",
    stable=(True,),
    dim=(ABSENT, *ONE),
    descending=DESCENDING,
    paths=("torch.argsort", "Tensor.argsort"),
    forms=("call",),
    values=(*ORDERED, "ties", "equal", *SINGLES),
    sizes=REDUCED,
)
t.add("msort", "distinct", forms=("call", "out", "grad"), sizes=REDUCED, **SORTED)
t.add(
    "topk",
    "distinct",
    k=(1, 2, 3, 5, 0, 32),
    dim=(ABSENT, *ONE),
    largest=(ABSENT, False),
    sorted=(ABSENT, True),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **SORTED,
)
TOP = {"dim": (-1, 0, 1, -2), "largest": (True, False), "dtypes": "fi", "forms": ("call",)}
t.add(
    "topk_unsorted",
    "distinct",
    act=lambda x, k, dim, largest: torch.topk(x, k, dim, largest, sorted=False)[0].sort(dim)[0],
    _k=(1, 2, 3, 5),
    values=(*ORDERED, "ties", "equal", *SINGLES),
    sizes=REDUCED,
    **TOP,
)
t.add(
    "topk_many",
    "distinct",
    k=(16, 17, 31, 32, 33, 64),
    paths=("torch.topk", "Tensor.topk"),
    values=("plain", "inf", "sorted", *SINGLES),
    sizes={
        "line": (67,),
        "rows": (40, 64),
        "long": (2, 1031),
        "high": (1031, 2),
        "wide": (2, 40009),
        "middle": (3, 64, 5),
    },
    **TOP,
)

MET = ("plain", "wide", "special", "ties", "equal", "sorted", *SINGLES)
SIZES = ("small", "four", "none", "empty", "hollow", "one", "line", "long", "column", "row", "wide", "middle", "six")
FLAGS = {"return_inverse": (ABSENT, True), "return_counts": (ABSENT, True), "forms": ("call",)}

t.add("unique", "few", dtypes="fib", sorted=(ABSENT, True), values=MET, sizes=SIZES, **FLAGS)
t.add(
    "unique_unsorted",
    "few",
    dtypes="fib",
    act=lambda x: torch.unique(x, sorted=False).sort()[0],
    forms=("call",),
    values=MET,
    sizes=SIZES,
)
t.add(
    "unique_dim",
    "few",
    dtypes="fib",
    act=lambda x, **k: torch.unique(x, **k),
    dim=(0, 1, -1, -2, 2),
    values=("plain", "ties", "equal", "sorted"),
    sizes={
        "rows": (30, 2),
        "columns": (2, 30),
        "three": (2, 3, 40),
        "column": (33, 1),
        "row": (1, 33),
        "middle": (2, 32, 3),
        "high": (1031, 2),
        "line": (67,),
        "empty": (0, 3),
    },
    **FLAGS,
)
t.add("unique_consecutive", "few", dtypes="fib", dim=(ABSENT, None, 0, 1, -1, -2), values=MET, sizes=SIZES, **FLAGS)
FOUND = {"dtypes": "fibc", "values": ("plain", "wide", "special", "inf", "equal", "zero"), "sizes": REDUCED}
t.add("nonzero", "few", forms=("call", "out"), **FOUND)
t.add("nonzero_tuple", "few", as_tuple=(True,), paths=("torch.nonzero", "Tensor.nonzero"), forms=("call",), **FOUND)
t.add("argwhere", "few", forms=("call",), **FOUND)
t.add("where_alone", "few", paths=("torch.where",), forms=("call",), **FOUND)
t.add(
    "nonzero_static",
    "few",
    dtypes="fib",
    size=(0, 1, 3, 12, 100),
    fill_value=(ABSENT, -1, 0, -7, 5),
    forms=("call", "out"),
    values=("plain", "wide", "special", "zero"),
    sizes=("small", "four", "none", "line", "empty", "hollow", "long", "column", "row", "three"),
)
