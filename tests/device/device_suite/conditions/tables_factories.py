"""Fills and factories: from a tensor, or on its device."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from .spec import ABSENT, DTYPES, REDUCED, Table

t = Table()

t.add("fill", "any", _value=(0, 3, -1), dtypes="fibc", forms=("call", "inplace"), values=("plain",), sizes=REDUCED)
t.add(
    "fill_tensor",
    "any",
    lambda c: c.draw("few", ()),
    paths=("torch.fill", "Tensor.fill"),
    dtypes="fibc",
    forms=("call", "inplace"),
    values=("plain",),
    laid=(0,),
)
t.add(
    "fill_special",
    "any",
    act=lambda x, v: x.fill_(v),
    _v=(float("inf"), float("nan"), 1e4),
    dtypes="f",
    forms=("inplace",),
    values=("plain",),
)
t.add(
    "fill_large",
    "any",
    act=lambda x, v: x.fill_(v),
    _v=(2**24 + 1, -(2**31), 2**31 - 1),
    dtypes="l",
    forms=("inplace",),
    values=("plain",),
)
t.add(
    "zero",
    "any",
    dtypes="fibc",
    forms=("call", "inplace"),
    values=("plain",),
    paths=("Tensor.zero", "aten.zero"),
    sizes=REDUCED,
)
t.add(
    "fill_diagonal",
    "any",
    _value=(0, 5),
    wrap=(ABSENT, True),
    dtypes="fib",
    forms=("inplace",),
    values=("plain",),
    sizes=("small", "tiles", "high"),
    paths=("Tensor.fill_diagonal",),
)
LIKE = (ABSENT, torch.float32, torch.int64, torch.float16, torch.bool)
t.each("zeros_like ones_like", dtype=LIKE, dtypes="fibc", forms=("call",), values=("plain",), sizes=REDUCED)
t.add("full_like", _value=(0, 1, 3), dtype=LIKE, dtypes="fibc", forms=("call",), values=("plain",), sizes=REDUCED)
for name in ("new_zeros", "new_ones"):
    t.add(
        name,
        size=((3,), (2, 0), (4, 5), ()),
        dtype=LIKE,
        dtypes="fibc",
        forms=("call",),
        values=("plain",),
        sizes=("line",),
    )
t.add(
    "new_full",
    size=((3,), (2, 0), (4, 5), ()),
    act=lambda x, size, **k: x.new_full(size, 3, **k),
    dtype=LIKE,
    dtypes="fibc",
    forms=("call",),
    values=("plain",),
    sizes=("line",),
)
t.add(
    "full",
    act=lambda x, size, v, dtype: torch.full(size, v, dtype=dtype, device=x.device),
    _size=((3,), (2, 0), (4, 5), (), (2, 1, 3, 2)),
    _v=(0, 1, 3, 2.0),
    _dtype=DTYPES,
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("one",),
)
t.add(
    "arange",
    act=lambda x, b, e, s, dtype: torch.arange(b, e, s, dtype=dtype, device=x.device),
    _b=(0, -3, 1),
    _e=(7, 1029, 0, 65543),
    _s=(1, 2, 3, 0.5, -1, -2),
    _dtype=(None, *DTYPES[:7]),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("one",),
)
t.add(
    "linspace",
    act=lambda x, b, e, n, dtype: torch.linspace(b, e, n, dtype=dtype, device=x.device),
    _b=(0, -3, 1.5),
    _e=(7, -10, 1.5),
    _n=(1, 2, 5, 1031, 0, 64),
    _dtype=(None, *DTYPES[:3]),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("one",),
)
t.add(
    "logspace",
    act=lambda x, b, e, n, **k: torch.logspace(b, e, n, device=x.device, **k),
    _b=(0, -1),
    _e=(2, -2),
    _n=(1, 2, 5, 31, 0),
    base=(10, 2, 3),
    dtype=(None, torch.float32),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("one",),
    factor=64.0,
)
t.add(
    "eye",
    act=lambda x, n, m, dtype: torch.eye(n, m, dtype=dtype, device=x.device),
    _n=(0, 1, 3, 70),
    _m=(0, 1, 5, 65),
    _dtype=(*DTYPES, torch.complex64),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("one",),
)
for name in ("tril_indices", "triu_indices"):
    t.add(
        name,
        act=lambda x, r, c, o, dtype, name=name: getattr(torch, name)(r, c, o, dtype=dtype, device=x.device),
        _r=(0, 3, 7),
        _c=(1, 3, 9),
        _o=(0, 1, -2),
        _dtype=(torch.int64, torch.int32),
        dtypes="s",
        forms=("call",),
        values=("plain",),
        sizes=("one",),
    )
for name in ("hann_window", "hamming_window", "bartlett_window", "blackman_window", "kaiser_window"):
    t.add(
        name,
        act=lambda x, n, p, dtype, name=name: getattr(torch, name)(n, periodic=p, dtype=dtype, device=x.device),
        _n=(1, 2, 7, 64),
        _p=(True, False),
        _dtype=(None, torch.float32),
        dtypes="s",
        forms=("call",),
        values=("plain",),
        sizes=("one",),
        factor=64.0,
    )
t.add(
    "one_hot",
    lambda c: c.indices(5, c.shape),
    act=lambda x, n: F.one_hot(x, n),
    _n=(5, 7),
    dtypes="s",
    forms=("call",),
    values=("plain",),
    sizes=("small", "four", "none", "line", "long"),
)
