"""Pointwise operators with two and three operands: broadcasting, scalars, comparison, logic, bits."""

from __future__ import annotations

import torch

from .spec import ABSENT, Table

t = Table()
CAST = (ABSENT, "row", "column", "none")

t.each("add sub", "any", "any:cast", dtypes="fibc", alpha=(ABSENT, 2, -3), _cast=CAST)
t.add("rsub", "any", "any:cast", dtypes="fic", alpha=(ABSENT, 2), _cast=CAST, forms=("call", "grad"))
t.add("mul", "any", "any:cast", dtypes="fibc", _cast=CAST)
t.add("div", "any", "positive:cast", dtypes="fic", _cast=CAST)
t.add(
    "true_divide",
    "any",
    "positive:cast",
    dtypes="fi",
    forms=("call", "inplace", "out"),
    sizes=("small", "four", "none", "long"),
)
t.add(
    "div_mode",
    "quarters",
    "halves:cast",
    dtypes="fi",
    rounding_mode=("floor", "trunc"),
    _cast=CAST,
    paths=("torch.div", "Tensor.div"),
    values=("plain", "special", "wide"),
    forms=("call", "inplace", "out"),
)
t.each(
    "floor_divide remainder fmod",
    "quarters",
    "halves:cast",
    dtypes="fi",
    _cast=CAST,
    values=("plain", "special", "wide"),
    forms=("call", "inplace", "out", "grad"),
)
t.each("maximum minimum", "any", "any:cast", dtypes="fib", _cast=CAST)
t.each("fmax fmin", "any", "any:cast", dtypes="fib", _cast=CAST)
t.add("copysign", "any", "any:cast", dtypes="fib", _cast=CAST)
t.add("heaviside", "few", "any:cast", dtypes="fib", _cast=CAST, forms=("call", "inplace", "out"))
t.add(
    "nextafter",
    "any",
    "any",
    dtypes="s",
    forms=("call", "inplace", "out"),
    values=("plain",),
    sizes=("small", "four", "none", "empty"),
)
t.each("atan2 hypot logaddexp logaddexp2", "any", "any:cast", dtypes="f", factor=32.0, _cast=CAST)
t.add("arctan2", "any", "any", dtypes="fi", factor=32.0, sizes=("small", "four"))
t.add("xlogy", "any", "positive:cast", dtypes="fib", factor=32.0, _cast=CAST)
t.add("special_xlog1py", "any", "positive:cast", dtypes="fib", factor=32.0, _cast=CAST)
t.add(
    "special_zeta",
    "above_one",
    "positive",
    dtypes="s",
    factor=512.0,
    sizes=("small", "four", "none", "empty"),
    values=("plain",),
    forms=("call", "out"),
)
t.add("pow", "positive", "unit:cast", dtypes="fc", factor=64.0, _cast=CAST)
t.add("pow_whole", "any", "small:cast", dtypes="i", _cast=CAST, paths=("torch.pow", "Tensor.pow"))
t.add("pow_scalar", "any", dtypes="fic", _exponent=(2, 3, 0, 1, 4), paths=("torch.pow", "Tensor.pow"), factor=64.0)
t.add(
    "pow_root",
    "positive",
    dtypes="fi",
    _exponent=(0.5, -1, -2, 2.5, -0.5),
    paths=("torch.pow", "Tensor.pow"),
    factor=64.0,
)
t.add(
    "pow_base",
    "unit",
    dtypes="f",
    factor=64.0,
    act=lambda x, base: torch.pow(base, x),
    _base=(2, 3.0, 1, 0.5),
    forms=("call", "grad"),
)
t.each(
    "igamma igammac",
    "positive",
    "positive",
    dtypes="s",
    factor=512.0,
    forms=("call", "out", "inplace"),
    values=("plain",),
    sizes=("small", "four", "none", "empty", "long"),
)
COMPARED = {"forms": ("call", "inplace", "out"), "values": ("plain", "wide", "special", "ties")}
t.each("eq ne", "few", "few:cast", dtypes="fibc", _cast=CAST, **COMPARED)
t.each("lt le gt ge", "few", "few:cast", dtypes="fib", _cast=CAST, **COMPARED)
for name in ("eq", "ne", "lt", "le", "gt", "ge"):
    t.add(
        f"{name}_scalar",
        "few",
        dtypes="fib",
        _other=(0, 1, 0.5, -2),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        **COMPARED,
    )
for name in ("add", "sub", "mul", "div"):
    t.add(f"{name}_scalar", "any", dtypes="fic", _other=(2, -1, 0.5, 3), paths=(f"torch.{name}", f"Tensor.{name}"))
for name in ("remainder", "fmod", "floor_divide"):
    t.add(
        f"{name}_scalar",
        "quarters",
        dtypes="fi",
        _other=(2, 3, 1.5, -2),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        values=("plain", "special", "wide"),
    )
for name in ("xlogy", "copysign"):
    t.add(
        f"{name}_scalar",
        "positive",
        dtypes="f",
        _other=(2, 0.5),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        factor=32.0,
    )
for name in ("add", "sub", "div"):
    t.add(
        f"{name}_number",
        "any",
        lambda c: 2.5,
        laid=(0,),
        dtypes="f",
        act=None,
        paths=(f"torch.{name}",),
        sizes=("small", "none", "tall"),
    )
