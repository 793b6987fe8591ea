"""Rules 1 and 6: each number of an activation at 0, 1, -1 and far, in place and not, derived once, twice and forwards.

leaky_relu in place with a slope of 0 had no gradient, https://github.com/pytorch/pytorch/issues/37345; softplus with a
beta and a threshold far from 1, https://github.com/pytorch/pytorch/issues/171249
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_SLOPES = (0, 0.0, -0.0, 1, 1.0, -1.0, -0.5, 0.25, 3, 1000.0, 2.0**-20)
_SIZES = (0.5, 1, 2.0, -1.0, 1000.0, 2.0**-10)

# By name: the arguments that are asked, and whether there is a form in place.
_NUMBERS: dict[str, tuple[tuple[dict[str, Any], ...], bool]] = {
    "leaky_relu": (tuple({"negative_slope": one} for one in _SLOPES), True),
    "elu": (tuple({"alpha": one} for one in (*_SLOPES[:6], 0.25, 3, 1000.0)), True),
    "celu": (tuple({"alpha": one} for one in _SIZES), True),
    "hardshrink": (tuple({"lambd": one} for one in (0, 0.0, 0.5, 1, 3, 1000.0, -1.0)), False),
    "softshrink": (tuple({"lambd": one} for one in (0, 0.0, 0.5, 1, 3, 1000.0)), False),
    "hardtanh": (
        tuple(
            {"min_val": low, "max_val": high}
            for low, high in ((-1, 1), (0, 6), (0.0, 0.5), (-3, -1), (-0.5, 1000.0), (1, 3), (-2.0, 0))
        ),
        True,
    ),
    "threshold": (
        tuple(
            {"threshold": least, "value": value}
            for least, value in ((0, 0), (0.0, -1.0), (1, 7), (-1, 0.25), (0.5, float("inf")), (-1000.0, 2), (1000, -3))
        ),
        True,
    ),
    "softplus": (
        tuple(
            {"beta": beta, "threshold": most}
            for beta, most in ((1, 20), (1, 0), (2, 1), (0.5, -1), (4.0, 1000), (-1, 20), (8, 0.5), (0.125, 20.0))
        ),
        False,
    ),
    "rrelu": (
        tuple(
            {"lower": low, "upper": high, "training": training}
            for low, high in ((0, 0), (0.25, 0.25), (1, 1), (-1.0, -1.0), (3, 3), (0, 0.5), (-1, 1), (-1, 0.5))
            for training in (False, True)[: 1 + (low == high)]
        ),
        True,
    ),
    "gelu": (({"approximate": "none"}, {"approximate": "tanh"}), False),
    "logsigmoid": (({},), False),
    "tanhshrink": (({},), False),
    "softsign": (({},), False),
    **{name: (({},), True) for name in ("relu", "relu6", "selu", "silu", "mish", "hardswish", "hardsigmoid")},
}
_MODULES = {
    "leaky_relu": "LeakyReLU",
    "elu": "ELU",
    "celu": "CELU",
    "hardshrink": "Hardshrink",
    "softshrink": "Softshrink",
    "hardtanh": "Hardtanh",
    "threshold": "Threshold",
    "softplus": "Softplus",
    "gelu": "GELU",
    "relu6": "ReLU6",
    "selu": "SELU",
    "silu": "SiLU",
    "mish": "Mish",
    "hardswish": "Hardswish",
    "hardsigmoid": "Hardsigmoid",
}
_BENDS_BACK = ("leaky_relu", "elu", "celu", "rrelu")  # of a negative number the result does not tell the operand


def _first(numbers: dict[str, Any]) -> float:
    return next(iter(numbers.values()))


def _derived(form: Form, x: torch.Tensor) -> Any:
    """Derive by an uneven gradient: of a number that is no leaf, so that it may be written over."""
    start = leaf(x)
    y = form(start * 1)
    y.backward(uneven(y))
    return [y, start.grad]


def _twice(form: Form, x: torch.Tensor) -> Any:
    start = leaf(x)
    y = form(start)
    weight = leaf(uneven(y))
    (first,) = torch.autograd.grad(y, start, weight, create_graph=True)
    return [first, *torch.autograd.grad(first, (start, weight), uneven(first), allow_unused=True)]


def _forwards(form: Form, x: torch.Tensor) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(form(forward_ad.make_dual(x, uneven(x)))).tangent


_FORMS: dict[str, Form] = {}
_REFUSED: dict[str, Form] = {}
_DEEPER: dict[str, Form] = {}
for _name, (_all, _place) in _NUMBERS.items():
    for _numbers in _all:
        _called = lambda x, name=_name, numbers=_numbers: getattr(F, name)(x, **numbers)  # noqa: E731
        _within = lambda x, name=_name, numbers=_numbers: getattr(F, name)(x, **numbers, inplace=True)  # noqa: E731
        _key = f"{_name}-{_numbers}"
        _FORMS[_key] = lambda x, form=_called: _derived(form, x)
        if not _place:
            _FORMS[f"{_key}-column"] = lambda x, form=_called: _derived(form, x.t())
        if _name != "softsign":  # of its many steps: seconds of preparing
            _DEEPER[f"{_key}-forwards"] = lambda x, form=_called: _forwards(form, x)
            if _name != "hardsigmoid":  # it has no second derivative
                _DEEPER[f"{_key}-twice"] = lambda x, form=_called: _twice(form, x)
        if _name in _MODULES:
            _FORMS[f"{_key}-module"] = lambda x, name=_name, numbers=_numbers: getattr(torch.nn, _MODULES[name])(
                **numbers
            )(x)
        if _place:
            _FORMS[f"{_key}-place-bare"] = lambda x, form=_within: form(x.clone())
            negative = _name in _BENDS_BACK and _first(_numbers) < 0
            (_REFUSED if negative else _FORMS)[f"{_key}-place"] = lambda x, form=_within: _derived(form, x)
            if not negative:
                _FORMS[f"{_key}-place-columns"] = lambda x, form=_within: _derived(lambda y: form(y.t()[1:]), x)
_FORMS |= {
    f"prelu-{slope}-{count}": lambda x, slope=slope, count=count: _derived(
        lambda y: F.prelu(y, y.new_full((count,), slope)), x
    )
    for slope in _SLOPES
    for count in (1, 12)
}
_POINTS = (-1000.0, -8.0, -3.0, -1.0, -0.5, -0.0, 0.0, 0.25, 0.5, 1.0, 3.0, 6.0)
for _dtype in (torch.float32, *HALVES):
    for _kind, _table in (("once", _FORMS), ("deeper", _DEEPER)):
        if _dtype == torch.float32 or _kind == "once":
            add_table(
                cases,
                f"slopes-{_kind}-{str(_dtype)[6:]}",
                _table
                if _dtype == torch.float32
                else {
                    key: form for key, form in [*_table.items()][::5] if "True" not in key or _dtype != torch.float16
                },
                lambda d, dtype=_dtype: (torch.tensor([_POINTS, _POINTS[::-1], _POINTS]).to(dtype),),
                factor=16.0,
                terms=16,
                deterministic=False,
            )
add_refused(
    cases,
    "slopes-place",
    lambda d: (d.normal(4, 6),),
    {
        **_REFUSED,
        "softshrink": lambda x: F.softshrink(x, -0.5),
        "celu": lambda x: F.celu(x, 0.0),
        "rrelu": lambda x: F.rrelu(x, 0.5, 0.25, training=True),
        "rrelu-far": lambda x: F.rrelu(x, 0.0, float("inf"), training=True),
        "hardtanh": lambda x: F.hardtanh(x.to(torch.uint8), -1, 1),
        "gelu": lambda x: F.gelu(x, approximate="other"),
        **{f"prelu-{n}": lambda x, n=n: F.prelu(x, x.new_ones(n)) for n in (0, 2, 4, 7)},
        "prelu-kind": lambda x: F.prelu(x, x.new_ones(1).half()),
        "prelu-rank": lambda x: F.prelu(x, x.new_ones(2, 3)),
        "glu": lambda x: F.glu(x[:, :5]),
        "glu-point": lambda x: F.glu(x[0, 0]),
    },
)
