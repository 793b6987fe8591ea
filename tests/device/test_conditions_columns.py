"""Rules 1 and 3: every function of two or three tensors, of columns, rows and numbers: a side of 1 on one side or both.

Two columns of int64 that are the same were unlike everywhere; two numbers without dimensions, of two dtypes, gave
what lay beside them, https://github.com/pytorch/pytorch/issues/11795; isin refused an int64 beside an int32,
https://github.com/pytorch/pytorch/issues/151443
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]


def _named(names: str) -> dict[str, Form]:
    return {name: lambda a, b, name=name: getattr(torch, name)(a, b) for name in names.split()}


# Of any numbers; of whole ones; of fractions; of bools too.
_ANY: dict[str, Form] = {
    **_named("add sub mul maximum minimum fmax fmin eq ne lt le gt ge logical_and logical_or logical_xor"),
    "add-scaled": lambda a, b: torch.add(a, b, alpha=3),
    "sub-scaled": lambda a, b: torch.sub(a, b, alpha=2),
    "rsub": lambda a, b: torch.rsub(a, b),
    "where": lambda a, b: torch.where(a > b, a, b),
    "where-mask": lambda a, b: torch.where(b > 1, a, 2),
    "clamp": lambda a, b: torch.clamp(a, b, b + 2),
    "clamp-least": lambda a, b: torch.clamp(a, min=b),
    "clamp-most": lambda a, b: torch.clamp(a, max=b),
    "isclose": lambda a, b: torch.isclose(a, b),
    "isclose-wide": lambda a, b: torch.isclose(a, b, rtol=0, atol=2),
    "isin": lambda a, b: torch.isin(a, b),
    "isin-not": lambda a, b: torch.isin(a, b, invert=True),
    "addcmul": lambda a, b: torch.addcmul(a, a, b, value=2),
    "masked": lambda a, b: a.expand(torch.broadcast_shapes(a.shape, b.shape)).masked_fill(b > 1, 3),
    "chosen": lambda a, b: torch.masked_select(a, b > 1),
    "spread": lambda a, b: torch.stack(torch.broadcast_tensors(a, b)),
    "heaviside": lambda a, b: torch.heaviside(a, b),
    "floor_divide": lambda a, b: torch.floor_divide(a, b + (b == 0)),
    "remainder": lambda a, b: torch.remainder(a, b + (b == 0)),
    "fmod": lambda a, b: torch.fmod(a, b + (b == 0)),
    "div-floor": lambda a, b: torch.div(a, b + (b == 0), rounding_mode="floor"),
    "div-trunc": lambda a, b: torch.div(a, b + (b == 0), rounding_mode="trunc"),
}
_WHOLE = {
    **_named("bitwise_and bitwise_or bitwise_xor gcd"),
    "lcm": lambda a, b: torch.lcm(a % 50, b % 40),
    "shift-left": lambda a, b: a % 16 << abs(b) % 3,
    "shift-right": lambda a, b: a >> abs(b) % 3,
    "pow": lambda a, b: (a % 5) ** (abs(b) % 3),
    "place": lambda a, b: torch.bitwise_not(a) ^ b,
}
_FRACTIONS = {
    **_named("atan2 hypot copysign logaddexp logaddexp2 nextafter"),
    "div": lambda a, b: a / (abs(b) + 1),
    "pow": lambda a, b: (abs(a) + 1) ** (b / 8),
    "xlogy": lambda a, b: torch.xlogy(a, abs(b) + 1),
    "xlog1py": lambda a, b: torch.special.xlog1py(a, abs(b)),
    "ldexp": lambda a, b: torch.ldexp(a, (b % 4).round()),
    "lerp": lambda a, b: torch.lerp(a, a * 2, b / 4),
    "lerp-number": lambda a, b: torch.lerp(*torch.broadcast_tensors(a, b), 0.25),
    "addcdiv": lambda a, b: torch.addcdiv(a, a, abs(b) + 1, value=2),
    "closeness": lambda a, b: torch.isclose(a, b, equal_nan=True),
    "mse": lambda a, b: torch.nn.functional.mse_loss(*torch.broadcast_tensors(a, b), reduction="none"),
    "prelu": lambda a, b: torch.where(a > 0, a, a * b),
}
_COMPLEX = {
    name: {**_ANY, **_FRACTIONS}[name]
    for name in ("add", "sub", "mul", "eq", "ne", "add-scaled", "sub-scaled", "rsub", "addcmul", "spread", "isclose")
}
_BOOLS = {
    name: form
    for name, form in {**_ANY, **_WHOLE}.items()
    if name.startswith(("eq", "ne", "l", "g", "max", "min", "logical", "where", "bitwise", "isin", "mul", "spread"))
    and name not in ("lcm", "gcd", "where-mask")
}
# These are asked of every pair of sides, the rest of every third.
_FIRST = ("eq", "mul", "maximum", "where", "lt", "isclose", "bitwise_and", "logical_and")
# Which sides two operands have: alike, one of each, of no dimensions, of one place, of none.
_PAIRS: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    *(
        (one, one)
        for one in ((5, 1), (1, 5), (5, 1, 1), (1, 5, 1), (1, 1), (1,), (), (0, 1), (1, 0), (1, 1, 5), (3, 2))
    ),
    *(((5, 1), other) for other in ((), (1,), (1, 5), (5,), (1, 1), (1, 0), (4, 5, 1), (1, 5, 2), (1, 1, 1))),
    *((other, (5, 1)) for other in ((), (1,), (1, 5), (5,), (1, 1), (4, 1, 2), (1, 1, 1))),
    *(((), (1,)), ((1,), ()), ((5, 1, 1), (5,)), ((5, 1, 1), (1, 5)), ((1, 5), (5, 1, 1)), ((), (0,)), ((1,), (0, 3))),
)
# How the first one and the second one lie: dense, as the columns of something wider.
_LAID: dict[str, Callable[[torch.Tensor, tuple[int, ...], int], torch.Tensor]] = {
    "dense": lambda x, shape, start: x[start : start + torch.Size(shape).numel()].reshape(shape),
    "columns": lambda x, shape, start: torch.stack([x, x.flip(0)], 1)[
        start : start + torch.Size(shape).numel(), 0
    ].view(shape),
}


def _together(parts: list[torch.Tensor]) -> Any:
    """Return what many calls answer as one tensor, and the shape of each."""
    return [torch.cat([one.flatten() for one in parts]), str([tuple(one.shape) for one in parts])]


def _paired(form: Form, ways: tuple[str, str], part: slice, x: torch.Tensor, y: torch.Tensor) -> Any:
    return _together([form(_LAID[ways[0]](x, one, 2), _LAID[ways[1]](y, two, 1)) for one, two in _PAIRS[part]])


def _operands(d: Any, dtype: torch.dtype) -> Any:
    """Draw two lines of small numbers, many of them alike; the whole ones are past what float32 counts."""
    x, y = (d.integers(0 if dtype in (torch.uint8, torch.bool) else -4, 6, 48) for _ in range(2))
    y = torch.where(torch.arange(48) % 3 == 1, y, x.roll(-1))
    x[5] = y[5] = 1
    if dtype in (torch.int64, torch.int32):
        far = 2**40 if dtype == torch.int64 else 2**26
        x, y = (one + far * (torch.arange(48) % 4 == at) for at, one in ((1, x), (1, y)))
    return x.to(dtype), y.to(dtype)


_TABLES: dict[torch.dtype, dict[str, Form]] = {
    torch.float32: {**_ANY, **_FRACTIONS},
    **{dtype: {**_ANY, **_FRACTIONS} for dtype in HALVES},
    **{dtype: {**_ANY, **_WHOLE} for dtype in (torch.int64, torch.int32, torch.uint8, torch.int16)},
    torch.bool: _BOOLS,
    torch.complex64: _COMPLEX,
}
_EACH = {**dict.fromkeys(HALVES, 5), torch.int32: 3, torch.int16: 5, torch.uint8: 3}
for _dtype, _forms in _TABLES.items():
    add_table(
        cases,
        f"columns-{str(_dtype)[6:]}",
        {
            f"{name}-{'-'.join(ways)}": lambda x, y, row=(form, ways, part): _paired(*row, x, y)
            for ways in (("dense", "dense"), ("columns", "columns"), ("dense", "columns"))
            for at, (name, form) in enumerate(_forms.items())
            if at % ((1 if ways == ("dense", "dense") else 7) * _EACH.get(_dtype, 1)) == 0
            for part in [slice(None) if name in _FIRST and _dtype not in HALVES else slice(at % 3, None, 3)]
            if _dtype != torch.bool or not name.startswith("isin")
        },
        lambda d, dtype=_dtype: _operands(d, dtype),
        factor=16.0,
    )
# What has no dimensions, of another dtype than what has some: the pair's dtype is that of the kind.
_DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)
add_table(
    cases,
    "columns-two-dtypes",
    {
        f"{name}-{str(one)[6:]}-{str(two)[6:]}": lambda x, y, form=form, one=one, two=two: _together(
            [form(a.to(one), b.to(two)) for a, b in ((x[:3], y[0]), (x[0], y[:3]), (x[0], y[0]), (x[:3, None], y[:2]))]
        )
        for name, form in {
            **_named("add mul maximum eq lt logical_and"),
            "where": lambda a, b: torch.where(a > 0, a, b),
            "isin": lambda a, b: torch.isin(a, b),
        }.items()
        for at, one in enumerate(_DTYPES)
        for place, two in enumerate(_DTYPES)
        if one != two and (at + 2 * place) % 3 and (name != "isin" or torch.bool not in (one, two))
    },
    lambda d: (torch.tensor([3.0, 1.0, 0.0]), torch.tensor([1.0, 2.0, 3.0])),
)
add_table(
    cases,
    "columns-derived",
    {
        f"{name}-{one}-{two}": lambda x, y, form=form, one=one, two=two: derived(
            form, _LAID["dense"](x, one, 0), _LAID["dense"](y, two, 0)
        )
        for at, (name, form) in enumerate(
            {
                **{name: _ANY[name] for name in ("add", "sub", "mul", "add-scaled", "where", "addcmul")},
                **{name: _FRACTIONS[name] for name in ("div", "atan2", "hypot", "lerp", "logaddexp", "addcdiv")},
                "maximum": torch.maximum,
                "pow": lambda a, b: (abs(a) + 1) ** (b / 4),
            }.items()
        )
        for place, (one, two) in enumerate(_PAIRS)
        if (at + place) % 7 == 0
    },
    lambda d: (d.distinct(40) / 8 + 0.0625, d.distinct(40) / 8 - 0.03125),
    factor=16.0,
)
add_refused(
    cases,
    "columns",
    lambda d: (d.integers(1, 5, 60), d.integers(1, 5, 60)),
    {
        f"{name}-{one}-{two}": lambda x, y, form=form, one=one, two=two: form(
            _LAID["dense"](x, one, 0), _LAID["dense"](y, two, 0)
        )
        for name, form in {**_ANY, **_WHOLE}.items()
        for one, two in (((5, 1), (4, 1)), ((5,), (4, 5, 2)), ((0, 1), (2, 1)), ((3, 2), (2, 3)))
        if not name.startswith("isin")
    },
)
