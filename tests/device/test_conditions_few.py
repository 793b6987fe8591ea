"""Each pointwise operator and each conversion at every length from 1 to 9, and beside 16 and 32.

Kernels take numbers by two, four, eight or a register, and the rest otherwise: one-byte numbers at an offset that is no
multiple of four were refused, https://github.com/pytorch/pytorch/issues/119367
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]
_LENGTHS = (*range(1, 10), 15, 16, 17, 31, 32, 33)
_INTEGERS = (torch.int32, torch.int64, torch.uint8, torch.int8)
_DTYPES = (torch.float32, *HALVES, *_INTEGERS, torch.bool)


def _lengths(form: Form, *operands: torch.Tensor) -> torch.Tensor:
    """Return the answers to a few numbers of the operands, joined: from their first on, or from the second."""
    parts = ((n % 2, n % 2 + n) for n in _LENGTHS)
    return torch.cat([form(*(one[start:end] for one in operands)) for start, end in parts])


def _of(place: Any, names: str) -> dict[str, Form]:
    return {name: lambda *operands, name=name: getattr(place, name)(*operands) for name in names.split()}


# x: odd eighths below 4, from both sides of 0; y: other ones; a quotient of both is no whole number.
_UNARY: dict[str, Form] = {
    **_of(torch, "abs neg sign sgn signbit square isnan isinf isfinite isposinf isneginf logical_not nan_to_num clone"),
    **_of(torch, "exp exp2 expm1 sin cos tan sinh cosh tanh asinh atan sigmoid erf erfc sinc deg2rad rad2deg"),
    **_of(torch, "floor ceil round trunc frac reciprocal zeros_like ones_like positive i0"),
    **_of(torch.special, "entr i0e i1 i1e ndtr log_ndtr"),
    **_of(F, "relu relu6 gelu silu softplus elu selu celu leaky_relu hardswish hardsigmoid hardtanh hardshrink"),
    **_of(F, "softshrink tanhshrink softsign mish logsigmoid"),
    **{
        f"{name}-size": lambda x, name=name: getattr(torch, name)(x.abs())
        for name in "log log2 log10 log1p sqrt rsqrt lgamma digamma".split()
    },
    **{
        f"{name}-below-1": lambda x, name=name: getattr(torch, name)(x / 8) for name in "asin acos atanh erfinv".split()
    },
    "acosh": lambda x: torch.acosh(x.abs() + 1),
    "logit": lambda x: torch.logit(x / 16 + 0.5),
    "gelu-tanh": lambda x: F.gelu(x, approximate="tanh"),
}
_SHARED: dict[str, Form] = {
    **_of(torch, "eq ne lt le gt ge maximum minimum logical_and logical_or logical_xor"),
    "where": lambda x, y: torch.where(x > y, x, y),
    "masked_fill": lambda x, y: x.masked_fill(y > x, 1),
    "copied": lambda x, y: x.clone().copy_(y),
    "filled": lambda x, y: x.clone().fill_(1),
    "flipped": lambda x, y: x.flip(0),
    "repeated": lambda x, y: x.repeat(3),
    "joined": lambda x, y: torch.cat([x, y]),
    "product": lambda x, y: x * y,
}
_BINARY: dict[str, Form] = {
    **_SHARED,
    **_of(
        torch, "add sub div fmax fmin atan2 fmod remainder floor_divide hypot copysign logaddexp logaddexp2 heaviside"
    ),
    **{f"div-{mode}": lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")},
    "pow": lambda x, y: torch.pow(x.abs(), y),
    "pow-number": lambda x, y: torch.cat([x**2, x**3, x.abs() ** 0.5, 2**x, x**-1]),
    "xlogy": lambda x, y: torch.xlogy(x, y.abs()),
    "lerp": lambda x, y: torch.cat([torch.lerp(x, y, 0.25), torch.lerp(x, y, y)]),
    "addcmul": lambda x, y: torch.addcmul(x, y, y, value=0.5),
    "addcdiv": lambda x, y: torch.addcdiv(x, x, y, value=0.5),
    "numbers": lambda x, y: torch.cat([x + 2, 3 - x, x * 0.5, 1 / x, torch.add(x, y, alpha=2), x.clamp(-0.5, 1)]),
    "in-place": lambda x, y: x.clone().mul_(2).add_(y).sub_(1).div_(4),
    "losses": lambda x, y: torch.cat([F.mse_loss(x, y, reduction="none"), F.smooth_l1_loss(x, y, reduction="none")]),
    "slopes": lambda x, y: F.threshold(x, 0.5, 2) + F.prelu(x, y[:1]),
}
# x: from 0 (uint8) or -9 to 9; y: from 1 to 5.
_WHOLE: dict[str, Form] = {
    **_SHARED,
    **_of(torch, "add sub div fmod remainder floor_divide bitwise_and bitwise_or bitwise_xor gcd lcm"),
    **{f"div-{mode}": lambda x, y, mode=mode: torch.div(x, y, rounding_mode=mode) for mode in ("floor", "trunc")},
    **{
        name: lambda x, y, name=name: getattr(torch, name)(x)
        for name in "abs neg sign square bitwise_not logical_not floor sqrt exp sigmoid sin tanh reciprocal".split()
    },
    "pow": lambda x, y: torch.cat([(x.abs() % 3) ** y, x**2, (x % 3) ** 3]),
    "shifted": lambda x, y: torch.cat([x.abs() << (y % 3), x >> (y % 3)]),
    "numbers": lambda x, y: torch.cat([x + 2, 3 - x, x * 2, x // 3, x % 3, x & 6, x >> 1, x.clamp(2, 5)]),
    "halves": lambda x, y: torch.cat([x / 2, x * 0.5, x + 0.25]),
    "in-place": lambda x, y: x.clone().mul_(2).add_(y).sub_(1),
}


def _numbers(dtype: torch.dtype) -> Any:
    """Return what draws x and y of a dtype."""
    if dtype.is_floating_point:
        return lambda d: tuple(((d.integers(-16, 16, 40) * 2 + 1) / step).to(dtype) for step in (8, 4))
    if dtype == torch.bool:
        return lambda d: (d.bools(40), d.bools(40))
    return lambda d: (d.integers(0 if dtype == torch.uint8 else -9, 10, 40).to(dtype), d.integers(1, 6, 40).to(dtype))


for _dtype in _DTYPES:
    _forms = {name: lambda x, y, form=form: form(x) for name, form in _UNARY.items()}
    for _name, _table in (
        {"unary": _forms, "binary": _BINARY}.items() if _dtype.is_floating_point else (("whole", _WHOLE),)
    ):
        add_table(
            cases,
            f"few-{_name}-{str(_dtype)[6:]}",
            {name: lambda x, y, form=form: _lengths(form, x, y) for name, form in _table.items()},
            _numbers(_dtype),
        )


def _values(d: Any, dtype: torch.dtype) -> Any:
    """Draw numbers that all dtypes hold but for the part behind the point, and that all with a sign hold."""
    parts = d.integers(0, 100, 40) + d.integers(0, 4, 40) / 4
    signs = d.integers(0, 2, 40) * 2 - 1
    return parts.to(dtype), (parts * (1 if dtype == torch.uint8 else signs)).to(dtype)


def _copied(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return torch.zeros(len(x), dtype=dtype, device=x.device).copy_(x)


for _dtype in _DTYPES:
    add_table(
        cases,
        f"few-converted-{str(_dtype)[6:]}",
        {
            f"{name}-{str(to)[6:]}": lambda x, y, form=form, to=to: _lengths(
                lambda z: form(z, to), x if to == torch.uint8 else y
            )
            for name, form in (("to", lambda x, to: x.to(to)), ("copied", _copied))
            for to in _DTYPES
        },
        lambda d, dtype=_dtype: _values(d, dtype),
    )
