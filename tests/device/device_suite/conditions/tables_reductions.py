"""Reductions: sums, norms, extremes, quantiles."""

from __future__ import annotations

import torch

from .spec import ABSENT, LAID, REDUCED, Table

t = Table()

KEEP = (ABSENT, True)
# The CPU (2.13) sorts in place over an expanded dimension, so that its own answer is wrong.
UNSPREAD = tuple(layout for layout in LAID if layout != "expanded")
ONE = (0, -1, 1, -2)
SOME = (ABSENT, 0, -1, (0, 1), (-1,), (0, -1))
DTYPE = (ABSENT, torch.float32, torch.int64, torch.float16)
R = {"sizes": REDUCED}
FORMS = ("call", "out", "grad")

t.each("sum nansum", dtypes="fibc", dim=SOME, keepdim=KEEP, dtype=DTYPE, terms="all", floor=1.0, forms=FORMS, **R)
t.add(
    "mean", dtypes="fc", dim=SOME, keepdim=KEEP, dtype=(ABSENT, torch.float32), terms="all", floor=1.0, forms=FORMS, **R
)
# Without 65,543 elements: float16 cannot hold their number.
COUNTED = tuple(size for size in REDUCED if size != "tall")
t.add("nanmean", dtypes="f", dim=SOME, keepdim=KEEP, terms="all", floor=1.0, forms=FORMS, sizes=COUNTED)
t.add(
    "prod_all",
    "unit",
    dtypes="fibc",
    dtype=DTYPE,
    paths=("torch.prod", "Tensor.prod"),
    terms=64,
    floor=1e-3,
    forms=("call", "grad"),
    values=("plain", "wide", "inf"),
    sizes=("small", "four", "none", "empty", "one", "line"),
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
    values=("plain", "wide"),
    sizes=("small", "four", "none", "empty", "hollow", "one", "line", "three", "five"),
)
t.each(
    "amax amin",
    "distinct",
    dtypes="fib",
    dim=SOME,
    keepdim=KEEP,
    forms=FORMS,
    values=("plain", "wide", "special", "inf"),
    **R,
)
t.each(
    "max min",
    "distinct",
    dtypes="fi",
    dim=ONE,
    keepdim=KEEP,
    forms=("call", "grad"),
    values=("plain", "wide"),
    sizes=REDUCED,
    paths=(),
    finish=None,
)
for name in (
    "max",
    "min",
    "any",
    "all",
    "argmax",
    "argmin",
    "median",
    "nanmedian",
    "std",
    "var",
    "norm",
    "count_nonzero",
):
    special = ("plain", "wide", "special") if name not in ("std", "var", "norm") else ("plain",)
    t.add(
        f"{name}_all",
        "distinct" if name not in ("any", "all", "count_nonzero") else "few",
        dtypes="f" if name in ("std", "var", "norm") else "fib",
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call", "grad") if name in ("max", "min", "std", "var", "norm", "median") else ("call",),
        values=special if name not in ("argmax", "argmin") else ("plain",),
        terms="all",
        floor=0.25,
        factor=32.0,
        **R,
    )
t.each(
    "any all",
    "few",
    dtypes="fibc",
    dim=(0, -1, 1, (0, 1), (0, -1)),
    keepdim=KEEP,
    forms=("call", "out"),
    values=("plain", "wide", "special"),
    **R,
)
t.each(
    "argmax argmin",
    "distinct",
    dtypes="fi",
    dim=(ABSENT, 0, -1, 1),
    keepdim=KEEP,
    forms=("call", "out"),
    values=("plain", "inf"),
    **R,
)
t.add(
    "aminmax",
    "distinct",
    dtypes="fib",
    dim=(ABSENT, 0, -1),
    keepdim=KEEP,
    forms=("call", "out"),
    values=("plain", "wide", "special"),
    **R,
)
t.add("count_nonzero", "few", dtypes="fibc", dim=(0, -1, (0, 1)), forms=("call",), values=("plain", "wide"), **R)
SPREAD = {"terms": "all", "factor": 32.0, "floor": 0.25, "values": ("plain",), "sizes": REDUCED}
t.each("std var", dtypes="fc", dim=SOME, correction=(ABSENT, 0, 2), keepdim=KEEP, forms=FORMS, **SPREAD)
t.each(
    "std_mean var_mean", dtypes="f", dim=SOME, correction=(ABSENT, 0, 2), keepdim=KEEP, forms=("call", "grad"), **SPREAD
)
for name in ("std", "var"):
    t.add(
        f"{name}_unbiased",
        dtypes="f",
        unbiased=(True, False),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call",),
        **SPREAD,
    )
