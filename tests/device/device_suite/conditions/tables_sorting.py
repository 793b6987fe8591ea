"""Scans, sorting, what is unique and where."""

from __future__ import annotations

import torch

from .spec import ABSENT, REDUCED, Table

t = Table()
ONE = (0, -1, 1, -2)
DTYPE = (ABSENT, torch.float32, torch.int64, torch.float16)
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
    values=("plain", "wide", "inf"),
    **R,
)
t.add(
    "cumprod",
    "unit",
    dtypes="fibc",
    dim=ONE,
    dtype=(ABSENT, torch.float32, torch.int64),
    terms=64,
    floor=0.1,
    forms=("call", "inplace", "out", "grad"),
    values=("plain", "wide"),
    sizes=("small", "four", "none", "empty", "hollow", "one", "line", "three", "five", "six"),
)
t.add(
    "logcumsumexp",
    dtypes="f",
    dim=ONE,
    terms="all",
    forms=("call", "out", "grad"),
    values=("plain", "inf", "masked"),
    factor=64.0,
    **R,
)
# One element may get the gradients of a whole line.
CUMULATED = {"terms": "all", "forms": ("call", "out", "grad"), "values": ("plain", "wide")}
t.each("cummax cummin", "distinct", dtypes="fi", dim=ONE, **CUMULATED, **R)
t.add(
    "diff",
    dtypes="fib",
    n=(ABSENT, 1, 2),
    dim=(ABSENT, 0, -1),
    forms=("call", "out", "grad"),
    values=("plain", "wide"),
    terms=4,
    sizes=("small", "four", "line", "long", "three", "five"),
)
t.each(
    "trapezoid cumulative_trapezoid",
    dtypes="f",
    dim=(ABSENT, 0),
    dx=(ABSENT, 0.5),
    terms="all",
    floor=1.0,
    forms=("call", "grad"),
    values=("plain",),
    sizes=("small", "four", "line", "long"),
)
t.add(
    "gradient",
    dtypes="f",
    act=lambda x, **k: torch.gradient(x, **k),
    dim=(0, -1),
    edge_order=(1, 2),
    forms=("call", "grad"),
    values=("plain",),
    terms=8,
    sizes=("small", "four", "line"),
)

# Sorting and searching: equal values have no order, so they are distinct.
SORTED = {"dtypes": "fi", "values": ("plain", "inf")}
t.add(
    "sort",
    "distinct",
    dim=(ABSENT, 0, -1, 1),
    descending=(ABSENT, True),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **SORTED,
)
t.add(
    "sort_stable",
    "few",
    dtypes="fib",
    stable=(True,),
    dim=(0, -1, 1),
    descending=(ABSENT, True),
    paths=("torch.sort", "Tensor.sort"),
    forms=("call", "out"),
    values=("plain", "special", "ties"),
    sizes=REDUCED,
)
t.add(
    "argsort",
    "distinct",
    dtypes="fi",
    dim=(ABSENT, 0, 1),
    descending=(ABSENT, True),
    forms=("call",),
    values=("plain",),
    sizes=REDUCED,
)
t.add(
    "argsort_stable",
    "few",
    dtypes="fi",
    stable=(True,),
    dim=(0, -1),
    descending=(False, True),
    paths=("torch.argsort", "Tensor.argsort"),
    forms=("call",),
    values=("plain",),
    sizes=REDUCED,
)
t.add("msort", "distinct", forms=("call", "out", "grad"), sizes=REDUCED, **SORTED)
t.add(
    "topk",
    "distinct",
    dtypes="fi",
    k=(1, 2, 3, 5),
    dim=(ABSENT, 0, -1, 1),
    largest=(ABSENT, False),
    sorted=(ABSENT,),
    forms=("call", "out", "grad"),
    values=("plain", "inf"),
    sizes=REDUCED,
)
t.add(
    "topk_many",
    "distinct",
    dtypes="fi",
    k=(16, 17, 31),
    dim=(ABSENT, 0),
    largest=(ABSENT, False),
    paths=("torch.topk", "Tensor.topk"),
    forms=("call",),
    values=("plain",),
    sizes={"line": (67,), "rows": (40, 33), "long": (2, 1031), "high": (1031, 2)},
)
t.add(
    "unique",
    "few",
    dtypes="fib",
    sorted=(True,),
    return_inverse=(ABSENT, True),
    return_counts=(ABSENT, True),
    forms=("call",),
    values=("plain", "wide"),
    sizes=("small", "four", "none", "empty", "one", "line", "long"),
)
t.add(
    "unique_dim",
    "few",
    dtypes="fi",
    act=lambda x, **k: torch.unique(x, **k),
    dim=(0, 1, -1),
    return_inverse=(False, True),
    return_counts=(False, True),
    forms=("call",),
    values=("plain",),
    sizes={"rows": (30, 2), "columns": (2, 30), "three": (2, 3, 40)},
)
t.add(
    "unique_consecutive",
    "few",
    dtypes="fib",
    return_inverse=(ABSENT, True),
    return_counts=(ABSENT, True),
    dim=(ABSENT, 0),
    forms=("call",),
    values=("plain", "wide"),
    sizes=("small", "four", "line", "long", "empty"),
)
t.add("nonzero", "few", dtypes="fibc", forms=("call", "out"), values=("plain", "wide", "special"), sizes=REDUCED)
t.add(
    "nonzero_tuple",
    "few",
    dtypes="fib",
    as_tuple=(True,),
    paths=("torch.nonzero", "Tensor.nonzero"),
    forms=("call",),
    values=("plain",),
    sizes=REDUCED,
)
t.add("argwhere", "few", dtypes="fib", forms=("call",), values=("plain",), sizes=REDUCED)
t.add(
    "nonzero_static",
    "few",
    dtypes="fib",
    size=(3, 12, 100),
    fill_value=(ABSENT, -7),
    forms=("call", "out"),
    values=("plain",),
    sizes=("small", "four", "line", "empty"),
)
