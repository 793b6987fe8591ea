"""Layouts of pointwise operators with two and three operands, broadcasting, scalars and mixed dtypes."""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, Arg, Op, pointwise, present, spellings

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS)
EVERY = (*WHOLE, torch.bool)
BITS = (*INTEGERS, torch.bool)


for _name in ("add", "mul", "maximum", "minimum"):
    add_layout_cases(cases, *present(pointwise(_name, "any", "any", dtypes=EVERY)))
add_layout_cases(cases, *present(pointwise("sub", "any", "any", dtypes=WHOLE)))
add_layout_cases(cases, *present(pointwise("add", "any", "any", options={"alpha": 2}, label="add_alpha", dtypes=WHOLE)))
add_layout_cases(cases, *present(pointwise("sub", "any", "any", options={"alpha": -3}, label="sub_alpha")))
add_layout_cases(cases, *present(pointwise("rsub", "any", "any", inplace=None, out=None)))
for _name in ("div", "true_divide", "divide"):
    # A quotient need not be rounded exactly, and its gradient has three of them.
    add_layout_cases(cases, *present(pointwise(_name, "any", "positive", factor=16)))
for _mode in ("floor", "trunc"):
    add_layout_cases(
        cases,
        *present(
            pointwise(
                "div",
                "quarters",
                "halves",
                options={"rounding_mode": _mode},
                label=f"div_{_mode}",
                dtypes=WHOLE,
                grads=(),
            )
        ),
    )
for _name in ("floor_divide", "remainder", "fmod"):
    add_layout_cases(cases, *present(pointwise(_name, "quarters", "halves", dtypes=WHOLE, grads=())))
for _name in ("fmax", "fmin", "copysign", "heaviside"):
    _grads = () if _name == "heaviside" else None
    add_layout_cases(cases, *present(pointwise(_name, "any", "any", grads=_grads)))
for _name in ("atan2", "hypot", "logaddexp", "logaddexp2"):
    add_layout_cases(cases, *present(pointwise(_name, "any", "any", factor=32)))
add_layout_cases(cases, *present(pointwise("xlogy", "any", "positive", factor=32)))
# pow is 16 units in the last place in Metal: the one operator with a c of its own (64 = 4 * 16).
add_layout_cases(cases, *present(pointwise("pow", "positive", "unit", factor=64)))


def _stepped(x: Any, result: Any) -> Any:
    """One unit in the last place is far below any bound: ask for the direction, which no rounding blurs."""
    return [result > x, result < x, result]


def _step(x: Any, y: Any) -> Any:
    before = x.clone()
    return _stepped(before, x.nextafter_(y))


_op = Op(
    "nextafter",
    (Arg("r n"), Arg("r n")),
    (lambda x, y: _stepped(x, torch.nextafter(x, y)),),
    inplace=_step,
    dtypes=FLOATS[:1],
    grads=(),
)
add_layout_cases(cases, _op)
add_layout_cases(cases, *present(pointwise("dist", "any", "any", pointwise=False, empty="", terms=64, out=None)))
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    add_layout_cases(cases, *present(pointwise(_name, "any", "any", dtypes=EVERY, grads=())))
for _name in ("logical_and", "logical_or", "logical_xor"):
    add_layout_cases(cases, *present(pointwise(_name, "bool", "bool", dtypes=EVERY, grads=())))
for _name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
    add_layout_cases(cases, *present(pointwise(_name, "any", "any", dtypes=BITS)))
for _name in ("bitwise_left_shift", "bitwise_right_shift"):
    add_layout_cases(
        cases, *present(pointwise(_name, "positive", "positive", dtypes=(torch.int32, torch.int64, torch.uint8)))
    )
for _name in ("gcd", "lcm"):
    add_layout_cases(cases, *present(pointwise(_name, "positive", "positive", dtypes=(torch.int64, torch.int32))))
add_layout_cases(cases, *present(pointwise("isclose", "any", "any", grads=(), out=None, inplace=None)))

# Three operands.
for _name in ("addcmul", "addcdiv"):
    _domains = ("any", "any", "positive")
    add_layout_cases(cases, *present(pointwise(_name, *_domains, options={"value": 0.5}, terms=4)))
add_layout_cases(cases, *present(pointwise("lerp", "any", "any", "unit", terms=4)))
add_layout_cases(cases, *present(pointwise("lerp", "any", "any", more=(0.3,), label="lerp_scalar", terms=4)))
_clamp = pointwise("clamp", "any", "unit", "above_one", label="clamp_tensors", dtypes=(torch.float32, torch.int64))
add_layout_cases(cases, *present(_clamp))
_where = Op(
    name="where",
    args=(Arg("r n", "bool"), Arg("r n"), Arg("r n")),
    forms=(lambda m, x, y: torch.where(m, x, y), lambda m, x, y: x.where(m, y)),
    dtypes=EVERY,
    pointwise=True,
    empty="r",
)
add_layout_cases(cases, _where)
_prelu = Op(
    "prelu",
    (Arg("b c h"), Arg("c")),
    (lambda x, w: F.prelu(x, w), lambda x, w: torch.prelu(x, w)),
    terms=64,
    expanded=False,
)
add_layout_cases(cases, _prelu)

