"""Conversions: every pair of dtypes that no float loses."""

from __future__ import annotations

import torch

from .spec import ABSENT, DTYPES, REDUCED, Table

t = Table()

t.add(
    "to",
    "few",
    dtype=(*DTYPES, torch.complex64),
    paths=("Tensor.to",),
    dtypes="fibc",
    forms=("call", "grad"),
    values=("plain", "ties"),
    sizes=("small", "four", "none", "empty", "line", "tall", "three", "five"),
)
t.add(
    "narrowing",
    "any",
    act=lambda x, dtype: x.to(dtype),
    _dtype=(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    dtypes="ib",
    forms=("call",),
    values=("plain", "wide"),
    sizes=("small", "four", "none", "long", "line"),
)
t.add(
    "truncated",
    "positive",
    act=lambda x, dtype: x.to(dtype),
    _dtype=(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    dtypes="f",
    forms=("call",),
    values=("plain",),
    sizes=("small", "four", "none", "long"),
)
t.add(
    "to_copy",
    "few",
    copy=(True,),
    dtype=(torch.float32, torch.int64, torch.float16),
    paths=("Tensor.to",),
    dtypes="fib",
    forms=("call",),
    values=("plain",),
    sizes=("small", "four"),
)
t.add(
    "type_as",
    "few",
    lambda c: c.draw("few", (2,), torch.float32, "plain"),
    dtypes="fib",
    forms=("call",),
    values=("plain",),
    laid=(0,),
    sizes=("small", "four", "none"),
)
t.add(
    "copied_from",
    "few",
    lambda c: c.draw("few", c.shape, torch.int32 if c.row.number % 2 else torch.float32, "plain"),
    act=lambda x, y: x.copy_(y),
    dtypes="fibc",
    forms=("inplace",),
    values=("plain",),
    sizes=REDUCED,
)
t.add(
    "copied",
    "any",
    "any:cast",
    _cast=(ABSENT, "row", "column", "none"),
    act=lambda x, y: x.copy_(y),
    dtypes="fibc",
    forms=("inplace",),
    values=("plain", "wide", "special"),
    sizes=REDUCED,
)
t.add(
    "reread",
    "any",
    act=lambda x, dtype: x.contiguous().view(dtype),
    _dtype=(torch.int32, torch.int16, torch.uint8, torch.int8),
    dtypes="fi",
    forms=("call",),
    values=("plain",),
    sizes=("four", "tiles"),
)
t.add("view_as_real", dtypes="c", forms=("call", "grad"), finish=lambda y: y * 1)
t.add(
    "view_as_complex",
    lambda c: c.draw("any", (*c.shape, 2)),
    dtypes="s",
    forms=("call", "grad"),
    values=("plain",),
    laid=(),
    finish=lambda y: y * 1,
)
