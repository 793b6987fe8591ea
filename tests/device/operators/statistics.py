"""Spread, norms, medians and quantiles."""

from __future__ import annotations

import torch

from engine.description import ABSENT, LAID, REDUCED, Table
from engine.pools import LONE

from .reductions import FORMS, KEEP, ONE, SOME, R

t = Table()
# The CPU (2.13) sorts in place over an expanded dimension, so that its own answer is wrong.
UNSPREAD = tuple(layout for layout in LAID if layout != "expanded")
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
        else {**SPREAD, "values": ("plain", "wide", "special", "inf", "ties", "equal", "lone")},
    )
NORMED = {
    "forms": FORMS,
    "terms": "all",
    "factor": 32.0,
    "floor": 0.25,
    "values": ("plain", "wide", "special", "inf", "zero", "lone"),
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
    values=("plain", "inf", "special", "sorted", "descending", *LONE),
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
    dtypes="fi",
    k=(1, 2, 3, 5, 31),
    dim=(ABSENT, *ONE),
    keepdim=KEEP,
    forms=("call", "out", "grad"),
    values=("plain", "inf", "special", "sorted", "descending", *LONE),
    **R,
    layouts=UNSPREAD,
)
QUANTILE = {
    "dim": (ABSENT, None, 0, -1, 1, -2),
    "keepdim": KEEP,
    "interpolation": (ABSENT, "linear", "lower", "higher", "nearest", "midpoint"),
    "dtypes": "s",
    "forms": ("call", "out", "grad"),
    "values": ("plain", "wide", "special", "inf", "ties", "equal", "sorted", "lone"),
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
        laid=(0,),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        **{**QUANTILE, "interpolation": (ABSENT, "lower", "midpoint")},
    )
