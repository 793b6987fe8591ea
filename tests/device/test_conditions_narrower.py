"""Rule 2: results narrower or wider than what they are made of: the operands' dtype reckons, not that of the result.

The larger of a byte and of -9 was 247 where the result is a byte, https://github.com/pytorch/pytorch/issues/173110;
pow of a byte was reckoned as an int64, https://github.com/pytorch/pytorch/issues/50121
"""

from __future__ import annotations

from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.limits import HALVES, add_table
from device_suite.refusals import add_refused

cases = Cases("conditions")
Form = Callable[..., Any]
_NARROW = (torch.uint8, torch.int8, torch.int16, torch.int32)

# a: 1 to 100, of the narrow dtype; w: numbers that it does not hold, of int64. What is made of both, it holds.
_WHOLE: dict[str, tuple[Form, Callable[[torch.Tensor, int], torch.Tensor]]] = {
    "maximum": (torch.maximum, lambda w, low: low - 1 - w % 1000),
    "minimum": (torch.minimum, lambda w, low: w),
    "fmax": (torch.fmax, lambda w, low: low - 1 - w % 1000),
    "fmin": (torch.fmin, lambda w, low: w),
    "remainder": (torch.remainder, lambda w, low: w),
    "fmod": (torch.fmod, lambda w, low: w),
    "bitwise_and": (torch.bitwise_and, lambda w, low: w),
    "gcd": (torch.gcd, lambda w, low: w),
    "eq": (torch.eq, lambda w, low: w),
    "ne": (torch.ne, lambda w, low: w),
    "lt": (torch.lt, lambda w, low: w),
    "gt": (torch.gt, lambda w, low: w),
    "logical_and": (torch.logical_and, lambda w, low: w - w % 256),
    "logical_xor": (torch.logical_xor, lambda w, low: w - w % 256),
    "floor_divide": (torch.floor_divide, lambda w, low: w),
    "div-trunc": (lambda a, b, **k: torch.div(a, b, rounding_mode="trunc", **k), lambda w, low: w),
    "clamp-least": (lambda a, b, **k: torch.clamp(a, min=b, **k), lambda w, low: low - 1 - w % 1000),
    "clamp-most": (lambda a, b, **k: torch.clamp(a, max=b, **k), lambda w, low: w),
    "clamp": (lambda a, b, **k: torch.clamp(a, b, b.flip(0).abs(), **k), lambda w, low: low - 1 - w % 1000),
    "where": (lambda a, b, **k: torch.where(b > 0, a, b, **k), lambda w, low: w),
}
# The operands the other way round, where the narrow one comes second.
_TURNED = ("remainder", "fmod", "maximum", "minimum", "bitwise_and", "gcd", "eq", "lt")
_SHAPES: dict[str, Form] = {
    "alike": lambda a, w: (a, w),
    "number": lambda a, w: (a, w[3]),
    "row": lambda a, w: (a.view(4, 6), w[:6]),
    "column": lambda a, w: (a.view(4, 6), w[:4, None]),
    "stepped": lambda a, w: (a[::2], w[::2]),
}


def _reckoned(name: str, shape: str, way: str, dtype: torch.dtype, a: torch.Tensor, w: torch.Tensor) -> Any:
    form, beyond = _WHOLE[name]
    one, two = _SHAPES[shape](a.to(dtype), beyond(w, torch.iinfo(dtype).min))
    if way == "turned":
        one, two = two, one
    if way == "in place":
        return getattr(one.clone(), f"{name}_")(two)
    if way == "plain":
        return form(one, two)
    return form(one, two, out=torch.empty(torch.broadcast_shapes(one.shape, two.shape), dtype=dtype, device=a.device))


