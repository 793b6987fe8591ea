"""Fills, factories and conversions: every pair of dtypes that no float loses, values read on the host."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from engine.description import ABSENT, DTYPES, REDUCED, Table

t = Table()
INF, NAN = float("inf"), float("nan")
# Nothing is computed of the operand.
MADE = {"forms": ("call",), "values": ("plain",)}
NEW = {"dtypes": "s", "sizes": ("one",), **MADE}

t.add(
    "fill",
    "any",
    _value=(0, 3, -1, 0.5, True, torch.tensor(2), torch.tensor(1.5)),
    dtypes="fibc",
    forms=("call", "inplace"),
    values=("plain", "special"),
    sizes=REDUCED,
)
t.add(
    "fill_tensor",
    "any",
    lambda c: c.draw("few", (), c.args.get("_with")),
    _with=(ABSENT, torch.float32, torch.float16, torch.int64, torch.bool),
    paths=("torch.fill", "Tensor.fill"),
    dtypes="fibc",
    forms=("call", "inplace", "grad"),
    values=("plain",),
    layouts_of=(0,),
)
t.add(
    "fill_special",
    "any",
    act=lambda x, v: x.fill_(v),
    _v=(INF, -INF, NAN, 1e4, -0.0, 65504.0, 1e-7),
    dtypes="f",
    forms=("inplace",),
    values=("plain",),
)
t.add(
    "fill_large",
    "any",
    act=lambda x, v: x.fill_(v),
    _v=(2**24 + 1, -(2**31), 2**31 - 1, 2**40 + 1, -(2**63), 2**63 - 1),
    dtypes="l",
    forms=("inplace",),
    values=("plain",),
)
t.add(
    "zero",
    "any",
    dtypes="fibc",
    forms=("call", "inplace"),
    values=("plain", "special"),
    paths=("Tensor.zero", "aten.zero"),
    sizes=REDUCED,
)
t.add(
    "fill_diagonal",
    "any",
    _value=(0, 5, -1, 0.5),
    wrap=(ABSENT, False, True),
    dtypes="fib",
    forms=("inplace",),
    values=("plain",),
    sizes={"small": (5, 7), "tiles": (32, 64), "high": (1031, 3), "cube": (4, 4, 4), "column": (33, 1), "row": (1, 33)},
    paths=("Tensor.fill_diagonal",),
)
LIKE = (ABSENT, torch.float32, torch.int64, torch.float16, torch.bool, torch.uint8, torch.complex64)
FORMATS = (ABSENT, torch.preserve_format, torch.contiguous_format)
t.each("zeros_like ones_like", dtype=LIKE, memory_format=FORMATS, dtypes="fibc", sizes=REDUCED, **MADE)
t.add(
    "full_like",
    _value=(0, 1, 3, -1, 0.5, True),
    dtype=LIKE,
    memory_format=FORMATS,
    dtypes="fibc",
    sizes=REDUCED,
    **MADE,
)
SHAPES = ((3,), (2, 0), (4, 5), (), (2, 1, 3, 2), (1031, 3), (65543,))
for name in ("new_zeros", "new_ones"):
    t.add(name, size=SHAPES, dtype=LIKE, dtypes="fibc", sizes=("line",), **MADE)
t.add(
    "new_full",
    size=SHAPES,
    act=lambda x, size, v, **k: x.new_full(size, v, **k),
    v=(3, 0, -1, 0.5, True),
    dtype=LIKE,
    dtypes="fibc",
    sizes=("line",),
    **MADE,
)
t.add(
    "full",
    act=lambda x, size, v, dtype: torch.full(size, v, dtype=dtype, device=x.device),
    _size=SHAPES,
    _v=(0, 1, 3, 2.0, -1, 0.5, True, INF, 1 + 2j),
    _dtype=(None, *DTYPES, torch.complex64),
    **NEW,
)
t.add(
    "zeros_ones",
    act=lambda x, size, dtype: (
        torch.zeros(size, dtype=dtype, device=x.device),
        torch.ones(size, dtype=dtype, device=x.device),
    ),
    _size=SHAPES,
    _dtype=(None, *DTYPES, torch.complex64),
    **NEW,
)
t.add(
    "tensor_of",
    act=lambda x, v, dtype, name: getattr(torch, name)(v, dtype=dtype, device=x.device),
    _v=(0, 1.5, True, -3, [1, 2, 3], [[0.5, -1.5], [2.0, 4.0]], [], [[]], 2**24 + 1),
    _dtype=(None, *DTYPES),
    _name=("tensor", "as_tensor", "asarray"),
    **NEW,
)
t.add(
    "arange",
    act=lambda x, b, e, s, dtype: torch.arange(b, e, s, dtype=dtype, device=x.device),
    _b=(0, -3, 1, 0.5, -2.75),
    _e=(7, 1029, 0, 65543, 2.5, 40),
    _s=(1, 2, 3, 0.5, -1, -2, 0.1, 1000),
    _dtype=(None, *DTYPES[:7]),
    **NEW,
)
t.add(
    "linspace",
    act=lambda x, b, e, n, dtype: torch.linspace(b, e, n, dtype=dtype, device=x.device),
    _b=(0, -3, 1.5, 1e-12),
    _e=(7, -10, 1.5, 0.1),
    _n=(1, 2, 3, 5, 1031, 0, 64, 65543),
    _dtype=(None, *DTYPES[:7]),
    **NEW,
)
t.add(
    "linspace_between",
    act=lambda x, n, name: getattr(torch, name)(x[0], x[-1], n, device=x.device),
    _n=(0, 1, 2, 5, 33),
    _name=("linspace", "logspace"),
    dtypes="s",
    sizes=("line", "one"),
    factor=64.0,
    **MADE,
)
t.add(
    "logspace",
    act=lambda x, b, e, n, **k: torch.logspace(b, e, n, device=x.device, **k),
    _b=(0, -1, 0.5),
    _e=(2, -2, 0.5),
    _n=(1, 2, 5, 31, 0, 1031),
    base=(10, 2, 3, 1, 0.5),
    dtype=(None, torch.float32, torch.float16),
    factor=64.0,
    **NEW,
)
t.add(
    "eye",
    act=lambda x, n, m, dtype: torch.eye(n, m, dtype=dtype, device=x.device),
    _n=(0, 1, 3, 70, 1025),
    _m=(0, 1, 5, 65, 3),
    _dtype=(None, *DTYPES, torch.complex64),
    **NEW,
)
for name in ("tril_indices", "triu_indices"):
    t.add(
        name,
        act=lambda x, r, c, o, dtype, name=name: getattr(torch, name)(r, c, o, dtype=dtype, device=x.device),
        _r=(0, 1, 3, 7, 300),
        _c=(0, 1, 3, 9, 33),
        _o=(0, 1, -2, 9, -9, 32),
        _dtype=(torch.int64, torch.int32),
        **NEW,
    )
COUNTS = (0, 1, 2, 3, 7, 64, 1031)
for name in ("hann_window", "hamming_window", "bartlett_window", "blackman_window", "kaiser_window"):
    t.add(
        name,
        act=lambda x, n, p, dtype, name=name, **k: getattr(torch, name)(
            n, periodic=p, dtype=dtype, device=x.device, **k
        ),
        _n=COUNTS,
        _p=(True, False),
        _dtype=(None, torch.float32, torch.float16),
        factor=64.0,
        floor=1.0,  # a window's ends are 0 but for rounding
        **({"alpha": (ABSENT, 0.5, 0.0), "beta": (ABSENT, 0.3)} if name == "hamming_window" else {}),
        **({"beta": (ABSENT, 0.0, 5.0, 20.0)} if name == "kaiser_window" else {}),
        **NEW,
    )
t.add(
    "signal_windows",
    act=lambda x, n, name, sym: getattr(torch.signal.windows, name)(n, sym=sym, device=x.device),
    _n=COUNTS,
    _name=("bartlett", "blackman", "cosine", "exponential", "gaussian", "hamming", "hann", "kaiser", "nuttall"),
    _sym=(True, False),
    factor=64.0,
    floor=1.0,
    **NEW,
)
t.add(
    "one_hot",
    lambda c: c.at(c.indices(5, c.shape), 5),
    act=lambda x, n: F.one_hot(x, n),
    _n=(-1, 5, 7, 33),
    _at=(ABSENT, "equal", "none", "sorted"),
    dtypes="s",
    sizes=("small", "four", "none", "line", "one", "empty", "long", "column", "row", "middle"),
    **MADE,
)

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
    layouts_of=(0,),
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
    layouts_of=(),
    finish=lambda y: y * 1,
)
