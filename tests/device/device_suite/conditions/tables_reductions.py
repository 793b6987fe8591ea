"""Reductions, scans, sorting and searching."""

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
t.add(
    "bincount",
    lambda c: c.indices(9, c.shape),
    dtypes="s",
    minlength=(ABSENT, 5, 20),
    act=lambda x, **k: torch.bincount(x, **k),
    forms=("call",),
    values=("plain",),
    sizes=("line", "tall", "one", "empty"),
)
t.add(
    "bincount_dtypes",
    "small",
    dtypes="i",
    minlength=(ABSENT, 12),
    paths=("torch.bincount", "Tensor.bincount"),
    forms=("call",),
    values=("plain",),
    sizes=("line", "one", "tall"),
)
t.add(
    "bincount_weights",
    "small",
    lambda c: c.draw("positive", c.shape, torch.float32),
    dtypes="i",
    act=lambda x, w: torch.bincount(x, w),
    forms=("call",),
    values=("plain",),
    sizes=("line", "tall"),
    terms=64,
    factor=1e4,
)
t.add(
    "histc",
    dtypes="f",
    bins=(ABSENT, 10, 7),
    min=(ABSENT, -2),
    max=(ABSENT, 3),
    forms=("call", "out"),
    values=("plain",),
    sizes=("small", "four", "line", "long"),
)
t.add(
    "histogram",
    dtypes="s",
    bins=(5, 10),
    range=(ABSENT, (-2.0, 3.0)),
    density=(ABSENT, True),
    forms=("call",),
    values=("plain",),
    sizes=("small", "four", "line", "long"),
    factor=64.0,
)
t.add(
    "histogram_edges",
    "any",
    lambda c: torch.tensor([-3.0, -1.0, 0.25, 2.0, 3.5]).to(c.dtype),
    dtypes="s",
    density=(ABSENT, True),
    paths=("torch.histogram", "Tensor.histogram"),
    forms=("call", "out"),
    values=("plain",),
    sizes=("small", "four", "long"),
    factor=64.0,
)
EDGES = lambda c: torch.tensor([-4, -2, -1, 0, 1, 3] if c.dtype != torch.uint8 else [0, 1, 2, 3, 4, 9]).to(c.dtype)
t.add(
    "bucketize",
    "few",
    EDGES,
    dtypes="fi",
    out_int32=(ABSENT, True),
    right=(ABSENT, True),
    forms=("call", "out"),
    values=("plain", "wide"),
    sizes=REDUCED,
)
t.add(
    "searchsorted",
    EDGES,
    "few",
    dtypes="fi",
    out_int32=(ABSENT, True),
    right=(ABSENT, True),
    forms=("call", "out"),
    values=("plain", "wide"),
    sizes=REDUCED,
)
t.add(
    "searchsorted_rows",
    lambda c: c.draw("distinct", (4, 9), values="plain").sort(-1)[0],
    lambda c: c.draw("few", (4, c.shape[-1] if c.shape else 1)),
    dtypes="fi",
    side=("left", "right"),
    out_int32=(ABSENT, True),
    paths=("torch.searchsorted",),
    forms=("call", "out"),
    values=("plain",),
    sizes=("small", "line", "long", "hollow"),
)
t.add(
    "searchsorted_sorter",
    lambda c: c.draw("distinct", (9,), values="plain"),
    "few",
    dtypes="s",
    act=lambda s, x: torch.searchsorted(s, x, sorter=s.argsort()),
    forms=("call",),
    values=("plain",),
    sizes=("small", "line"),
)
t.add(
    "searchsorted_scalar",
    EDGES,
    dtypes="fi",
    _value=(0, 2, -3),
    right=(ABSENT, True),
    paths=("torch.searchsorted",),
    forms=("call",),
    values=("plain",),
    sizes=("small",),
)
t.add(
    "isin",
    "few",
    lambda c: torch.tensor([1, 3, 2]).to(c.dtype),
    dtypes="fi",
    invert=(ABSENT, True),
    assume_unique=(ABSENT,),
    forms=("call", "out"),
    values=("plain",),
    sizes=REDUCED,
)
t.add(
    "isin_scalar",
    "few",
    dtypes="fi",
    _test=(1, 2),
    invert=(ABSENT, True),
    paths=("torch.isin",),
    forms=("call", "out"),
    values=("plain",),
)
t.add(
    "isin_element",
    "few",
    dtypes="fi",
    act=lambda x, a, **k: torch.isin(a, x, **k),
    _a=(1, 9),
    invert=(False, True),
    forms=("call",),
    values=("plain",),
    sizes=("small", "four", "empty", "line"),
)
t.add(
    "trace",
    dtypes="fibc",
    terms=8,
    floor=1.0,
    forms=("call", "grad"),
    values=("plain", "wide"),
    sizes=("small", "tiles", "long", "high"),
)
t.each(
    "softmax log_softmax",
    dtypes="f",
    dim=(0, -1, 1),
    dtype=(ABSENT, torch.float32),
    factor=32.0,
    forms=("call", "out", "grad"),
    values=("plain", "wide", "inf", "masked"),
    sizes=REDUCED,
)
t.add("softmin", dtypes="f", dim=(0, -1, 1), factor=32.0, forms=("call", "grad"), values=("plain",), sizes=REDUCED)
for name in ("_softmax", "_log_softmax"):
    t.add(
        name,
        dtypes="f",
        _dim=(0, -1, 1),
        _half=(False,),
        factor=32.0,
        paths=(f"aten.{name}",),
        forms=("call", "out"),
        values=("plain",),
        sizes=("small", "four", "none", "long", "three"),
    )
