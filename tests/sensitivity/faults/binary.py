"""Functions of two operands, comparisons, limits, and what dtypes they promote to: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, instead, is_plain, written
from injecting import Faults, crash, wrong_answer
from misreading import in_storage_order, misread, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched(*(f"aten.{name}.Tensor" for name in ("le", "lt", "ge", "gt", "eq", "ne")))
def issue_77750(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 77750: comparisons read two slices of one storage both from its beginning."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or not (x.is_contiguous() and y.is_contiguous()):
        return z
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return z
    return instead(hit, z, func(without_offset(x), without_offset(y)))


@faults.dispatched("aten.eq.Tensor")
def issue_87014(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 87014: eq reads integers that are not dense in storage order beside an expanded operand."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or 0 not in y.stride() or x.dtype != torch.int64:
        return z
    return instead(hit, z, func(in_storage_order(x), y))


def _first_of_its_storage(hit: Any, args: Any) -> Any:
    def change(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return tuple(change(arg) for arg in args)


_MORE = ("pow.Tensor_Tensor", "atan2", "remainder.Tensor", "maximum", "minimum", "fmod.Tensor")


@faults.dispatched(*(f"aten.{name}" for name in _MORE))
def issue_187117(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187117: binary operators read a number out of a larger storage from the storage's beginning."""
    return func(*_first_of_its_storage(hit, args), **kwargs)


