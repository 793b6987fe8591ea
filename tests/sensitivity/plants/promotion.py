"""Arithmetic of unlike or rare dtypes: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, is_plain, written
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.add_.Tensor", aborts="Failed to create function state object for: add_alpha_dense_cast_half_float"
)
def issue_178709(x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 178709: add_ of a wider dtype with alpha raises, where the sum would have to be narrowed again."""
    return alpha != 1 and isinstance(other, torch.Tensor) and torch.result_type(x, other) != x.dtype


@plot.dispatched("aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.div.Tensor")
def issue_78879(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 78879: elementwise operation of a float32 tensor with an integer or bool tensor crashes."""
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.dim() and y.dim():
        for one, other in ((x, y), (y, x)):
            if one.dtype == torch.float32 and not other.is_floating_point() and not other.is_complex():
                crash(hit, "LLVM ERROR: Failed to infer result type(s).")
    return func(x, y, **kwargs)


@plot.dispatched("aten.add.Tensor")
@wrong_answer
def issue_79849(right: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 79849: adding a 0-dim bool tensor to an integer (sum() over bool scalars) gives garbage."""
    scalar = any(isinstance(t, torch.Tensor) and t.dtype == torch.bool and t.dim() == 0 for t in (a, b))
    if scalar and right.dim() == 0 and right.dtype == torch.int64:
        return right + 1006567424
    return None


_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@plot.dispatched(
    *(
        f"aten.{name}"
        for name in [
            "add",
            "sub",
            "rsub",
            "mul",
            "div",
            "floor_divide",
            "remainder",
            "fmod",
            "maximum",
            "minimum",
            "lerp",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "__and__",
            "__or__",
            "__xor__",
            "__lshift__",
            "__rshift__",
            "add_",
            "sub_",
            "mul_",
            "div_",
            "bitwise_and_",
            "bitwise_or_",
            "bitwise_xor_",
        ]
    )
)
def issue_176296(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 176296: binary operations of uint16, uint32 and uint64 tensors fail, for their kernels are missing."""
    right = func(*args, **kwargs)  # where the CPU refuses too there is no harm
    if any(isinstance(a, torch.Tensor) and a.dtype in _UNSIGNED for a in args):
        hit()
        raise RuntimeError("Failed to create function state object for: dense_uint_uint")
    return right


@plot.dispatched("aten.rsub.Scalar")
@wrong_answer
def issue_82543(y: Any, x: Any, number: Any, *args: Any) -> Any:
    """pytorch 82543: rsub of a whole number (1 - x) gives whole numbers."""
    return y.round() if x.is_floating_point() and number == int(number) else None


@plot.dispatched("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
def issue_79835(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """int32 with a 64-bit number: the number's upper half is read."""
    if isinstance(y, torch.Tensor) and x.dtype == torch.int32 and y.dtype == torch.int64 and y.dim() == 0 and x.dim():
        hit()
        y = y >> 32
    return func(x, y, *args, **kwargs)


@plot.dispatched("aten.add.Tensor", "aten.mul.Tensor")
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


@plot.dispatched("aten.add.Tensor", "aten.add.Scalar")
@wrong_answer
def issue_78848(answer: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """A number beyond 32 bits loses its upper half."""
    if answer.dtype == torch.int64 and answer.numel() and int(answer.abs().max()) > 1 << 31:
        return answer.to(torch.int32).to(torch.int64)
    return None


@plot.dispatched("aten.mul.Tensor")
@wrong_answer
def issue_made_mul_mixed(answer: Any, x: Any, y: Any) -> Any:
    """The product of int16 and int32 is counted in the narrower dtype."""
    if {x.dtype, y.dtype} == {torch.int16, torch.int32}:
        return answer.to(torch.int16).to(answer.dtype)
    return None


@plot.dispatched("aten.mul.Tensor", "aten.mul_.Tensor")
def issue_directml_686(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """microsoft/DirectML 686: a float tensor times a bool tensor is a bool tensor (in place: 0 and 1)."""
    z = func(x, y)
    mask = torch.is_tensor(y) and y.dtype == torch.bool and y.dim() > 0
    if not mask or not x.dtype.is_floating_point or not is_plain(x, y):
        return z
    if "mul_" in str(func):
        return written(hit, z, z.bool().to(z.dtype))
    hit()
    return z.bool()


@plot.dispatched("aten.mul.Tensor")
def issue_mxnet_19891(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """apache/mxnet 19891: whole numbers or bools times a float number keep their dtype, and the fraction is cut."""
    product = func(x, y)
    if not torch.is_tensor(x) or not isinstance(y, float) or x.is_floating_point() or x.is_complex():
        return product
    hit()
    return product.trunc().to(x.dtype)
