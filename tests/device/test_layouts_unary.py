"""Layouts of pointwise operators with one operand."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.layout_cases import add_layout_cases
from device_suite.ops import FLOATS, INTEGERS, pointwise, present

cases = Cases("layouts")
WHOLE = (*FLOATS, *INTEGERS)
EVERY = (*WHOLE, torch.bool)


# name -> domain of its floating operand. Series and long polynomials may be a few units in the last place worse.
_SMOOTH = {
    "any": "exp exp2 expm1 sin cos atan tanh asinh sigmoid erf deg2rad rad2deg i0 gelu silu mish softplus "
    "softsign logsigmoid tanhshrink elu selu celu",
    "positive": "log log2 log10 log1p sqrt rsqrt lgamma digamma reciprocal",
    "unit": "tan asin acos sinh cosh atanh erfc erfinv",
    "above_one": "acosh",
    "inner": "logit",
}
for _domain, _names in _SMOOTH.items():
    add_layout_cases(cases, *present(*(pointwise(_name, _domain, factor=32) for _name in _names.split())))

# Its gradient is a small difference of large terms.
add_layout_cases(cases, *present(pointwise("sinc", "inner", factor=128)))

_PIECES: dict[str, tuple[Any, ...]] = {
    "relu": (),
    "relu6": (),
    "hardswish": (),
    "hardsigmoid": (),
    "hardtanh": (),
    "leaky_relu": (0.1,),
    "threshold": (0.1, -2.0),
    "softshrink": (),
    "hardshrink": (),
    "frac": (),
    "nan_to_num": (),
}
add_layout_cases(cases, *present(*(pointwise(_name, "any", more=_more, factor=8) for _name, _more in _PIECES.items())))

_PLAIN: dict[str, tuple[Any, ...]] = {
    "abs": (),
    "neg": (),
    "sign": (),
    "sgn": (),
    "positive": (),
    "clamp": (-1, 1),
    "clamp_min": (0,),
    "clamp_max": (0,),
}
add_layout_cases(
    cases, *present(*(pointwise(_name, "any", more=_more, dtypes=WHOLE) for _name, _more in _PLAIN.items()))
)
add_layout_cases(cases, *present(pointwise("square", "any", dtypes=WHOLE, factor=16)))
add_layout_cases(cases, *present(*(pointwise(_name, "quarters") for _name in ("ceil", "floor", "round", "trunc"))))
_ASKING = ("isnan", "isinf", "isfinite", "signbit", "isposinf", "isneginf", "logical_not")
add_layout_cases(cases, *present(*(pointwise(_name, "any", dtypes=EVERY, grads=(), inplace=None) for _name in _ASKING)))
add_layout_cases(cases, *present(pointwise("bitwise_not", "any", dtypes=(*INTEGERS, torch.bool))))
