"""Conversions: every pair of dtypes that no float loses, copies, values read on the host."""

from __future__ import annotations

import torch

from engine.description import ABSENT, DTYPES, REDUCED, Table

t = Table()
WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)
CAST = (ABSENT, "row", "column", "none", "ones")

t.add(
    "to",
    "few",
    dtype=(*DTYPES, torch.complex64),
    paths=("Tensor.to",),
    dtypes="fibc",
    forms=("call", "grad"),
    values=("plain", "ties", "special", "inf"),
    sizes=(
        "small",
        "four",
        "none",
        "empty",
        "line",
        "tall",
        "three",
        "five",
        "column",
        "row",
        "wide",
        "many",
        "middle",
    ),
)
t.add(
    "narrowing",
    "any",
    act=lambda x, dtype: x.to(dtype),
    _dtype=WHOLE,
    dtypes="ib",
    forms=("call",),
    values=("plain", "wide"),
    sizes=("small", "four", "none", "long", "line", "empty", "column", "wide", "six"),
)
# What is behind the point goes, above zero and below.
for name, domain in (("truncated", "positive"), ("truncated_signed", "quarters")):
    t.add(
        name,
        domain,
        act=lambda x, dtype: x.to(dtype),
        _dtype=WHOLE,
        dtypes="f",
        forms=("call",),
        values=("plain", "special"),
        sizes=("small", "four", "none", "long", "empty", "column", "wide", "middle"),
    )
t.add(
    "to_copy",
    "few",
    copy=(ABSENT, True, False),
    non_blocking=(ABSENT, True),
    memory_format=(ABSENT, torch.contiguous_format, torch.preserve_format),
    dtype=(torch.float32, torch.int64, torch.float16, torch.bool),
    paths=("Tensor.to",),
    dtypes="fibc",
    forms=("call", "grad"),
    values=("plain", "special"),
    sizes=("small", "four", "none", "empty", "three", "middle"),
)
t.add(
    "named",
    "few",
    act=lambda x, name: getattr(x, name)(),
    _name=("float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool", "cfloat"),
    dtypes="fibc",
    forms=("call",),
    values=("plain", "special", "ties"),
    sizes=("small", "four", "none", "empty", "three", "long"),
)
t.add(
    "type_as",
    "few",
    lambda c: c.draw("few", (2,), c.args["_with"], "plain"),
    _with=(torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool),
    dtypes="fib",
    forms=("call", "grad"),
    values=("plain", "ties"),
    laid=(0,),
    sizes=("small", "four", "none", "empty", "long", "middle"),
)
t.add(
    "copied_from",
    "few",
    "few:cast",
    act=lambda x, y, wait: x.copy_(y, non_blocking=wait),
    _with=(*DTYPES, torch.complex64),
    _cast=CAST,
    _wait=(False, True),
    dtypes="fibc",
    forms=("inplace",),
    values=("plain", "ties"),
    sizes=REDUCED,
)
t.add(
    "copied",
    "any",
    "any:cast",
    _cast=CAST,
    act=lambda x, y: x.copy_(y),
    dtypes="fibc",
    forms=("inplace",),
    values=("plain", "wide", "special", "inf"),
    sizes=REDUCED,
)
t.add(
    "reread",
    "any",
    act=lambda x, dtype: x.contiguous().view(dtype),
    _dtype=(torch.int64, torch.int32, torch.int16, torch.uint8, torch.int8),
    dtypes="i",
    forms=("call",),
    values=("plain", "wide"),
    sizes={"four": (2, 3, 4, 8), "tiles": (32, 64), "line": (24,), "empty": (0, 8), "odd": (5, 7)},
)
t.add(
    "read_out",
    act=lambda x: (x.reshape(-1)[-1].item(), x.reshape(-1)[:3].tolist(), x.reshape(-1)[0].item()),
    dtypes="fibc",
    forms=("call",),
    sizes=("small", "four", "none", "one", "long", "tall", "middle"),
)
t.add("view_as_real", dtypes="c", forms=("call", "grad"), values=("plain", "wide"), finish=lambda y: y * 1)
t.add(
    "view_as_complex",
    lambda c: c.draw("any", (*c.shape, 2)),
    dtypes="s",
    forms=("call", "grad"),
    values=("plain", "wide"),
    laid=(),
    finish=lambda y: y * 1,
)
