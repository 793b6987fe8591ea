"""Pointwise operators with three operands, limits, choices and masks."""

from __future__ import annotations

import torch

from engine.description import ABSENT, Table

from .binary import CAST, INF, MEET, WITH

t = Table()

t.add("addcmul", "any", "any", "any:cast", dtypes="fic", value=(ABSENT, 1, 0, 2, -1, 0.5), terms=4, **MEET)
t.add(
    "addcdiv",
    "any",
    "any",
    "positive:cast",
    dtypes="fc",
    value=(ABSENT, 1, 0, 0.5, -2),
    terms=4,
    _cast=CAST,
    _with=WITH[:3],
)
LERPED = ("plain", "wide")  # a + w(b - a) or b - (b - a)(1 - w): at infinity they are not alike
t.add("lerp", "any", "any", "unit:cast", dtypes="fc", _cast=CAST, terms=4, values=LERPED)
t.add(
    "lerp_ends",
    "any",
    "any:cast",
    lambda c: c.draw("few", c.shape, torch.bool, "plain").to(c.dtype),
    dtypes="f",
    _cast=(ABSENT, "row", "column", "none", "ones"),
    paths=("torch.lerp", "Tensor.lerp"),
    terms=4,
    values=("plain", "wide"),
)
t.add(
    "lerp_scalar",
    "any",
    "any:cast",
    dtypes="fc",
    _weight=(0.3, 0.5, 1.0, 0, 1.5, -1, 0.75, torch.tensor(0.25)),
    paths=("torch.lerp", "Tensor.lerp"),
    terms=4,
    values=LERPED,
    _cast=CAST,
)
LIMITED = ("plain", "wide", "special", "inf")
t.add(
    "clamp_tensors",
    "any",
    "few:cast",
    "positive:cast",
    dtypes="fi",
    paths=("torch.clamp", "Tensor.clamp", "torch.clip"),
    layouts_of=(0, 1, 2),
    values=LIMITED,
    **MEET,
)
# The low limit may lie above the high one, and either may be absent.
t.add(
    "clamp_one_tensor",
    "any",
    "few:cast",
    dtypes="fi",
    act=lambda x, y, how: torch.clamp(x, **{how: y}),
    _how=("min", "max"),
    forms=("call", "grad"),
    values=LIMITED,
    **MEET,
)
t.add(
    "clamp_crossed",
    "any",
    "positive:cast",
    "few:cast",
    dtypes="fi",
    _cast=CAST,
    paths=("torch.clamp", "Tensor.clamp"),
    values=LIMITED,
)
for name in ("clamp_min", "clamp_max"):
    t.add(f"{name}_tensor", "any", "few:cast", dtypes="fi", paths=(f"torch.{name}", f"Tensor.{name}"), **MEET)
t.add("where", "mask", "any", "any:cast", dtypes="fibc", _cast=CAST, forms=("call", "out", "grad"))
t.add(
    "where_method",
    "any",
    "mask:cast",
    "any",
    act=lambda x, m, y: x.where(m, y),
    dtypes="fibc",
    _cast=CAST,
    forms=("call", "grad"),
)
t.add(
    "where_meeting",
    "any",
    "any:cast",
    lambda c: c.draw("any", c.shape, torch.bool),
    act=lambda x, y, m: torch.where(m, x, y),
    dtypes="fib",
    forms=("call", "grad"),
    values=("plain", "wide", "special"),
    **MEET,
)
NUMBERS = (0, 2, -1.5, True, INF, torch.tensor(3), torch.tensor(0.5))
t.add("where_scalar", "mask", "any", dtypes="fib", _other=NUMBERS, paths=("torch.where",), forms=("call", "grad"))
t.add(
    "where_first",
    "mask",
    "any",
    dtypes="fib",
    act=lambda m, x, a: torch.where(m, a, x),
    _a=NUMBERS,
    forms=("call", "grad"),
)
t.add(
    "where_numbers",
    "mask",
    dtypes="s",
    act=lambda m, a, b: torch.where(m, a, b),
    _a=(0, 1.5, True),
    _b=(2, -1.0, False),
    forms=("call",),
    values=("plain", "wide"),
)
# Masks of some, of all and of none.
MASK = (ABSENT, "all", "none", "one")


def mask(c):
    """Return a mask for each element; `_at` says which elements it takes."""
    found = c.draw("any", c.shape, torch.bool)
    how = c.args.get("_at")
    if how == "one" and found.numel():
        found = torch.zeros_like(found)
        found.view(-1)[found.numel() // 2] = True
    return found if how in (None, "one") else torch.full_like(found, how == "all")


t.add(
    "masked_fill",
    "any",
    "mask:cast",
    dtypes="fibc",
    _cast=CAST,
    _value=(0, 1, -2, 0.5, True),
    forms=("call", "inplace", "grad"),
)
t.add(
    "masked_fill_whole",
    "any",
    mask,
    dtypes="fib",
    _at=MASK,
    _value=(3, torch.tensor(2), torch.tensor(-1.0)),
    paths=("torch.masked_fill", "Tensor.masked_fill"),
    forms=("call", "inplace", "grad"),
    values=("plain", "special"),
)
t.add(
    "masked_fill_special",
    "any",
    "mask:cast",
    dtypes="f",
    _value=(INF, -INF, float("nan"), -0.0, 1e4, -1e9),
    _cast=(ABSENT, "row", "column", "none", "ones"),
    paths=("torch.masked_fill", "Tensor.masked_fill"),
)
t.add(
    "masked_fill_tensor",
    "any",
    "mask:cast",
    lambda c: c.draw("few", (), c.args.get("_with")),
    dtypes="fib",
    _cast=CAST,
    _with=WITH,
    paths=("torch.masked_fill", "Tensor.masked_fill"),
    layouts_of=(0, 1),
)
