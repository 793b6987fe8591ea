"""Reductions: sums, products, extremes, what is true of any and of all."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table
from engine.pools import LONE

t = Table()

KEEP = (ABSENT, True)
ONE = (0, -1, 1, -2, 2)
SOME = (ABSENT, None, 0, -1, 1, -2, (0, 1), (0, -1), (1, 2), ())
GIVEN = SOME[2:]
DTYPE = (ABSENT, torch.float32, torch.int64, torch.float16, torch.int32, torch.bool, torch.complex64)
R = {"sizes": REDUCED}
FORMS = ("call", "out", "grad")
# Of values that are equal, the first is named.
ORDERED = ("plain", "wide", "special", "inf", "ties", "equal", "sorted", "descending", "lone")

SUMMED = {"terms": "all", "floor": 1.0, "forms": FORMS, "values": ("plain", "wide", "special", "inf", "equal", "lone")}
t.add("sum", dtypes="fibc", dim=SOME, keepdim=KEEP, dtype=DTYPE, **SUMMED, **R)
t.add("nansum", dtypes="fib", dim=SOME, keepdim=KEEP, dtype=DTYPE, **SUMMED, **R)
t.add(
    "mean",
    dtypes="fibc",
    dim=SOME,
    keepdim=KEEP,
    dtype=(ABSENT, torch.float32, torch.float16, torch.complex64),
    **SUMMED,
    **R,
)
# Without 65,543 elements: float16 cannot hold their number.
COUNTED = tuple(size for size in REDUCED if size not in ("tall", "lone", "wide", "many"))
t.add("nanmean", dtypes="f", dim=SOME, keepdim=KEEP, dtype=(ABSENT, torch.float32), sizes=COUNTED, **SUMMED)
t.add(
    "sum_to_size",
    act=lambda x, how: x.sum_to_size(
        {"one": (1,), "row": x.shape[-1:], "column": (*x.shape[:-1], 1), "all": x.shape, "first": (1, *x.shape[1:])}[
            how
        ]
    ),
    _how=("one", "row", "column", "all", "first"),
    dtypes="fic",
    terms="all",
    floor=1.0,
    forms=("call", "grad"),
    values=("plain", "wide"),
    **R,
)
t.add(
    "prod_all",
    "unit",
    dtypes="fibc",
    dtype=DTYPE,
    paths=("torch.prod", "Tensor.prod"),
    terms=64,
    floor=1e-3,
    forms=("call", "grad"),
    values=("plain", "wide", "inf", "zero"),
    sizes=("small", "four", "none", "empty", "hollow", "one", "line", "column", "row", "three", "long"),
)
t.add(
    "prod",
    "few",
    dtypes="fibc",
    dim=ONE,
    keepdim=KEEP,
    dtype=DTYPE,
    terms=64,
    floor=1.0,
    forms=FORMS,
    values=("plain", "wide", "special", "inf", "equal"),
    sizes=(
        *("small", "four", "none", "empty", "hollow", "one", "line", "three", "five"),
        *("row", "lone", "many", "high", "middle"),
    ),
)
t.each("amax amin", "distinct", dtypes="fib", dim=SOME, keepdim=KEEP, forms=FORMS, values=ORDERED, **R)
t.each("max min", "distinct", dtypes="fib", dim=ONE, keepdim=KEEP, forms=FORMS, values=ORDERED, **R)
for name in ("any", "all", "count_nonzero"):
    t.add(
        f"{name}_all",
        "few",
        dtypes="fibc",
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call",),
        values=(*ORDERED[:-1], "zero", "lone"),
        **R,
    )
# Of nothing there is no extreme.
FILLED = tuple(size for size in REDUCED if size not in ("empty", "hollow"))
for name in ("max", "min", "argmax", "argmin"):
    t.add(
        f"{name}_all",
        "distinct",
        dtypes="fi" if name.startswith("arg") else "fib",
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call",) if name.startswith("arg") else ("call", "grad"),
        values=ORDERED,
        sizes=FILLED,
    )
t.each(
    "any all",
    "few",
    dtypes="fibc",
    dim=SOME[1:],
    keepdim=KEEP,
    forms=("call", "out"),
    values=("plain", "wide", "special", "equal", "zero"),
    **R,
)
t.each(
    "argmax argmin",
    "distinct",
    dtypes="fi",
    dim=(ABSENT, None, *ONE),
    keepdim=KEEP,
    forms=("call", "out"),
    values=ORDERED,
    **R,
)
t.add(
    "aminmax",
    "distinct",
    dtypes="fib",
    dim=(ABSENT, *ONE),
    keepdim=KEEP,
    forms=FORMS,
    values=ORDERED,
    **R,
)
t.add(
    "count_nonzero",
    "few",
    dtypes="fibc",
    dim=SOME[1:],
    forms=("call",),
    values=("plain", "wide", "special", "equal", "zero"),
    **R,
)
t.add(
    "logsumexp",
    dtypes="fi",
    dim=GIVEN,
    keepdim=KEEP,
    forms=FORMS,
    terms="all",
    factor=16.0,
    values=("plain", "wide", "inf", "masked", "special", "equal", *LONE),
    paths=("torch.logsumexp", "Tensor.logsumexp", "special.logsumexp"),
    **R,
)
