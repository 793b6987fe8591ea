"""Counting and searching: histograms, buckets, membership."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table
from engine.pools import SINGLES

t = Table()

MANY = {"line": (17,), "one": (1,), "tall": (65543,), "empty": (0,)}
t.add(
    "bincount",
    lambda c: c.at(c.indices(9, c.shape), 9),
    dtypes="s",
    minlength=(ABSENT, 0, 1, 5, 9, 20),
    _at=(ABSENT, torch.int32, torch.int16, torch.int8, torch.uint8, "equal", "sorted"),
    act=lambda x, **k: torch.bincount(x, **k),
    forms=("call",),
    values=("plain",),
    sizes=MANY,
)
t.add(
    "bincount_dtypes",
    "small",
    dtypes="i",
    minlength=(ABSENT, 12, 0, 3),
    paths=("torch.bincount", "Tensor.bincount"),
    forms=("call",),
    values=("plain", "zero", "equal", "sorted"),
    sizes=MANY,
)
t.add(
    "bincount_weights",
    "small",
    lambda c: c.draw("positive", c.shape, c.args["_with"], "plain"),
    dtypes="i",
    _with=(torch.float32, torch.int64, torch.int32, torch.uint8),
    minlength=(ABSENT, 3, 12),
    act=lambda x, w, **k: torch.bincount(x, w, **k),
    forms=("call",),
    values=("plain", "equal", "sorted"),
    sizes=MANY,
    terms=64,
    factor=1e4,
)
COUNTED = ("small", "four", "none", "one", "line", "long", "tall", "column", "row", "middle", "empty")
# Some widths are exact and some are not; whole numbers lie on the edges of those of 1.
for name, domain in (("histc", "any"), ("histc_edges", "few")):
    t.add(
        name,
        domain,
        dtypes="f",
        bins=(ABSENT, 1, 3, 5, 7, 10),
        min=(ABSENT, 0, -2, -1.5),
        max=(ABSENT, 0, 3, 2.6),
        paths=("torch.histc", "Tensor.histc"),
        forms=("call", "out"),
        values=("plain", "wide", "special", "inf", "ties", "equal", "sorted"),
        sizes=COUNTED,
    )
BINS = {
    "density": (ABSENT, True),
    "dtypes": "s",
    "values": ("plain", "wide", "equal", "sorted"),
    "sizes": COUNTED,
    "factor": 64.0,
    "forms": ("call", "out"),
}
RANGE = (ABSENT, (-2.0, 3.0), (0.0, 0.7), (-9.0, 9.0))
t.add("histogram", bins=(1, 3, 5, 10), range=RANGE, **BINS)
t.add(
    "histogram_weighted",
    "any",
    "positive",
    act=lambda x, w, **k: torch.histogram(x, weight=w, **k),
    bins=(1, 3, 10),
    range=RANGE,
    terms=64,
    **{**BINS, "forms": ("call",)},
)
t.add(
    "histogram_edges",
    "any",
    lambda c: torch.tensor([-3.0, -1.0, 0.25, 2.0, 3.5]).to(c.dtype),
    paths=("torch.histogram", "Tensor.histogram"),
    **BINS,
)
KINDS = (ABSENT, "none", "one", "equal", "many")


def _edges(c):
    """Return what lies in order: a few, none, one, all alike, more than a thousand."""
    how = c.args.get("_at")
    given = [-4, -2, -1, 0, 1, 3] if c.dtype != torch.uint8 else [0, 1, 2, 3, 4, 9]
    if how == "many":
        return (
            c.draw("sorted", (1031,), values="sorted")
            if c.dtype.is_floating_point
            else torch.arange(1031).div(9, rounding_mode="floor").to(c.dtype)
        )
    return torch.tensor({"none": [], "one": [1], "equal": [1, 1, 1]}.get(how, given)).to(c.dtype)


SOUGHT = {
    "out_int32": (ABSENT, True),
    "right": (ABSENT, True, False),
    "dtypes": "fi",
    "forms": ("call", "out"),
    "values": ("plain", "wide", "special", "inf", "equal", *SINGLES),
    "_at": KINDS,
}
t.add("bucketize", "few", _edges, sizes=REDUCED, **SOUGHT)
t.add("searchsorted", _edges, "few", sizes=REDUCED, **SOUGHT)
t.add(
    "searchsorted_side",
    _edges,
    "few",
    side=("left", "right"),
    paths=("torch.searchsorted",),
    sizes=("small", "line", "none", "empty"),
    **{**SOUGHT, "right": (ABSENT, True)},
)
t.add(
    "bucketize_scalar",
    _edges,
    act=lambda e, value, **k: torch.bucketize(value, e, **k),
    _value=(0, 2, -3, 0.5, 99),
    sizes=("small",),
    **{**SOUGHT, "forms": ("call",), "values": ("plain",)},
)
t.add(
    "searchsorted_scalar",
    _edges,
    _value=(0, 2, -3, 0.5, 99),
    paths=("torch.searchsorted",),
    sizes=("small",),
    **{**SOUGHT, "forms": ("call",), "values": ("plain",)},
)
t.add(
    "searchsorted_rows",
    lambda c: c.draw("distinct", (4, c.args["_at"]), values="plain").sort(-1)[0],
    lambda c: c.draw("few", (4, c.shape[-1] if c.shape else 1)),
    dtypes="fi",
    side=(ABSENT, "left", "right"),
    right=(ABSENT, True),
    out_int32=(ABSENT, True),
    _at=(9, 1, 2, 33),
    paths=("torch.searchsorted",),
    forms=("call", "out"),
    values=("plain", "inf"),
    sizes=("small", "line", "long", "hollow", "one", "tiles"),
)
t.add(
    "searchsorted_sorter",
    lambda c: c.draw("distinct", (9,), values="plain"),
    "few",
    dtypes="fi",
    act=lambda s, x, **k: torch.searchsorted(s, x, sorter=s.argsort(), **k),
    right=(ABSENT, True),
    out_int32=(ABSENT, True),
    forms=("call",),
    values=("plain",),
    sizes=("small", "line", "none", "long"),
)
INVERT = (ABSENT, True)
ELEMENTS = {"none": 0, "one": 1, "many": 1031}
t.add(
    "isin",
    "few",
    lambda c: (
        torch.tensor([1, 3, 2]).to(c.args.get("_with", c.dtype))
        if c.args.get("_at") is None
        else c.draw("few", (ELEMENTS[c.args["_at"]],), c.args.get("_with"))
    ),
    dtypes="fi",
    invert=INVERT,
    _at=(ABSENT, *ELEMENTS),
    _with=(ABSENT, torch.float32, torch.int64, torch.uint8),
    forms=("call", "out"),
    values=("plain", "special", "equal"),
    sizes=REDUCED,
)
t.add(
    "isin_unique",
    lambda c: c.unique(c.shape[0], c.shape[0]).to(c.dtype),
    lambda c: torch.tensor([1, 3, 9, 2]).to(c.dtype),
    dtypes="i",
    assume_unique=(True,),
    invert=INVERT,
    paths=("torch.isin",),
    forms=("call", "out"),
    values=("plain",),
    sizes={"line": (17,), "one": (1,), "some": (67,)},
)
t.add(
    "isin_scalar",
    "few",
    dtypes="fi",
    _test=(1, 2, 0, 1.5, -9),
    invert=INVERT,
    paths=("torch.isin",),
    forms=("call", "out"),
    values=("plain", "special", "equal"),
)
t.add(
    "isin_element",
    "few",
    dtypes="fi",
    act=lambda x, a, **k: torch.isin(a, x, **k),
    _a=(1, 9, 0, 0.5),
    invert=INVERT,
    forms=("call",),
    values=("plain", "equal"),
    sizes=("small", "four", "none", "empty", "line", "long"),
)
t.add(
    "trace",
    dtypes="sic",
    terms=8,
    floor=1.0,
    forms=("call", "grad"),
    values=("plain", "wide", "special", "inf"),
    sizes=("small", "tiles", "long", "high", "column", "row", "empty", "hollow", "wide", "many"),
)
