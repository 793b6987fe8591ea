"""Comparisons, logic and bits: operators whose answers are exact."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

from .binary import CAST, INF, MEET

t = Table()
NAMES = {
    "eq": ("eq",),
    "ne": ("ne", "not_equal"),
    "lt": ("lt", "less"),
    "le": ("le", "less_equal"),
    "gt": ("gt", "greater"),
    "ge": ("ge", "greater_equal"),
}
PATHS = {name: tuple(f"{home}.{one}" for one in every for home in ("torch", "Tensor")) for name, every in NAMES.items()}
COMPARED = {"forms": ("call", "inplace", "out"), "values": ("plain", "wide", "special", "inf", "ties")}
for name, paths in PATHS.items():
    dtypes = "fibc" if name in ("eq", "ne") else "fib"
    t.add(name, "few", "few:cast", dtypes=dtypes, paths=paths, **MEET, **COMPARED)
    t.add(
        f"{name}_scalar",
        "few",
        dtypes=dtypes,
        _other=(0, 1, 0.5, -2, True, INF, torch.tensor(1), torch.tensor(0.5)),
        paths=paths,
        **COMPARED,
    )
t.each(
    "logical_and logical_or logical_xor",
    "few",
    "few:cast",
    dtypes="fibc",
    forms=("call", "inplace", "out"),
    values=("plain", "wide", "special", "equal"),
    **MEET,
)
# Bits have whole numbers alone.
BITS = {"_cast": CAST, "_with": (ABSENT, torch.int64, torch.int8, torch.uint8, torch.bool)}
BITWISE = {"forms": ("call", "inplace", "out"), "values": ("plain", "wide")}
t.each("bitwise_and bitwise_or bitwise_xor", "any", "any:cast", dtypes="ib", **BITS, **BITWISE)
t.each("bitwise_left_shift bitwise_right_shift", "any", "shift:cast", dtypes="i", **BITS, **BITWISE)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
    t.add(
        f"{name}_scalar",
        "any",
        dtypes="i" if "shift" in name else "ib",
        _other=(1, 3, 5, 0, torch.tensor(2)) if "shift" in name else (1, 3, 5, 0, -1, 255, True, torch.tensor(6)),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        **BITWISE,
    )
    t.add(
        f"{name}_of",
        "shift",
        dtypes="i",
        act=lambda x, a, name=name: getattr(torch, name)(a, x),
        _a=(1, 6, 0, -3),
        forms=("call",),
        values=("plain",),
    )
for name in ("and", "or", "xor"):
    t.add(
        f"i{name}",
        "any",
        "any:cast",
        dtypes="ib",
        act=lambda x, y, name=name: getattr(x, f"__i{name}__")(y),
        forms=("inplace",),
        values=("plain", "wide"),
        **BITS,
    )
for name in ("lshift", "rshift"):
    for kind, operands, levels in (("", ("any", "shift:cast"), BITS), ("_scalar", ("any",), {"_other": (1, 3, 0, 6)})):
        t.add(
            f"{name}{kind}",
            *operands,
            dtypes="i",
            paths=(f"Tensor.__{name}__",),
            forms=("call",),
            values=("plain", "wide"),
            **levels,
        )
        t.add(
            f"i{name}{kind}",
            *operands,
            dtypes="i",
            act=lambda x, y, name=name: getattr(x, f"__i{name}__")(y),
            forms=("inplace",),
            values=("plain", "wide"),
            **levels,
        )
t.each("gcd lcm", "any", "any:cast", dtypes="i", values=("plain",), forms=("call", "inplace", "out"), **BITS)
t.add(
    "isclose",
    "few",
    "few:cast",
    dtypes="fibc",
    rtol=(ABSENT, 0.5, 0.0, 1e-12),
    atol=(ABSENT, 1.0, 0.0, 1e-12),
    equal_nan=(ABSENT, True),
    _cast=CAST,
    forms=("call",),
    values=("plain", "special", "inf", "wide"),
)
t.add(
    "equal", "few", "few:cast", dtypes="fibc", forms=("call",), values=("plain", "wide", "special", "equal"), _cast=CAST
)
t.add(
    "equal_itself",
    "few",
    dtypes="fibc",
    act=lambda x: (torch.equal(x, x), torch.equal(x, x.clone())),
    forms=("call",),
    values=("plain", "wide", "inf"),  # whether a tensor with NaN is equal to itself differs by back end
)
t.add(
    "allclose",
    "few",
    "few:cast",
    dtypes="fic",
    rtol=(ABSENT, 0.5, 0.0),
    atol=(ABSENT, 9.0, 0.0),
    equal_nan=(ABSENT, True),
    forms=("call",),
    values=("plain", "special", "inf", "equal"),
    _cast=CAST,
)
t.add(
    "masks",
    "mask",
    "mask:cast",
    dtypes="s",
    act=lambda x, y: (x & y, x | y, x ^ y, ~x, x == y, x != y, x < y, x >= y),
    forms=("call",),
    values=("plain", "wide"),
    _cast=CAST,
)
