"""Softmax and its like along a side."""

from __future__ import annotations

import torch

from engine.description import ABSENT, REDUCED, Table
from engine.pools import LONE

t = Table()
DIM = (0, -1, 1, -2, 2)
SHARED = {"dtypes": "f", "factor": 32.0, "values": ("plain", "wide", "inf", "masked", "special", "equal", *LONE)}

t.each(
    "softmax log_softmax",
    dim=DIM,
    dtype=(ABSENT, torch.float32, torch.float16),
    forms=("call", "out", "grad"),
    sizes=REDUCED,
    **SHARED,
)
t.add(
    "softmax_of_whole",
    act=lambda x, dim, name, dtype: getattr(torch, name)(x, dim, dtype=dtype),
    _dim=DIM,
    _name=("softmax", "log_softmax"),
    _dtype=(torch.float32, torch.float16),
    dtypes="ib",
    factor=32.0,
    forms=("call",),
    values=("plain", "equal"),
    sizes=REDUCED,
)
t.each(
    "special_softmax special_log_softmax",
    dim=DIM,
    dtype=(ABSENT, torch.float32),
    forms=("call", "grad"),
    sizes=("small", "four", "line", "middle"),
    **SHARED,
)
t.add("softmin", dim=DIM, dtype=(ABSENT, torch.float32), forms=("call", "grad"), sizes=REDUCED, **SHARED)
for name in ("_softmax", "_log_softmax"):
    t.add(
        name,
        _dim=DIM,
        _half=(False,),
        paths=(f"aten.{name}",),
        forms=("call", "out"),
        sizes=("small", "four", "none", "long", "three", "row", "lone", "middle", "empty"),
        **SHARED,
    )