t.add(
    "logsumexp",
    dtypes="fi",
    dim=(0, -1, (0, 1)),
    keepdim=KEEP,
    forms=FORMS,
    terms="all",
    factor=16.0,
    values=("plain", "wide", "inf", "masked"),
    **R,
)
t.add(
    "norm",
    dtypes="f",
    p=(2, 1, 0, float("inf"), float("-inf"), 3, 0.5),
    dim=(0, -1, (0, 1), (0,)),
    keepdim=KEEP,
    forms=("call", "out", "grad"),
    terms="all",
    factor=32.0,
    floor=0.25,
    values=("plain",),
    **R,
)
t.add(
    "norm_dtype",
    dtypes="f",
    p=(2, 1),
    dim=(0, (0, 1)),
    dtype=(torch.float32,),
    paths=("torch.norm", "Tensor.norm"),
    forms=("call",),
    terms="all",
    values=("plain",),
    **R,
)
t.add(
    "linalg_vector_norm",
    dtypes="fc",
    ord=(ABSENT, 1, 0, float("inf"), float("-inf"), 3.5),
    dim=(ABSENT, 0, -1, (0, 1)),
    keepdim=KEEP,
    dtype=(ABSENT, torch.float32),
    forms=FORMS,
    terms="all",
    factor=32.0,
    floor=0.25,
    values=("plain", "special"),
    **R,
)
t.add(
    "renorm",
    p=(1, 2, 0.5, float("inf")),
    dim=(0, -1, 1),
    maxnorm=(1.0, 5.0),
    dtypes="f",
    terms="all",
    factor=32.0,
    values=("plain",),
    sizes=("small", "four", "long", "three", "five"),
)
t.each(
    "median nanmedian",
    "distinct",
    dtypes="fi",
    dim=ONE,
    keepdim=KEEP,
    forms=("call", "grad"),
    values=("plain", "inf"),
    **R,
    layouts=UNSPREAD,
)
t.add(
    "mode",
    "distinct",
    dtypes="fi",
    dim=ONE,
    keepdim=KEEP,
    forms=("call",),
    values=("plain",),
    finish=lambda y: y[0],
    sizes=("small", "four", "none", "one", "three"),
    layouts=UNSPREAD,
)
t.add(
    "kthvalue",
    "distinct",
    dtypes="fi",
    k=(1, 2, 3),
    dim=(ABSENT, 0, -1, 1),
    keepdim=KEEP,
    forms=("call", "out", "grad"),
    values=("plain",),
    **R,
    layouts=UNSPREAD,
)
t.add(
    "quantile",
    "distinct",
    dtypes="s",
    q=(0.0, 0.3, 0.5, 1.0),
    dim=(ABSENT, 0, -1),
    keepdim=KEEP,
    interpolation=(ABSENT, "lower", "higher", "nearest", "midpoint"),
    forms=("call", "out", "grad"),
    values=("plain",),
    sizes=("small", "four", "line", "long", "three"),
    factor=64.0,
)
t.add(
    "nanquantile",
    "distinct",
    dtypes="s",
    q=(0.25, 0.5),
    dim=(ABSENT, 0, -1),
    forms=("call",),
    values=("plain", "special"),
    sizes=("small", "four", "line"),
    factor=64.0,
)