t.add(
    "div_scalar_mode",
    "quarters",
    dtypes="fi",
    _other=(2, 3, -2),
    rounding_mode=("floor", "trunc", None),
    paths=("torch.div", "Tensor.div"),
    forms=("call", "inplace", "out"),
    values=("plain", "special", "wide"),
)
t.add("remainder_of", "halves", dtypes="fi", act=lambda x, a: torch.remainder(a, x), _a=(7, -5, 2.5), forms=("call",))
t.each(
    "logical_and logical_or logical_xor",
    "few",
    "few:cast",
    dtypes="fibc",
    _cast=CAST,
    forms=("call", "inplace", "out"),
    values=("plain", "wide", "special"),
)
t.each(
    "bitwise_and bitwise_or bitwise_xor", "any", "any:cast", dtypes="ib", _cast=CAST, forms=("call", "inplace", "out")
)
t.each(
    "bitwise_left_shift bitwise_right_shift",
    "any",
    "shift:cast",
    dtypes="i",
    _cast=CAST,
    forms=("call", "inplace", "out"),
)
for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"):
    t.add(
        f"{name}_scalar",
        "any",
        dtypes="i",
        _other=(1, 3, 5),
        paths=(f"torch.{name}", f"Tensor.{name}"),
        forms=("call", "inplace"),
    )
    t.add(
        f"{name}_of",
        "shift",
        dtypes="i",
        act=lambda x, a, name=name: getattr(torch, name)(a, x),
        _a=(1, 6),
        forms=("call",),
    )
for name in ("__lshift__", "__rshift__"):
    t.add(name.strip("_"), "any", "shift:cast", dtypes="i", _cast=CAST, paths=(f"Tensor.{name}",), forms=("call",))
    t.add(f"{name.strip('_')}_scalar", "any", dtypes="i", _other=(1, 3), paths=(f"Tensor.{name}",), forms=("call",))
    t.add(
        f"i{name.strip('_')}",
        "any",
        "shift",
        dtypes="i",
        act=lambda x, y, name=name: getattr(x, f"__i{name[2:]}")(y),
        forms=("inplace",),
    )
    t.add(
        f"i{name.strip('_')}_scalar",
        "any",
        dtypes="i",
        act=lambda x, y, name=name: getattr(x, f"__i{name[2:]}")(y),
        _other=(1, 3),
        forms=("inplace",),
    )
t.each("gcd lcm", "any", "any:cast", dtypes="i", _cast=CAST, values=("plain",), forms=("call", "inplace", "out"))
t.add(
    "isclose",
    "few",
    "few:cast",
    dtypes="fib",
    rtol=(ABSENT, 0.5),
    atol=(ABSENT, 1.0),
    equal_nan=(ABSENT, True),
    _cast=CAST,
    forms=("call",),
    values=("plain", "special"),
)
t.each("equal", "few", "few", dtypes="fibc", forms=("call",), values=("plain", "wide"))
t.add(
    "allclose",
    "few",
    "few",
    dtypes="fi",
    rtol=(ABSENT, 0.5),
    equal_nan=(ABSENT, True),
    forms=("call",),
    values=("plain", "special"),
)
t.add("ldexp", "any", "few", dtypes="f", values=("plain",), sizes=("small", "four", "none"))
t.add("complex", "any", "any", dtypes="s", forms=("call", "out", "grad"), values=("plain", "wide"))
t.add("polar", "positive", "any", dtypes="s", forms=("call", "out", "grad"), values=("plain",), factor=32.0)
t.each(
    "dist",
    "any",
    "any",
    dtypes="f",
    p=(ABSENT, 1, 0.5, float("inf")),
    terms="all",
    forms=("call", "grad"),
    values=("plain",),
    factor=64.0,
    sizes=("small", "four", "none", "line", "long"),
)

# Three operands.
t.add("addcmul", "any", "any", "any:cast", dtypes="fic", value=(ABSENT, 2, -1), _cast=CAST, terms=4)
t.add("addcdiv", "any", "any", "positive:cast", dtypes="fc", value=(ABSENT, 0.5, -2), _cast=CAST, terms=4)
t.add("lerp", "any", "any", "unit:cast", dtypes="fc", _cast=CAST, terms=4, values=("plain", "wide"))
t.add(
    "lerp_scalar",
    "any",
    "any",
    dtypes="fc",
    _weight=(0.3, 0.5, 1.0, 0, 1.5),
    paths=("torch.lerp", "Tensor.lerp"),
    terms=4,
    values=("plain", "wide"),
)
t.add(
    "clamp_tensors",
    "any",
    "few:cast",
    "positive:cast",
    dtypes="fi",
    _cast=CAST,
    paths=("torch.clamp", "Tensor.clamp"),
    laid=(0, 1, 2),
)
for name in ("clamp_min", "clamp_max"):
    t.add(f"{name}_tensor", "any", "few:cast", dtypes="fi", _cast=CAST, paths=(f"torch.{name}", f"Tensor.{name}"))
t.add("where", "mask", "any", "any:cast", dtypes="fibc", _cast=CAST, forms=("call", "out", "grad"))
t.add("where_scalar", "mask", "any", dtypes="fi", _other=(0, 2, -1.5), paths=("torch.where",), forms=("call", "grad"))
t.add(
    "where_first",
    "mask",
    "any",
    dtypes="fi",
    act=lambda m, x, a: torch.where(m, a, x),
    _a=(0, 2),
    forms=("call", "grad"),
)
t.add(
    "masked_fill", "any", "mask:cast", dtypes="fibc", _cast=CAST, _value=(0, 1, -2), forms=("call", "inplace", "grad")
)
t.add(
    "masked_fill_special",
    "any",
    "mask",
    dtypes="f",
    _value=(float("inf"), float("-inf"), float("nan")),
    paths=("torch.masked_fill", "Tensor.masked_fill"),
)
t.add(
    "masked_fill_tensor",
    "any",
    "mask:cast",
    lambda c: c.draw("few", ()),
    dtypes="fib",
    _cast=CAST,
    paths=("torch.masked_fill", "Tensor.masked_fill"),
    laid=(0, 1),
)
