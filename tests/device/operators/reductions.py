"""Reductions: sums, products, extremes, truth, spread, norms, medians and quantiles."""

from __future__ import annotations

import torch

from engine.description import ABSENT, ANY_LAYOUT, REDUCED, Table
from engine.pools import SINGLES

t = Table()

KEEP = (ABSENT, True)
ONE = (0, -1, 1, -2, 2)
SOME = (ABSENT, None, 0, -1, 1, -2, (0, 1), (0, -1), (1, 2), ())
GIVEN = SOME[2:]
DTYPE = (ABSENT, torch.float32, torch.int64, torch.float16, torch.int32, torch.bool, torch.complex64)
R = {"sizes": REDUCED}
FORMS = ("call", "out", "grad")
# Of values that are equal, the first is named.
ORDERED = ("plain", "wide", "special", "inf", "ties", "equal", "sorted", "descending", "single")

SUMMED = {
    "terms": "all",
    "floor": 1.0,
    "forms": FORMS,
    "values": ("plain", "wide", "special", "inf", "equal", "single"),
}
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
COUNTED = tuple(size for size in REDUCED if size not in ("tall", "tall_column", "wide", "many"))
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
        *("row", "tall_column", "many", "high", "middle"),
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
        values=(*ORDERED[:-1], "zero", "single"),
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
    values=("plain", "wide", "inf", "masked", "special", "equal", *SINGLES),
    paths=("torch.logsumexp", "Tensor.logsumexp", "special.logsumexp"),
    **R,
)

# The CPU (2.13) sorts in place over an expanded dimension, so that its own answer is wrong.
UNSPREAD = tuple(layout for layout in ANY_LAYOUT if layout != "expanded")
INF = float("inf")

SPREAD = {
    "terms": "all",
    "factor": 32.0,
    "floor": 0.25,
    "values": ("plain", "wide", "special", "inf", "equal"),
    "sizes": REDUCED,
}
# The mean beside the deviation is added up in another way: of infinities it is NaN or not.
WITH_MEAN = {**SPREAD, "values": ("plain", "wide", "zero", "equal")}
CORRECTION = (ABSENT, None, 0, 1, 2, 0.5, 33)
t.each("std var", dtypes="fc", dim=SOME, correction=CORRECTION, keepdim=KEEP, forms=FORMS, **SPREAD)
t.each(
    "std_mean var_mean", dtypes="fc", dim=SOME, correction=CORRECTION, keepdim=KEEP, forms=("call", "grad"), **WITH_MEAN
)
for name in ("std", "var", "std_mean", "var_mean"):
    t.add(
        f"{name}_unbiased",
        dtypes="f",
        dim=(ABSENT, 0, -1, (0, 1)),
        unbiased=(True, False),
        paths=(f"torch.{name}", f"Tensor.{name}") if "mean" not in name else (f"torch.{name}",),
        forms=("call", "grad"),
        **(WITH_MEAN if "mean" in name else SPREAD),
    )
for name in ("std", "var", "norm", "median", "nanmedian"):
    t.add(
        f"{name}_all",
        "distinct",
        dtypes="fib" if "median" in name else "f",
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call", "grad"),
        **SPREAD
        if "median" not in name
        else {**SPREAD, "values": ("plain", "wide", "special", "inf", "ties", "equal", "single")},
    )
NORMED = {
    "forms": FORMS,
    "terms": "all",
    "factor": 32.0,
    "floor": 0.25,
    "values": ("plain", "wide", "special", "inf", "zero", "single"),
    **R,
}
t.add(
    "norm",
    dtypes="f",
    p=(ABSENT, 2, 1, 0, INF, -INF, 3, 0.5, -1, "fro"),
    dim=(None, 0, -1, 1, -2, (0, 1), (0,), (1, 2)),
    keepdim=KEEP,
    **NORMED,
)
t.add(
    "norm_dtype",
    dtypes="f",
    p=(2, 1, 0, INF, 3, 0.5),
    dim=(0, -1, (0, 1), (0, -1)),
    keepdim=KEEP,
    dtype=(torch.float32,),
    paths=("torch.norm", "Tensor.norm"),
    forms=("call",),
    terms="all",
    values=("plain", "wide"),
    **R,
)
t.add(
    "linalg_vector_norm",
    dtypes="fc",
    ord=(ABSENT, 2, 1, 0, INF, -INF, 3.5, 0.5, -1),
    dim=SOME,
    keepdim=KEEP,
    dtype=(ABSENT, torch.float32),
    **NORMED,
)
t.add(
    "norm_except_dim",
    pow=(ABSENT, 1, 2, 3),
    dim=(ABSENT, 0, 1, -1),
    dtypes="f",
    forms=("call", "grad"),
    terms="all",
    factor=32.0,
    values=("plain", "wide"),
    paths=("torch.norm_except_dim",),
    sizes=("small", "four", "line", "column", "row", "long", "three"),
)
t.add(
    "renorm",
    p=(1, 2, 0.5, INF, 3),
    dim=(0, -1, 1, -2),
    maxnorm=(1.0, 5.0, 0.0, 1e-12, 1e4),
    dtypes="f",
    terms="all",
    factor=32.0,
    values=("plain", "wide", "zero"),
    sizes=("small", "four", "long", "three", "five", "column", "row", "middle", "many", "empty"),
)
# Where several values are the middle one, any of their places is right: only what is distinct has an index.
t.each(
    "median nanmedian",
    "distinct",
    dtypes="fi",
    dim=ONE,
    keepdim=KEEP,
    forms=("call", "out", "grad"),
    values=("plain", "inf", "special", "sorted", "descending", *SINGLES),
    **R,
    layouts=UNSPREAD,
)
t.add(
    "mode",
    "distinct",
    dtypes="fi",
    dim=(ABSENT, *ONE),
    keepdim=KEEP,
    forms=("call", "grad"),
    values=("plain", "equal", "sorted"),
    finish=lambda y: y[0],
    sizes=("small", "four", "none", "one", "three", "row", "high", "middle"),
    layouts=UNSPREAD,
)
t.add(
    "kthvalue",
    "distinct",
    without=("chained",),  # which of two equal ones is named is open
    dtypes="fi",
    k=(1, 2, 3, 5, 31),
    dim=(ABSENT, *ONE),
    keepdim=KEEP,
    forms=("call", "out", "grad"),
    values=("plain", "inf", "special", "sorted", "descending", *SINGLES),
    **R,
    layouts=UNSPREAD,
)
QUANTILE = {
    "dim": (ABSENT, None, 0, -1, 1, -2),
    "keepdim": KEEP,
    "interpolation": (ABSENT, "linear", "lower", "higher", "nearest", "midpoint"),
    "dtypes": "s",
    "forms": ("call", "out", "grad"),
    "values": ("plain", "wide", "special", "inf", "ties", "equal", "sorted", "single"),
    "sizes": ("small", "four", "none", "one", "line", "long", "three", "column", "row", "many"),
    "factor": 64.0,
}
for name in ("quantile", "nanquantile"):
    t.add(name, "distinct", q=(0.0, 0.3, 0.5, 1.0, 0.25, 0.99), **QUANTILE)
    # One answer for each of several places, in no order, and for none.
    t.add(
        f"{name}_many",
        "distinct",
        lambda c: torch.tensor([0.5, 0.0, 0.75, 1.0, 0.5][: c.args.get("_at", 5)], dtype=c.dtype),
        _at=(ABSENT, 1, 2, 0),
        layouts_of=(0,),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        **{**QUANTILE, "interpolation": (ABSENT, "lower", "midpoint")},
    )
