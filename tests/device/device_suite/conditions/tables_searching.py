"""Counting and searching: histograms, buckets, membership; softmax along a side."""

from __future__ import annotations

import torch

from .spec import ABSENT, REDUCED, Table

t = Table()

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
