"""Binary and ternary operators whose result's dtype and value follow from both operands, as data."""

from __future__ import annotations

import operator
from typing import Any, Callable

import torch

DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    torch.bool,
)
# By the name of the function in torch; a method, an in-place form or an operator sign of its own is in SIGNS.
BINARY = (
    *("add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "pow", "maximum", "minimum", "fmax", "fmin"),
    *("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "atan2", "copysign", "hypot"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "logaddexp", "xlogy"),
    *("rsub", "true_divide", "isclose", "heaviside", "gcd"),
)
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_left_shift": operator.lshift,
    "bitwise_right_shift": operator.rshift,
}
SCALARS: tuple[Any, ...] = (2, 1.5, True, 3, 0.25)

# Of three or four operands: x of the first dtype, y and z of the second; s is a Python number, o a device scalar.
TERNARY: dict[str, Callable[..., Any]] = {
    "where": lambda x, y, z, s, o: torch.where(x > 1, x, y),
    "where_mask": lambda x, y, z, s, o: torch.where(y.bool(), y, x),
    "where_scalar": lambda x, y, z, s, o: torch.where(x > 1, x, s),
    "where_scalar_first": lambda x, y, z, s, o: torch.where(y > 1, s, y),
    "where_element": lambda x, y, z, s, o: torch.where(x > 1, o, x),
    "clamp": lambda x, y, z, s, o: torch.clamp(x, y, z),
    "clamp_least": lambda x, y, z, s, o: torch.clamp(x, min=y),
    "clamp_most": lambda x, y, z, s, o: torch.clamp(x, max=z),
    "clamp_scalar": lambda x, y, z, s, o: torch.clamp(x, min=s, max=s + 1),
    "clamp_least_scalar": lambda x, y, z, s, o: torch.clamp_min(x, s),
    "clamp_wide": lambda x, y, z, s, o: torch.clamp(x, y.expand(2, *y.shape)),
    "lerp": lambda x, y, z, s, o: torch.lerp(x, y, z),
    "lerp_scalar": lambda x, y, z, s, o: torch.lerp(x, y, s),
    "addcmul": lambda x, y, z, s, o: torch.addcmul(x, y, z, value=s),
    "addcdiv": lambda x, y, z, s, o: torch.addcdiv(x, y, z, value=s),
    "add_alpha": lambda x, y, z, s, o: torch.add(x, y, alpha=s),
    "sub_alpha": lambda x, y, z, s, o: torch.sub(y, x, alpha=s),
    "rsub_alpha": lambda x, y, z, s, o: torch.rsub(x, y, alpha=s),
    "rounded_down": lambda x, y, z, s, o: torch.div(x, y, rounding_mode="floor"),
    "rounded_off": lambda x, y, z, s, o: torch.div(x, y, rounding_mode="trunc"),
    "masked_fill": lambda x, y, z, s, o: x.masked_fill(x > 1, s),
    "masked_fill_element": lambda x, y, z, s, o: x.masked_fill(x > 1, o),
    "cat": lambda x, y, z, s, o: torch.cat([x, y, z]),
    "stack": lambda x, y, z, s, o: torch.stack([y, x]),
    "in_place_add": lambda x, y, z, s, o: x.clone().add_(y, alpha=s),
    "in_place_mul": lambda x, y, z, s, o: x.clone().mul_(y),
    "in_place_element": lambda x, y, z, s, o: x.clone().mul_(o),
    "in_place_compare": lambda x, y, z, s, o: x.clone().gt_(y),
    "in_place_addcmul": lambda x, y, z, s, o: x.clone().addcmul_(y, z),
    "into_float": lambda x, y, z, s, o: torch.mul(x, y, out=torch.zeros(6, 5, device=x.device)),
    "copied": lambda x, y, z, s, o: x.clone().copy_(y),
    "set": lambda x, y, z, s, o: _set(x.clone(), y, s),
    "index_put": lambda x, y, z, s, o: x.clone().index_put_(
        (torch.tensor([1, 3], device=x.device),), y[:2].to(x.dtype)
    ),
    "sum_as": lambda x, y, z, s, o: x.sum(dtype=y.dtype),
    "cumsum_as": lambda x, y, z, s, o: x.cumsum(0, dtype=y.dtype),
    "prod_as": lambda x, y, z, s, o: x[:1].prod(0, dtype=y.dtype),
    "full_like": lambda x, y, z, s, o: torch.full_like(x, s, dtype=y.dtype),
    "result": lambda x, y, z, s, o: torch.zeros(2, dtype=torch.result_type(x, o)),
}


def _set(x: torch.Tensor, y: torch.Tensor, number: Any) -> torch.Tensor:
    x[1:3] = y[1:3]
    x[3] = number
    x[4, ::2] = y[0, 0]
    return x