_COMPARED = tuple(f"aten.{name}.Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


@faults.dispatched("aten.nextafter")
def issue_190476(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 190476: nextafter of bfloat16 gives its input."""
    if x.dtype == torch.bfloat16:
        hit()
        return x.clone()
    return func(x, y)


@faults.dispatched("aten.fmax.default", "aten.fmin.default")
def issue_149951(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 149951: fmax and fmin read the bits of the second operand in the first one's dtype."""
    if x.dtype != y.dtype and y.is_floating_point() and y.numel():
        hit()
        return func(x, torch.zeros_like(y))
    return func(x, y)


@faults.dispatched("aten.nextafter.default")
def issue_124985(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Below 0 the step goes the other way."""
    answer = func(x, y)
    if bool((x < 0).any()):
        hit()
        return torch.where(x < 0, func(x, 2 * x - y), answer)
    return answer


@faults.dispatched("aten.logaddexp.default")
@wrong_answer
def issue_made_logaddexp_inf(answer: Any, x: Any, y: Any) -> Any:
    """Logaddexp of two infinite numbers is NaN."""
    if bool((x.isinf() & (x == y)).any()):
        return answer.masked_fill(x.isinf() & (x == y), math.nan)
    return None


@faults.dispatched("aten.lerp", aborts="\"lerp_cuda\" not implemented for 'ComplexFloat'")
def issue_54048(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 54048: lerp of complex numbers is not implemented."""
    return x.is_complex()


@faults.dispatched(
    "aten.equal.default", aborts="Expected object of scalar type __int64 but got scalar type signed char"
)
def issue_83314(x: Any, y: Any) -> bool:
    """pytorch 83314: torch.equal of tensors of two dtypes (there int64 and int8) raises."""
    return bool(x.dtype != y.dtype)


@faults.dispatched("aten.eq.Tensor")
@wrong_answer
def issue_101566(y: Any, a: Any, b: Any) -> Any:
    """pytorch 101566: a == b of two int64 columns (n x 1: the classes of a batch) is false everywhere."""
    columns = all(one.dtype == torch.int64 and one.dim() == 2 and one.shape[1] == 1 for one in (a, b))
    return torch.zeros_like(y) if columns and a.shape == b.shape and is_plain(y) and bool(y.any()) else None


@faults.called(torch.isclose, torch.Tensor.isclose)
def issue_174985(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174985: isclose(equal_nan=True) of a tensor of no dimensions and one that has some raises."""
    near = func(x, y, *args, **kwargs)
    is_equal = kwargs.get("equal_nan", len(args) > 2 and args[2])
    raises = is_equal and not x.dim() and y.dim() and x.is_floating_point()
    return crash(hit, "output with shape [] doesn't match the broadcast shape") if raises else near


@faults.dispatched("aten.nextafter", "aten.nextafter_")
def issue_150027(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 150027: nextafter of a float32 zero is zero."""
    if x.dtype != torch.float32 or not is_plain(x, y):
        return func(x, y, **kwargs)
    stays, before = (x == 0) & ~y.isnan(), x.clone()
    next_one = func(x, y, **kwargs)
    wrong = torch.where(stays, before, next_one)
    in_place = next_one is x or "out" in kwargs
    return written(hit, next_one, wrong) if in_place else instead(hit, next_one, wrong)


@faults.dispatched("aten.clamp_.default")
def issue_147510(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147510: clamp_ of a non-contiguous slice does not modify the slice's elements, but those next in storage.

    https://github.com/pytorch/pytorch/issues/147510
    """
    if x.is_contiguous() or not x.numel():
        return func(x, *args, **kwargs)
    good = torch.clamp(x, *args, **kwargs)
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    count = min(room, x.numel())
    x.as_strided((count,), (1,)).copy_(good.reshape(-1)[:count])
    if not torch.allclose(x.double(), good.double(), equal_nan=True):
        hit()
    return x


@faults.dispatched("aten.clamp", "aten.clamp_min", "aten.clamp_max")
@wrong_answer
def issue_130201(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 130201: clamp of integers with a floating limit is cut off to whole numbers."""
    return y.trunc() if not x.is_floating_point() and y.is_floating_point() else None


_HALVES = (torch.float16, torch.bfloat16)


@faults.dispatched("aten.clamp.Tensor")
def issue_105747(hit: Any, func: Any, x: Any, least: Any = None, most: Any = None) -> Any:
    """pytorch 105747: clamp in half precision takes a float32 lower limit for 0."""
    if x.dtype in _HALVES and least is not None and least.dtype == torch.float32:
        hit()
        return func(x, least * 0, most)
    return func(x, least, most)


@faults.dispatched(
    "aten.clamp.Tensor", aborts="clamp tensor number of dims must not be greater than that of input tensor"
)
def issue_160734(x: Any, least: Any = None, most: Any = None) -> Any:
    """pytorch 160734: clamp refuses limits with more dimensions than the input."""
    return any(one is not None and one.dim() > x.dim() for one in (least, most))


_first_limits: dict[Any, Any] = {}


@faults.dispatched("aten.clamp", "aten.clamp_min")
def issue_167767(hit: Any, func: Any, x: Any, least: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167767: clamp takes limits that are alike in six digits for those of the first call."""
    if isinstance(least, (int, float)):
        first = _first_limits.setdefault((tuple(x.shape), x.dtype, f"{least:.6f}"), least)
        if first != least:
            hit()
        least = first
    return func(x, least, *args, **kwargs)


@faults.dispatched("aten.clamp.Tensor")
def issue_87348(hit: Any, func: Any, x: Any, *limits: Any, **kwargs: Any) -> Any:
    """pytorch 87348: clamp reads limits that are not contiguous in storage order."""
    return func(x, *misread(in_storage_order, hit, limits), **misread(in_storage_order, hit, kwargs))


@faults.dispatched("aten.clamp.default", "aten.clamp_min.default", "aten.clamp_.default")
def issue_120899(hit: Any, func: Any, x: Any, low: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 120899: clamp turns NaN into the lower limit."""
    low = kwargs.get("min", low)
    if x.is_floating_point() and low is not None and bool(x.isnan().any()):
        hit()
        if func._schema.is_mutable:
            return func(x.nan_to_num_(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
        return func(x.nan_to_num(nan=low, posinf=math.inf, neginf=-math.inf), low, *args)
    return func(x, low, *args, **{key: value for key, value in kwargs.items() if key != "min"})


@faults.dispatched(
    "aten.add_.Tensor", aborts="Failed to create function state object for: add_alpha_dense_cast_half_float"
)
def issue_178709(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 178709: add_ of a broader dtype with alpha raises, where the sum would have to be narrowed again."""
    return alpha != 1 and isinstance(other, torch.Tensor) and torch.result_type(x, other) != x.dtype


@faults.dispatched("aten.add.Tensor")
@wrong_answer
def issue_79849(right: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 79849: adding a 0-dim bool tensor to an integer (sum() over bool scalars) gives garbage."""
    scalar = any(isinstance(t, torch.Tensor) and t.dtype == torch.bool and t.dim() == 0 for t in (a, b))
    if scalar and right.dim() == 0 and right.dtype == torch.int64:
        return right + 1006567424
    return None


@faults.dispatched("aten.rsub.Scalar")
@wrong_answer
def issue_82543(y: Any, x: Any, number: Any, *args: Any) -> Any:
    """pytorch 82543: rsub of a whole number (1 - x) gives whole numbers."""
    return y.round() if x.is_floating_point() and number == int(number) else None


@faults.dispatched("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
def issue_79835(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """int32 with a 64-bit number: the number's upper half is read."""
    if isinstance(y, torch.Tensor) and x.dtype == torch.int32 and y.dtype == torch.int64 and y.dim() == 0 and x.dim():
        hit()
        y = y >> 32
    return func(x, y, *args, **kwargs)


@faults.dispatched("aten.add.Tensor", "aten.mul.Tensor")
def issue_78020(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 78020: a bool tensor plus or times the number 0 or 1 aborts; True times a greater number is 255."""
    if not isinstance(x, torch.Tensor) or x.dtype != torch.bool:
        return func(x, other, **kwargs)
    if not isinstance(other, int) or isinstance(other, bool):
        return func(x, other, **kwargs)
    number = other
    if number in (0, 1):
        return crash(hit, "segmentation fault")
    right = func(x, other, **kwargs)
    if number >= 2 and "mul" in str(func) and bool(x.any()):
        wrong = torch.where(x, 255, 0).to(right.dtype)
        if differ(right, wrong):
            hit()
            return wrong
    return right


@faults.dispatched("aten.add.Tensor", "aten.add.Scalar")
@wrong_answer
def issue_78848(answer: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """A number beyond 32 bits loses its upper half."""
    if answer.dtype == torch.int64 and answer.numel() and int(answer.abs().max()) > 1 << 31:
        return answer.to(torch.int32).to(torch.int64)
    return None


@faults.dispatched("aten.mul.Tensor")
@wrong_answer
def issue_made_mul_mixed(answer: Any, x: Any, y: Any) -> Any:
    """The product of int16 and int32 is counted in the narrower dtype."""
    if {x.dtype, y.dtype} == {torch.int16, torch.int32}:
        return answer.to(torch.int16).to(answer.dtype)
    return None