# The operators of the language, and their reflected and in-place forms.
for _name in ("add", "sub", "mul", "truediv", "eq", "ne", "lt", "le", "gt", "ge"):
    _act = getattr(operator, _name)
    _write = getattr(operator, "i" + _name, None)
    add_layout_cases(
        cases,
        Op(
            f"operator_{_name}",
            (Arg("r n"), Arg("r n", "positive")),
            (_act,),
            inplace=_write,
            dtypes=(torch.float32,),
            factor=16 if _name == "truediv" else 4,
        ),
    )
for _name in ("and_", "or_", "xor"):
    _write = getattr(operator, "i" + _name.strip("_"))
    _op = Op(
        f"operator_{_name.strip('_')}",
        (Arg("r n"), Arg("r n")),
        (getattr(operator, _name),),
        inplace=_write,
        dtypes=(torch.int64, torch.bool),
    )
    add_layout_cases(cases, _op)
for _name in ("neg", "abs", "pos"):
    add_layout_cases(
        cases, Op(f"operator_{_name}", (Arg("r n"),), (getattr(operator, _name),), dtypes=(torch.float32,))
    )

# One operand is smaller, or a number.
for _name in ("add", "sub", "mul", "div", "maximum", "eq", "lt", "pow", "atan2"):
    for _label, _shape in (("row", "n"), ("column", "r 1"), ("one", "1")):
        _op = Op(
            name=f"{_name}_{_label}",
            args=(Arg("r n", "positive"), Arg(_shape, "inner")),
            forms=(*spellings(_name), lambda x, y, name=_name: getattr(torch, name)(y, x)),
            inplace=None if _name in ("maximum", "eq", "lt") else lambda x, y, name=_name: getattr(x, name + "_")(y),
            grads=() if _name in ("eq", "lt") else None,
            dtypes=(torch.float32,),
            terms=64,
            factor=64 if _name == "pow" else 8,
        )
        add_layout_cases(cases, replace(_op, expanded=False))


def _with_numbers(x: Any) -> Any:
    return [
        x + 2,
        2 - x,
        x * 3,
        6 / x,
        x / 4,
        x // 2,
        x % 3,
        x**2,
        x**3,
        2**x,
        x == 1,
        x > 0.5,
        x >= 1,
        x.add(1.5),
        x.sub(0.25, alpha=2),
        torch.mul(x, 0.5),
        torch.div(x, 3, rounding_mode="floor"),
        torch.pow(x, 0.5),
        torch.pow(2.0, x),
        torch.fmod(x, 1.5),
        torch.remainder(x, 2),
        torch.rsub(x, 1),
        torch.true_divide(x, 7),
        x.pow(-1),
        torch.addcmul(x, x, x, value=0.1),
        torch.where(x > 1, x, torch.zeros_like(x)),
        torch.clamp(x, min=1),
        torch.clip(x, max=1.5),
    ]


def _write_numbers(x: Any) -> Any:
    x.fmod_(2)  # before any rounding: behind one it may jump
    x += 2
    x *= 3
    x -= 1
    x /= 2
    x.add_(1).mul_(0.5).sub_(0.25).div_(4).pow_(2).clamp_(min=0.01)
    return x


for _dtype in (torch.float32, torch.float16, torch.bfloat16):
    _op = Op("numbers", (Arg("r n", "halves"),), (_with_numbers,), dtypes=(_dtype,), factor=64, grads=(), expanded=True)
    add_layout_cases(
        cases, replace(_op, name=f"numbers_{str(_dtype)[6:]}", args=(Arg("r n", "halves"),), inplace=_write_numbers)
    )


def _promoted(x: Any, i: Any, b: Any, h: Any) -> Any:
    return [
        x + i,
        i * x,
        i / 2,
        i + 1.5,
        x * b,
        b + b,
        b * 2,
        i + b,
        torch.add(i, x),
        torch.true_divide(i, i.abs() + 1),
        h + x,
        h * 2,
        i > x,
        torch.where(b, x, i.to(x.dtype)),
        i.float() + h.float(),
        x.to(torch.int32) + i,
        torch.result_type(i, h) == h.dtype,
    ]


add_layout_cases(
    cases,
    Op(
        "promotion",
        (Arg("r n"), Arg("r n", dtype=torch.int64), Arg("r n", "bool"), Arg("r n", "quarters", dtype=torch.float32)),
        (_promoted,),
        dtypes=(torch.float32,),
        grads=(),
    ),
)
