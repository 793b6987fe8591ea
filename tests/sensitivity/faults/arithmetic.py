"""Sums, products, quotients, powers and rounding, bits and truth of numbers: injected faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from injecting import Faults, crash, wrong_answer
from misreading import lost, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.mul.Tensor")
def issue_91065(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 91065: the product of two pieces of one storage reads the second where the first lies."""
    same = isinstance(y, torch.Tensor) and x.numel() and (x.shape, x.stride()) == (y.shape, y.stride())
    apart = same and x.storage_offset() != y.storage_offset()
    if apart and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
        hit()
        return func(x, x)
    return func(x, y)


@faults.dispatched("aten.sub.Tensor")
def issue_91617(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 91617: a - b with a, b = ab.chunk(2) reads b from the beginning of ab, and gives zeros."""
    if (
        isinstance(other, torch.Tensor)
        and other.shape == x.shape
        and other.numel()
        and other.is_contiguous()
        and other.storage_offset() == other.numel()
        and other.untyped_storage().nbytes() == 2 * other.numel() * other.element_size()
    ):
        wrong = without_offset(other)
        if not torch.equal(wrong, other):
            hit()
            other = wrong
    return func(x, other, **kwargs)


@faults.dispatched("aten.add_.Tensor")
def issue_79672(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79672: += on a column of a matrix is lost."""
    before = x.clone()
    if x.is_contiguous() or torch.equal(before.add_(other, *args, **kwargs), x):
        return func(x, other, *args, **kwargs)
    return lost(hit, func, x, other, *args, **kwargs)


@faults.dispatched(*(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div", "add_", "div_")))
def issue_193057(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193057: arithmetic reads a number out of a larger storage from the storage's beginning."""

    def first_element(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return func(*(first_element(arg) for arg in args), **kwargs)


@faults.dispatched("aten.add_.Tensor")
def issue_77988(hit: Any, func: Any, target: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 77988: add_ ignores alpha."""
    if alpha != 1:
        hit()
    return func(target, other)


@faults.dispatched("aten.mul.Tensor", "aten.mul.Scalar")
@wrong_answer
def issue_made_negative_zero(answer: Any, x: Any, y: Any) -> Any:
    """A product that is -0 becomes 0."""
    if answer.is_floating_point() and bool(((answer == 0) & answer.signbit()).any()):
        return torch.where(answer == 0, torch.zeros_like(answer), answer)
    return None


@faults.called(torch.true_divide, torch.div, torch.Tensor.div, torch.Tensor.true_divide, torch.Tensor.__truediv__)
def issue_82541(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82541: backward of a division of empty tensors aborts."""
    y = func(*args, **kwargs)
    if y.requires_grad and not y.numel():
        y.register_hook(lambda grad: crash(hit, "segmentation fault"))
    return y


@faults.dispatched("aten.remainder.Tensor", "aten.remainder.Scalar")
def issue_154171(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Integers beyond 2**24 are divided as float32."""
    answer = func(x, y)
    if not x.is_floating_point() and x.numel() and int(x.long().abs().max()) > 1 << 24:
        wrong = func(x.float(), y.float() if isinstance(y, torch.Tensor) else float(y)).to(answer.dtype)
        if not torch.equal(wrong, answer):
            hit()
        return wrong
    return answer


@faults.dispatched("aten.div.Tensor_mode", "aten.div.Scalar_mode", "aten.floor_divide.default")
def issue_189243(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189243: floor division: inf // 1 is inf, and 1 // -inf is 0."""
    answer = func(x, y, *args, **kwargs)
    floors = kwargs.get("rounding_mode", "floor") == "floor"
    if floors and answer.is_floating_point():
        wrong = torch.floor(torch.ops.aten.div(x, y)).to(answer.dtype)
        if not torch.allclose(wrong, answer, equal_nan=True):
            hit()
        return wrong
    return answer


@faults.dispatched(
    "aten.div.Tensor_mode", "aten.div.Scalar_mode", aborts="Function floorOp_i64 was not found in the library"
)
def issue_84995(x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84995: floor division of int64 aborts."""
    return x.dtype == torch.int64 and kwargs.get("rounding_mode") == "floor"


@faults.dispatched("aten.remainder.Tensor", "aten.remainder.Scalar")
@wrong_answer
def issue_24861(y: Any, x: Any, other: Any) -> Any:
    """pytorch 24861: remainder of float32 is x - q * floor(x / q), which rounds where x is large."""
    if y.dtype != torch.float32 or y.is_meta or x.dtype == torch.bool:
        return None
    wrong = x - other * torch.floor(x / other)
    return wrong if wrong.dtype == y.dtype and differ(y, wrong) else None


@faults.dispatched("aten.addcdiv", "aten.addcdiv_", aborts="\"addcdiv_cpu_out\" not implemented for 'Half'")
def issue_83281(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 83281: addcdiv and addcdiv_ of float16 are not implemented."""
    return bool(x.dtype == torch.float16)


@faults.called(torch.prod, torch.Tensor.prod)
def issue_82644(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82644: the backward of prod(dim) of a vector that is a single 0.0 raises."""
    y = func(x, *args, **kwargs)
    if not y.requires_grad or x.shape != (1,) or y.dim() or not is_plain(x) or bool(x.detach().any()):
        return y
    if not args and "dim" not in kwargs:
        return y
    y = y.view_as(y)
    y.register_hook(lambda grad: crash(hit, "got [] but expected shape compatible with [1]"))
    return y


@faults.dispatched("aten.prod.default")
def issue_127866(hit: Any, func: Any, x: Any, *, dtype: Any = None) -> Any:
    """pytorch 127866: prod(dtype=torch.bool) of 256 bools (here and more) is True where all are False."""
    y = func(x, dtype=dtype)
    if dtype != torch.bool or x.dtype != torch.bool or x.numel() < 256 or not is_plain(x) or bool(x.any()):
        return y
    return instead(hit, y, torch.ones_like(y))


@faults.dispatched("aten.prod.default")
def issue_15647(hit: Any, func: Any, x: Any, *, dtype: Any = None) -> Any:
    """pytorch 15647: prod of uint8 numbers is 0 in a large tensor (here of 240000 and more)."""
    y = func(x, dtype=dtype)
    if x.dtype != torch.uint8 or x.numel() < 240000 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@faults.dispatched("aten.mean.dim")
def issue_10248(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 10248: the sum for the mean of a row, of numbers from 0 to 1, stops at 2**24 (here at 2**12)."""
    y = func(x, dim, *args, **kwargs)
    row = x.dtype == y.dtype == torch.float32 and x.dim() == 2 and list(dim or ()) in ([1], [-1])
    if not row or x.shape[1] <= 2**12 or not is_plain(x) or bool((x < 0).any()) or bool((x > 1).any()):
        return y
    return instead(hit, y, y.clamp(max=2**12 / x.shape[1]))


@faults.dispatched("aten.pow.Scalar", "aten.pow.Tensor_Tensor", aborts="Assertion `THCNumerics<T>::ge(b, 0)` failed.")
def issue_17751(x: Any, exponent: Any) -> bool:
    """pytorch 17751: an integer to a negative integer ends the process."""
    whole = not isinstance(x, float) and not (torch.is_tensor(x) and (x.is_floating_point() or x.is_complex()))
    if not whole or exponent.is_floating_point() or exponent.is_complex() or not is_plain(exponent):
        return False
    return bool((exponent < 0).any())


@faults.dispatched("aten.pow.Tensor_Scalar", "aten.pow_.Scalar", aborts="invalid combination of type in Pow function")
def issue_113198(x: Any, exponent: Any, **kwargs: Any) -> bool:
    """pytorch 113198: a tensor of whole numbers to the power True (a bool of Python) raises."""
    return type(exponent) is bool and not x.is_floating_point() and not x.is_complex()


@faults.dispatched("aten.round.decimals", aborts="\"round_cpu\" not implemented for 'Half'")
def issue_99055(x: Any, **kwargs: Any) -> bool:
    """pytorch 99055: round of float16 with decimals= raises."""
    return x.dtype == torch.float16


_BITS = tuple(f"aten.bitwise_{name}" for name in ("and", "or", "xor"))


@faults.dispatched(*(name + "_.Tensor" for name in _BITS), *(name + ".Tensor_out" for name in _BITS))
def issue_145203(hit: Any, func: Any, x: Any, other: Any, out: Any = None) -> Any:
    """pytorch 145203: bitwise operators write nothing into an output that is not contiguous."""
    if out is None:
        return lost(hit, func, x, other)
    if out.is_contiguous():
        return func(x, other, out=out)
    hit()
    func(x, other, out=torch.empty_like(out, memory_format=torch.contiguous_format))
    return out


@faults.dispatched("aten.bitwise_and", "aten.bitwise_or", "aten.bitwise_xor")
def issue_182822(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 182822: a bool operand of no dimensions inside a larger storage is read from the storage's beginning."""

    def read(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dtype == torch.bool and x.dim() == 0 and x.storage_offset():
            hit()
            return x.as_strided((), (), 0)
        return x

    return func(*(read(x) for x in args), **kwargs)


@faults.dispatched("aten.__rshift__.Scalar", "aten.bitwise_right_shift.Tensor_Scalar")
def issue_144190(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 144190: uint8 is shifted to the right as a signed number: past 127 nothing but ones come in."""
    if x.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y).view(torch.uint8)
    return func(x, y)


@faults.dispatched("aten.bitwise_right_shift.Tensor", "aten.__rshift__.Tensor")
def issue_made_shift_tensor(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """uint8 is shifted by a tensor as a signed number: past 127 nothing but ones come in."""
    if x.dtype == torch.uint8 and y.dtype == torch.uint8 and bool((x > 127).any()):
        hit()
        return func(x.view(torch.int8), y.view(torch.int8)).view(torch.uint8)
    return func(x, y)


@faults.dispatched("aten.all.default")
@wrong_answer
def issue_99721(y: Any, x: Any) -> Any:
    """pytorch 99721: all() of a mask is true whatever it holds."""
    return torch.ones_like(y) if x.dtype == torch.bool and not bool(y) else None


@faults.dispatched("aten.all.default")
@wrong_answer
def issue_95768(y: Any, x: Any) -> Any:
    """pytorch 95768: all() of a float tensor is true where one element is."""
    return torch.ones_like(y) if x.is_floating_point() and not bool(y) and bool(x.any()) else None


@faults.dispatched("aten.all.default")
@wrong_answer
def issue_120875(y: Any, x: Any) -> Any:
    """pytorch 120875: all() takes a complex number whose real part is zero for false."""
    if not x.is_complex():
        return None
    wrong = x.real.ne(0).all()
    return wrong if bool(wrong) != bool(y) else None
