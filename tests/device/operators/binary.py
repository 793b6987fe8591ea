"""Pointwise operators with two operands: broadcasting, dtypes that meet; comparisons, logic and bits."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

t = Table()
CAST = (ABSENT, "row", "column", "none", "ones", "more")
# The second operand's own dtype: broader, narrower, of another kind.
WITH = (ABSENT, torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool)
MEET = {"_cast": CAST, "_with": WITH}
INF = float("inf")


def _named(*names):
    """Return the spellings of an operator and of its other names."""
    return tuple(f"{home}.{name}" for name in names for home in ("torch", "Tensor"))


t.add("add", "any", "any:cast", dtypes="fibc", alpha=(ABSENT, 1, 0, 2, -3, 0.5), **MEET)
t.add(
    "sub",
    "any",
    "any:cast",
    dtypes="fic",
    alpha=(ABSENT, 1, 0, 2, -3, 0.5),
    paths=_named("sub", "subtract"),
    _cast=CAST,
    _with=WITH[:-1],
)
t.add(
    "rsub",
    "any",
    "any:cast",
    dtypes="fic",
    alpha=(ABSENT, 0, 2, 0.5),
    forms=("call", "grad"),
    _cast=CAST,
    _with=WITH[:-1],
)
t.add("mul", "any", "any:cast", dtypes="fibc", paths=_named("mul", "multiply"), **MEET)
t.add("div", "any", "positive:cast", dtypes="fibc", paths=_named("div", "divide"), **MEET)
t.add(
    "true_divide",
    "any",
    "positive:cast",
    dtypes="fi",
    forms=("call", "inplace", "out"),
    sizes=("small", "four", "none", "long"),
    **MEET,
)
WHOLE = {"values": ("plain", "special", "inf", "wide"), "dtypes": "fi"}
t.add(
    "div_mode",
    "quarters",
    "halves:cast",
    rounding_mode=("floor", "trunc", None),
    paths=("torch.div", "Tensor.div", "torch.divide"),
    **MEET,
    **WHOLE,
)
t.each("floor_divide remainder fmod", "quarters", "halves:cast", **MEET, **WHOLE)
t.each("maximum minimum fmax fmin", "any", "any:cast", dtypes="fib", **MEET)
t.add("copysign", "any", "any:cast", dtypes="fib", **MEET)
t.add("heaviside", "few", "any:cast", dtypes="fib", _cast=CAST, forms=("call", "inplace", "out"))
t.add(
    "nextafter",
    "any",
    "any:cast",
    dtypes="f",
    forms=("call", "inplace", "out"),
    values=("plain", "wide", "special"),
    sizes=("small", "four", "none", "empty", "long"),
    _cast=CAST,
)
t.each("atan2 hypot logaddexp logaddexp2", "any", "any:cast", dtypes="fi", factor=32.0, **MEET)
t.add("arctan2", "any", "any", dtypes="fi", factor=32.0, sizes=("small", "four", "none", "column"))
t.add(
    "xlogy",
    "any",
    "positive:cast",
    dtypes="fib",
    factor=32.0,
    paths=("torch.xlogy", "Tensor.xlogy", "special.xlogy"),
    **MEET,
)
t.add("special_xlog1py", "any", "positive:cast", dtypes="fib", factor=32.0, **MEET)
t.add(
    "special_zeta",
    "above_one",
    "positive:cast",
    dtypes="si",
    factor=512.0,
    sizes=("small", "four", "none", "empty"),
    values=("plain",),
    forms=("call", "out"),
    _cast=CAST,
)
t.add("pow", "positive", "unit:cast", dtypes="fc", factor=64.0, **MEET)
t.add("pow_whole", "any", "small:cast", dtypes="i", paths=_named("pow"), **MEET)
t.add(
    "pow_scalar",
    "any",
    dtypes="fibc",
    _exponent=(2, 3, 0, 1, 4, 2.0, 7, torch.tensor(2)),
    paths=_named("pow"),
    factor=64.0,
)
t.add(
    "pow_root",
    "positive",
    dtypes="fic",
    _exponent=(0.5, -1, -2, 2.5, -0.5, -3, 1 / 3, torch.tensor(0.5)),
    paths=_named("pow"),
    factor=64.0,
    values=("plain", "wide", "inf"),  # the root of -inf: NaN of sqrt, inf of pow, as the exponent is passed
)
t.add(
    "pow_base",
    "unit",
    dtypes="fi",
    factor=64.0,
    act=lambda x, base, **k: torch.pow(base, x, **k),
    _base=(2, 3.0, 1, 0.5, 0, 10),
    forms=("call", "out", "grad"),
)
t.add("float_power", "positive", "unit:cast", dtypes="s", _cast=CAST, forms=("call", "grad"), sizes=("small", "none"))
t.each(
    "igamma igammac",
    "positive",
    "positive:cast",
    dtypes="s",
    factor=512.0,
    forms=("call", "out", "inplace"),
    values=("plain",),
    sizes=("small", "four", "none", "empty", "long"),
    _cast=CAST,
)
NUMBERS = (2, -1, 0.5, 3, 0, 1, True, torch.tensor(2), torch.tensor(-1.5))
for name, other in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide")):
    t.add(
        f"{name}_scalar",
        "any",
        dtypes="fic" if name == "sub" else "fibc",
        _other=NUMBERS[:6] + NUMBERS[7:] if name == "sub" else NUMBERS,
        paths=_named(name, other),
    )
for name in ("add", "sub"):
    t.add(
        f"{name}_scalar_alpha",
        "any",
        dtypes="fi",
        _other=(2, 0, 0.5),
        alpha=(1, 3, -2, 0, 0.5),
        paths=_named(name),
        forms=("call", "inplace", "grad"),
    )
for name in ("remainder", "fmod", "floor_divide"):
    t.add(
        f"{name}_scalar",
        "quarters",
        _other=(2, 3, 1.5, -2, 1, -0.5, 7, torch.tensor(3)),
        paths=_named(name),
        **WHOLE,
    )
for name in ("xlogy", "copysign"):
    t.add(
        f"{name}_scalar",
        "positive",
        dtypes="fi",
        _other=(2, 0.5, 1, 0, -0.0, -3),
        paths=_named(name),
        factor=32.0,
    )
for name in ("xlogy", "special_xlog1py"):
    t.add(
        f"{name}_of",
        "positive",
        dtypes="fi",
        act=lambda x, a, name=name: (torch.xlogy if name == "xlogy" else torch.special.xlog1py)(a, x),
        _a=(2, 0, 0.5, -1),
        forms=("call", "grad"),
        factor=32.0,
    )
for name in ("add", "sub", "div"):
    t.add(
        f"{name}_number",
        "any",
        lambda c: 2.5,
        layouts_of=(0,),
        dtypes="fi",
        act=None,
        paths=(f"torch.{name}",),
        sizes=("small", "none", "tall", "wide"),
    )
# The number stands before the tensor.
for name in ("sub", "div", "floordiv", "mod", "pow"):
    t.add(
        f"r{name}_of",
        "halves",
        dtypes="fi",
        act=lambda x, a, name=name: getattr(x, {"div": "__rtruediv__"}.get(name, f"__r{name}__"))(a),
        _a=(2, 1, 0, -3, 2.5),
        forms=("call", "grad"),
        values=("plain", "special"),
        factor=64.0,
    )
t.add(
    "div_scalar_mode",
    "quarters",
    _other=(2, 3, -2, 1, 0.5, 7),
    rounding_mode=("floor", "trunc", None),
    paths=_named("div"),
    **WHOLE,
)
t.add(
    "remainder_of",
    "halves",
    dtypes="fi",
    act=lambda x, a: torch.remainder(a, x),
    _a=(7, -5, 2.5, 0, 1),
    values=("plain", "special", "inf"),
    forms=("call",),
)
t.add("ldexp", "any", "few:cast", dtypes="fi", _cast=CAST, sizes=("small", "four", "none", "column", "long"))
t.add("complex", "any", "any:cast", dtypes="s", forms=("call", "out", "grad"), values=("plain", "wide"), _cast=CAST)
t.add(
    "polar",
    "positive",
    "any:cast",
    dtypes="s",
    forms=("call", "out", "grad"),
    values=("plain",),
    factor=32.0,
    _cast=CAST,
)
t.add(
    "dist",
    "any",
    "any:cast",
    dtypes="f",
    p=(ABSENT, 1, 2, 0.5, 0, 3, INF, -INF),
    terms="all",
    forms=("call", "out", "grad"),
    values=("plain",),
    factor=64.0,
    sizes=("small", "four", "none", "line", "long", "column", "row", "wide", "empty"),
    _cast=CAST,
)

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