add_table(
    cases,
    "narrower-whole",
    {
        f"{name}-{shape}-{way}-{str(dtype)[6:]}": lambda a, w, row=(name, shape, way, dtype): _reckoned(*row, a, w)
        for at, name in enumerate(_WHOLE)
        for place, shape in enumerate(_SHAPES)
        for way in ("out", "turned", "in place", "plain")
        for spot, dtype in enumerate(_NARROW)
        if way != "turned" or name in _TURNED
        if way != "in place" or hasattr(torch.Tensor, f"{name}_")
        if way != "out" or name != "where"  # where wants the dtype of both
        if (at + place + spot) % 3 == 0 or shape == "alike"
    },
    lambda d: (d.permutation(100)[:24] + 1, d.integers(2**33, 2**34, 24)),
)
# f: fractions below 8; what is far is past float16, 65504.
_FRACTIONS: dict[str, Form] = {
    "maximum": lambda f, far, **k: torch.maximum(f, -far, **k),
    "minimum": lambda f, far, **k: torch.minimum(f, far, **k),
    "fmod": lambda f, far, **k: torch.fmod(f, far, **k),
    "remainder": lambda f, far, **k: torch.remainder(far, f.abs() + 1, **k),
    "copysign": lambda f, far, **k: torch.copysign(f, -far, **k),
    "div": lambda f, far, **k: torch.div(far, far / 2, **k),
    "div-by": lambda f, far, **k: torch.div(far * 3, far, **k),
    "sub": lambda f, far, **k: torch.sub(far + 8, far, **k),
    "add": lambda f, far, **k: torch.add(far + 8, -far, **k),
    "add-scaled": lambda f, far, **k: torch.add(far + far, far, alpha=-2, **k),
    "mul": lambda f, far, **k: torch.mul(far, 1 / far, **k),
    "addcmul": lambda f, far, **k: torch.addcmul(-far, far, torch.ones_like(far), value=1, **k),
    "addcdiv": lambda f, far, **k: torch.addcdiv(f.float(), far, far, **k),
    "clamp": lambda f, far, **k: torch.clamp(f, -far, far, **k),
    "sqrt": lambda f, far, **k: torch.sqrt(far * far.sign(), **k),
    "log2": lambda f, far, **k: torch.log2(far, **k),
    "rsqrt": lambda f, far, **k: torch.rsqrt(far, **k),
    "atan2": lambda f, far, **k: torch.atan2(f, far, **k),
    "tanh": lambda f, far, **k: torch.tanh(far, **k),
    "eq": lambda f, far, **k: torch.eq(f, far, **k),
    "lt": lambda f, far, **k: torch.lt(f, far, **k),
    "isfinite": lambda f, far, **k: torch.isfinite(far).to(f.dtype) if not k else k["out"].copy_(torch.isfinite(far)),
    "hypot": lambda f, far, **k: torch.hypot(f, f, **k),
}


def _into(form: Form, dtype: torch.dtype, f: torch.Tensor, far: torch.Tensor) -> Any:
    f = f.half()
    return [form(f, far, out=torch.full(far.shape, 7, dtype=dtype, device=f.device)), form(f, far)]


