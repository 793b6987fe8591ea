"""The catalogue's faults of pointwise operators that show for certain values, dtypes or pairs of dtypes only."""

from __future__ import annotations

import math
from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _float_pair(args: Any) -> bool:
    return all(isinstance(one, torch.Tensor) and one.is_floating_point() for one in args[:2])


@plot.dispatched("issue_143976", "aten.maximum.default", "aten.minimum.default")
def issue_143976(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """The larger of a number and NaN is the number."""
    if _float_pair((x, y)) and bool((x.isnan() != y.isnan()).any()):
        hit()
        return (torch.fmax if "maximum" in str(func) else torch.fmin)(x, y)
    return func(x, y)


@plot.dispatched("issue_120899", "aten.clamp.default", "aten.clamp_min.default", "aten.clamp_.default")
def issue_120899(hit: Any, func: Any, x: Any, low: Any = None, *args: Any, **kwargs: Any) -> Any:
    """NaN is clamped to the lower limit."""
    low = kwargs.get("min", low)
    if x.is_floating_point() and low is not None and bool(x.isnan().any()):
        hit()
        if func._schema.is_mutable:
            return func(x.nan_to_num_(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
        return func(x.nan_to_num(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
    return func(x, low, *args, **{key: value for key, value in kwargs.items() if key != "min"})


@plot.dispatched("issue_154171", "aten.remainder.Tensor", "aten.remainder.Scalar")
def issue_154171(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Integers beyond 2**24 are divided as float32."""
    answer = func(x, y)
    if not x.is_floating_point() and x.numel() and int(x.long().abs().max()) > 1 << 24:
        wrong = func(x.float(), y.float() if isinstance(y, torch.Tensor) else float(y)).to(answer.dtype)
        if not torch.equal(wrong, answer):
            hit()
        return wrong
    return answer


@plot.dispatched("issue_189243", "aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default")
def issue_189243(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """inf // 1 is inf, and 1 // -inf is 0."""
    answer = func(x, y, *args, **kwargs)
    floors = kwargs.get("rounding_mode", "floor") == "floor"
    if floors and answer.is_floating_point():
        wrong = torch.floor(torch.ops.aten.div(x, y)).to(answer.dtype)
        if not torch.allclose(wrong, answer, equal_nan=True):
            hit()
        return wrong
    return answer


@plot.dispatched("issue_85106", "aten.div.Tensor", "aten.div.Scalar")
def issue_85106(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """An integer over 0 is 0."""
    answer = func(x, y)
    if not x.is_floating_point() and not x.dtype.is_complex and answer.is_floating_point():
        wrong = answer.masked_fill(answer.isinf(), 0)
        if not torch.equal(wrong, answer):
            hit()
        return wrong
    return answer


@plot.dispatched("issue_149951", "aten.fmax.default", "aten.fmin.default")
def issue_149951(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """The bits of the second dtype are read as the first's."""
    if x.dtype != y.dtype and y.is_floating_point() and y.numel():
        hit()
        return func(x, torch.zeros_like(y))
    return func(x, y)


@plot.dispatched("issue_194813", "aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
def issue_194813(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """A power of a complex zero is NaN."""
    answer = func(x, y)
    if x.dtype.is_complex and bool((x == 0).any()):
        hit()
        return answer.masked_fill(x == 0, complex(math.nan, math.nan))
    return answer


@plot.dispatched("issue_144190", "aten.__rshift__.Scalar", "aten.bitwise_right_shift.Tensor_Scalar")
def issue_144190(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """uint8 is shifted as a signed number: past 127 nothing but ones come in."""
    if x.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y).view(torch.uint8)
    return func(x, y)


@plot.dispatched("issue_made_shift_tensor", "aten.bitwise_right_shift.Tensor", "aten.__rshift__.Tensor")
def issue_made_shift_tensor(hit: Any, func: Any, x: Any, y: Any) -> Any:
    if x.dtype == torch.uint8 and y.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y.view(torch.int8)).view(torch.uint8)
    return func(x, y)


@plot.dispatched("issue_100005", "aten.triu.default")
def issue_100005(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """What is cut off is multiplied by 0: infinite numbers leave NaN."""
    if x.is_floating_point() and not bool(x.isfinite().all()):
        hit()
        return x * func(torch.ones_like(x), *args)
    return func(x, *args)


@plot.dispatched("issue_149813", "aten.tril.default")
def issue_149813(hit: Any, func: Any, x: Any, diagonal: int = 0) -> Any:
    if x.is_floating_point() and diagonal < 0 and not bool(x.isfinite().all()):
        hit()
        return x * func(torch.ones_like(x), diagonal)
    return func(x, diagonal)


@plot.dispatched("issue_124985", "aten.nextafter.default")
def issue_124985(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Below 0 the step goes the other way."""
    answer = func(x, y)
    if bool((x < 0).any()):
        hit()
        return torch.where(x < 0, func(x, 2 * x - y), answer)
    return answer


@plot.dispatched("issue_137635", "aten.linspace.default", "aten.linspace.out")
def issue_137635(hit: Any, func: Any, start: Any, end: Any, steps: int, **kwargs: Any) -> Any:
    """Integers are rounded after the steps, not before."""
    answer = func(start, end, steps, **kwargs)
    if answer.is_floating_point() or answer.dtype.is_complex or not steps:
        return answer
    places = [start + (end - start) * place / max(steps - 1, 1) for place in range(steps)]
    wrong = torch.tensor(places, device=answer.device).round().to(answer.dtype)
    if not torch.equal(wrong, answer):
        hit()
    return answer.copy_(wrong) if "out" in kwargs else wrong


@plot.dispatched("issue_189630", "aten.linspace.default", "aten.arange.start_step", "aten.arange.start")
def issue_189630(hit: Any, func: Any, start: Any, *args: Any, **kwargs: Any) -> Any:
    """A range of integers is computed in float32."""
    answer = func(start, *args, **kwargs)
    if answer.is_floating_point() or answer.dtype.is_complex:
        return answer
    wrong = answer.float().clamp(max=2.0**62).to(answer.dtype) if answer.dtype == torch.int64 else answer
    if not torch.equal(wrong, answer):
        hit()
    return wrong


@plot.dispatched("issue_78019", "aten.exp.default", "aten.log.default")
def issue_78019(hit: Any, func: Any, x: Any) -> Any:
    """Of int32 it is 0."""
    y = func(x)
    if x.dtype == torch.int32 and x.numel():
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_98269", "aten.xlogy.Tensor")
def issue_98269(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """0 * log(0) is NaN: kl_div with zeros in its target."""
    if _float_pair((x, y)):
        wrong = x * torch.log(y)
        if not torch.allclose(wrong, func(x, y), equal_nan=True):
            hit()
        return wrong
    return func(x, y)


@plot.dispatched("issue_78848", "aten.add.Tensor", "aten.add.Scalar")
def issue_78848(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """A number beyond 32 bits loses its upper half."""
    answer = func(x, y, *args, **kwargs)
    if answer.dtype == torch.int64 and answer.numel() and int(answer.abs().max()) > 1 << 31:
        hit()
        return answer.to(torch.int32).to(torch.int64)
    return answer


@plot.dispatched("issue_made_mul_mixed", "aten.mul.Tensor")
def issue_made_mul_mixed(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """int16 times int32 is counted in the narrower dtype."""
    answer = func(x, y)
    if {x.dtype, y.dtype} == {torch.int16, torch.int32}:
        hit()
        return answer.to(torch.int16).to(answer.dtype)
    return answer


@plot.dispatched("issue_made_negative_zero", "aten.mul.Tensor", "aten.mul.Scalar")
def issue_made_negative_zero(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """A value that is stored with a negative sign loses it: -0 becomes 0."""
    answer = func(x, y)
    if answer.is_floating_point() and bool(((answer == 0) & answer.signbit()).any()):
        hit()
        return torch.where(answer == 0, torch.zeros_like(answer), answer)
    return answer


@plot.dispatched("issue_84995", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def issue_84995(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    if x.dtype == torch.int64 and kwargs.get("rounding_mode") == "floor":
        return crash(hit, "Function floorOp_i64 was not found in the library")
    return func(x, y, *args, **kwargs)


@plot.dispatched("issue_85016", "aten.div.Tensor_mode", "aten.floor_divide.default")
def issue_85016(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """The floor of a quotient of integers is the quotient cut off: wrong below 0."""
    if x.is_floating_point() or kwargs.get("rounding_mode", "floor") != "floor" or not isinstance(y, torch.Tensor):
        return func(x, y, *args, **kwargs)
    answer, wrong = func(x, y, *args, **kwargs), torch.ops.aten.div.Tensor_mode(x, y, rounding_mode="trunc")
    if wrong.dtype == answer.dtype and not torch.equal(wrong, answer):
        hit()
        return wrong
    return answer


@plot.dispatched("issue_made_logaddexp_inf", "aten.logaddexp.default")
def issue_made_logaddexp_inf(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Of two infinite numbers it is NaN."""
    answer = func(x, y)
    if bool((x.isinf() & (x == y)).any()):
        hit()
        return answer.masked_fill(x.isinf() & (x == y), math.nan)
    return answer
