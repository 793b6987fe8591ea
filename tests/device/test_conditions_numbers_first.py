"""Python's numbers where a tensor may stand: first, second, by operators and by functions, of each kind and dtype."""

from __future__ import annotations

import operator
from typing import Any

import torch

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
# A number, then what it meets: each is asked both ways round.
_OPERATORS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "lt")
_BITS = ("and_", "or_", "xor", "lshift", "rshift")
_FUNCTIONS = (
    *("add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "pow", "float_power", "xlogy", "where"),
    *("rsub", "fmod", "copysign", "eq", "ge"),
)
_OF_BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift")
# These take a number behind the tensor alone.
_SECOND = ("rsub", "fmod", "copysign", "eq", "ge")
_SPECIAL = ("xlogy", "xlog1py")


def _options(name: str, x: torch.Tensor, number: Any) -> dict[str, Any]:
    """Return how one function is called with a number before and behind a tensor, and with its options."""
    function = getattr(torch, name)
    if name == "where":
        return {
            "where-first": lambda: torch.where(x > 0, number, x),
            "where-second": lambda: torch.where(x > 0, x, number),
            "where-both": lambda: torch.where(x > 0, number, 2),
        }
    found = {f"{name}-second": lambda: function(x, number)}
    if name not in _SECOND:
        found[f"{name}-first"] = lambda: function(number, x)
    if name == "div":
        for mode in ("floor", "trunc"):
            found[f"{name}-first-{mode}"] = lambda mode=mode: function(number, x, rounding_mode=mode)
            found[f"{name}-second-{mode}"] = lambda mode=mode: function(x, number, rounding_mode=mode)
    if name in ("add", "sub"):
        found[f"{name}-first-alpha"] = lambda: function(number, x, alpha=3)
        found[f"{name}-second-alpha"] = lambda: function(x, number, alpha=3)
    return found


def _forms(numbers: tuple[Any, ...], *, bits: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number in numbers:
        for name in (*_OPERATORS, *_BITS) if bits else _OPERATORS:
            form = getattr(operator, name)
            found[f"{name}-{number}-first"] = lambda x, form=form, number=number: form(number, x)
            found[f"{name}-{number}-second"] = lambda x, form=form, number=number: form(x, number)
        for name in (*_FUNCTIONS, *_OF_BITS) if bits else _FUNCTIONS:
            for key in _options(name, torch.zeros(()), number):
                found[f"{key}-{number}"] = lambda x, name=name, key=key, number=number: _options(name, x, number)[key]()
        for name in _SPECIAL:
            found[f"special-{name}-{number}"] = lambda x, name=name, number=number: getattr(torch.special, name)(
                number, x
            )
    return found


# Halves and wholes: what is asked is the form, not the rounding.
_VALUES = (1.0, 2.0, -3.0, 0.5, -1.5, 4.0, 6.0, -0.25)
# A shift by less than nothing is open.
_FLOATS = _forms((2, 2.5, -3, 0))
_WHOLE = {
    name: form for name, form in _forms((2, 2.5, -3), bits=True).items() if not ("shift" in name and "-3" in name)
}
# Which part of a complex number over 0 is NaN is open; complex numbers have no order, and no floor.
_UNORDERED = ("floor", "lt", "ge", "where", "mod", "remainder", "trunc")
_COMPLEX = {name: form for name, form in _forms((2, 2.5, -3)).items() if not any(part in name for part in _UNORDERED)}
for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    add_table(
        cases,
        f"numbers-first-{str(_dtype)[6:]}",
        _FLOATS,
        lambda d, dtype=_dtype: (torch.tensor(_VALUES).repeat(2, 1).to(dtype),),
        factor=16.0,
    )
for _dtype in (torch.int64, torch.int32, torch.uint8, torch.bool, torch.complex64):
    add_table(
        cases,
        f"numbers-first-{str(_dtype)[6:]}",
        _COMPLEX if _dtype.is_complex else _WHOLE,
        lambda d, dtype=_dtype: (d.integers(1, 2 if dtype == torch.bool else 6, 2, 8).to(dtype),),
        factor=16.0,
    )
for _dtype in (torch.float32, torch.float16, torch.int32):
    add_table(
        cases,
        f"numbers-first-none-{str(_dtype)[6:]}",
        _WHOLE if _dtype == torch.int32 else _FLOATS,
        lambda d, dtype=_dtype: (torch.tensor(4).to(dtype),),
        factor=16.0,
    )
# With a gradient: the values are positive, so that each power has one.
add_table(
    cases,
    "numbers-first-derived",
    {
        f"{name}-{kind}": lambda x, form=form, number=number: derived(lambda y: form(y, number), x)
        for kind, number in (("whole", 2), ("real", 2.5), ("negative", -3))
        for name, form in {
            "sub": lambda y, a: a - y,
            "div": lambda y, a: a / y,
            "div-function": lambda y, a: torch.div(a, y),
            "mul-function": lambda y, a: torch.mul(a, y),
            "sub-function": lambda y, a: torch.sub(a, y),
            "rsub": lambda y, a: torch.rsub(y, a, alpha=2),
            "remainder": lambda y, a: torch.remainder(y, a),
            "pow": lambda y, a: abs(a) ** y,
            "pow-function": lambda y, a: torch.pow(abs(a), y),
            "pow-second": lambda y, a: torch.pow(y, a),
            "xlogy": lambda y, a: torch.xlogy(a, y),
            "where": lambda y, a: torch.where(y > 1, a, y),
            "minimum": lambda y, a: y.clamp(max=a),
        }.items()
    },
    lambda d: (torch.tensor([1.25, 2.0, 0.5, 1.75, 3.0, 7.0]),),
    factor=16.0,
)