_COMPLEX = ("maximum", "minimum", "fmod", "remainder", "copysign", "clamp", "atan2", "hypot")
add_table(
    cases,
    "narrower-fractions",
    {
        f"{name}-{str(dtype)[6:]}": lambda f, far, form=form, dtype=dtype: _into(form, dtype, f, far)
        for name, form in _FRACTIONS.items()
        for dtype in (*HALVES, torch.float32, torch.complex64)
        if dtype != torch.complex64 or name not in _COMPLEX
    },
    lambda d: (d.integers(-30, 30, 12).float() / 4 + 0.125, 2.0 ** d.integers(17, 20, 12).float()),
    factor=16.0,
)
# A function of whole numbers that answers with fractions, into each dtype of fractions; counts into each whole one.
_UNARY = "sqrt exp log sin cos tanh sigmoid erf rsqrt reciprocal atan expm1 log1p exp2 deg2rad angle"
_TRUTHS = (torch.bool, torch.uint8)
_COUNTED: dict[str, Form] = {
    "sum": lambda x, **k: torch.sum(x, 0, **k),
    "sum-bytes": lambda x, **k: torch.sum(x.to(torch.uint8), 1, **k),
    "prod": lambda x, **k: torch.prod(x[:2], 0, **k),
    "cumsum": lambda x, **k: torch.cumsum(x, 1, **k),
    "cumprod": lambda x, **k: torch.cumprod(x[:, :2], 1, **k),
    "any": lambda x, **k: torch.any(x > 4, 1, **k) if k["out"].dtype in _TRUTHS else None,
    "all": lambda x, **k: torch.all(x > 0, 0, **k) if k["out"].dtype in _TRUTHS else None,
    "square": lambda x, **k: torch.square(x, **k),
    "add": lambda x, **k: torch.add(x, 1, **k),
    "mul": lambda x, **k: torch.mul(x, x.to(torch.uint8), **k),
    "pow": lambda x, **k: torch.pow(x, 2, **k),
    "pow-first": lambda x, **k: torch.pow(2, x, **k),
    "isnan": lambda x, **k: torch.logical_not(x, **k),
    "arange": lambda x, **k: torch.arange(1, 9, 2, **k),
    "linspace": lambda x, **k: torch.linspace(1, 4, 4, **k),
}
_PARTS = {"sum": (5,), "sum-bytes": (4,), "prod": (5,), "cumprod": (4, 2), "amax": (4,), "any": (4,), "all": (5,)}
_PARTS = {**_PARTS, "arange": (4,), "linspace": (4,)}
_OUTS = (torch.float32, *HALVES, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool)
add_table(
    cases,
    "narrower-counts",
    {
        **{
            f"{name}-{str(given)[6:]}-{str(dtype)[6:]}": lambda x, name=name, given=given, dtype=dtype: getattr(
                torch, name
            )(x.to(given), out=torch.full(x.shape, 7, dtype=dtype, device=x.device))
            for at, name in enumerate(_UNARY.split())
            for place, given in enumerate((torch.int64, torch.int32, torch.uint8, torch.bool))
            for dtype in (torch.float32, *HALVES)
            if given != torch.bool or name not in ("reciprocal",)
            if (at + place) % 2 == 0
        },
        **{
            f"{name}-{str(dtype)[6:]}": lambda x, form=form, name=name, dtype=dtype: form(
                x, out=torch.full(_PARTS.get(name, (4, 5)), 1, dtype=dtype, device=x.device)
            )
            for name, form in _COUNTED.items()
            for dtype in _OUTS
            if dtype != torch.bool or name in ("any", "all", "isnan")
        },
    },
    lambda d: (d.integers(1, 5, 4, 5),),
    factor=16.0,
)
# A result that cannot hold the kind of what is written to it.
_UNFIT: dict[str, Form] = {
    "add": lambda x, y, **k: torch.add(x, y, **k),
    "mul-number": lambda x, y, **k: torch.mul(x, 1.5, **k),
    "div": lambda x, y, **k: torch.div(x, 2, **k),
    "maximum": lambda x, y, **k: torch.maximum(x, y, **k),
    "sqrt": lambda x, y, **k: torch.sqrt(x, **k),
    "mean": lambda x, y, **k: torch.mean(x, 0, **k),
    "where": lambda x, y, **k: torch.where(x > 0, x, y, **k),
    "lerp": lambda x, y, **k: torch.lerp(x, y, 0.5, **k),
    "clamp": lambda x, y, **k: torch.clamp(x, -0.5, 0.5, **k),
    "cat": lambda x, y, **k: torch.cat([x, y], **k),
    "stack": lambda x, y, **k: torch.stack([x, y], **k),
    "mm": lambda x, y, **k: torch.mm(x, y.t(), **k),
    "gather": lambda x, y, **k: torch.gather(x, 0, (x > 0).long(), **k),
    "index_select": lambda x, y, **k: torch.index_select(x, 0, torch.tensor([1], device=x.device), **k),
    "take": lambda x, y, **k: torch.take(x, torch.tensor([1], device=x.device), **k),
    "sort": lambda x, y, **k: torch.sort(x, out=(k["out"], k["out"].long())),
    "topk": lambda x, y, **k: torch.topk(x, 1, out=(k["out"], k["out"].long())),
    "cumsum": lambda x, y, **k: torch.cumsum(x, 0, dtype=torch.float32, **k),
    "tril": lambda x, y, **k: torch.tril(x, **k),
    "diag": lambda x, y, **k: torch.diag(x, **k),
    "masked_select": lambda x, y, **k: torch.masked_select(x, x > 0, **k),
    "add_": lambda x, y, **k: k["out"].add_(x),
    "mul_": lambda x, y, **k: k["out"].mul_(1.5),
    "div_": lambda x, y, **k: k["out"].div_(2),
    "pow_": lambda x, y, **k: k["out"].pow_(0.5),
    "sqrt_": lambda x, y, **k: k["out"].sqrt_(),
    "clamp_": lambda x, y, **k: k["out"].clamp_(0.5, 1.5),
    "lerp_": lambda x, y, **k: k["out"].lerp_(x, 0.5),
    "scatter_": lambda x, y, **k: k["out"].scatter_(0, torch.zeros_like(x, dtype=torch.int64), x),
    "scatter_add_": lambda x, y, **k: k["out"].scatter_add_(0, torch.zeros_like(x, dtype=torch.int64), x),
    "index_add_": lambda x, y, **k: k["out"].index_add_(0, torch.tensor([0, 1], device=x.device), x),
    "index_copy_": lambda x, y, **k: k["out"].index_copy_(0, torch.tensor([0, 1], device=x.device), x),
    "index_put_": lambda x, y, **k: k["out"].index_put_((torch.tensor([0, 1], device=x.device),), x),
    "masked_scatter_": lambda x, y, **k: k["out"].masked_scatter_(x > 0, x),
    "put_": lambda x, y, **k: k["out"].put_(torch.tensor([0], device=x.device), x[0, :1]),
    "addmm_": lambda x, y, **k: k["out"].addmm_(x, x),
    "bitwise_and": lambda x, y, **k: k["out"].bitwise_and_(x),
}
add_refused(
    cases,
    "narrower",
    lambda d: (d.normal(2, 2), d.normal(2, 2)),
    {
        f"{name}-{str(dtype)[6:]}": lambda x, y, form=form, dtype=dtype: form(
            x, y, out=torch.ones(2, 2, dtype=dtype, device=x.device)
        )
        for name, form in _UNFIT.items()
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool)
    },
)
