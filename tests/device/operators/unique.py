"""What is unique, and where it is."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table
from engine.pools import LONE

t = Table()
MET = ("plain", "wide", "special", "ties", "equal", "sorted", *LONE)
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
