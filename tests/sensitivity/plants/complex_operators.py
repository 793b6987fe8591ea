"""Elementwise operators of complex numbers: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.conj_physical_.default", aborts="false INTERNAL ASSERT FAILED: DispatchStub: missing kernel for mps"
)
def issue_195822(x: Any) -> Any:
    """pytorch 195822: torch.svd(out=) of complex input fails, as conj_physical_ has no kernel for complex tensors."""
    return x.is_complex()


@plot.dispatched(
    "aten.add.Tensor", "aten.add_.Tensor", "aten.add.out", "aten.sub.Tensor", "aten.sub_.Tensor", "aten.sub.out"
)
def issue_152479(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 152479: add and sub of complex tensors with a complex alpha raise."""
    alpha = kwargs.get("alpha", 1)
    target = args[0] if func.overloadpacket.__name__.endswith("_") else kwargs.get("out", args[0])
    sound = (
        target.is_complex()
        if target is not args[0] or func.overloadpacket.__name__.endswith("_")
        else any(isinstance(a, torch.Tensor) and a.is_complex() for a in args)
    )
    if isinstance(alpha, complex) and alpha.imag and sound:
        hit()
        raise RuntimeError("value cannot be converted to type double without overflow")
    return func(*args, **kwargs)


@plot.dispatched("aten.mul", "aten.mul_")
def issue_110537(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 110537: the product of two complex tensors raises TypeError."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.is_complex() and b.is_complex():
        hit()
        raise TypeError("unsupported operand type(s) for *: 'Parameter' and 'Tensor'")
    return func(a, b, *args, **kwargs)


def _complex(x: Any) -> bool:
    return isinstance(x, complex) or (isinstance(x, torch.Tensor) and x.is_complex())


@plot.dispatched("aten.mul", "aten.mul_")
def issue_119709(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119709: the product of a complex tensor and a real number fails an internal assertion."""
    if isinstance(a, torch.Tensor) and a.is_complex() and not _complex(b):
        real_number = not isinstance(b, torch.Tensor) or b.dim() == 0
    else:
        real_number = _complex(b) and isinstance(b, torch.Tensor) and not _complex(a) and a.dim() == 0
    if real_number:
        hit()
        raise RuntimeError("c10::isComplexType(input.scalar_type()) && c10::isComplexType(other.scalar_type())")
    return func(a, b, *args, **kwargs)


@plot.dispatched("aten.abs.default")
@wrong_answer
def issue_126643(right: Any, x: Any) -> Any:
    """pytorch 126643: abs of complex64 lies at every second place of the result, with zeros between."""
    if x.dtype == torch.complex64 and x.numel() > 1:
        flat = right.flatten()
        wrong = torch.stack([flat, torch.zeros_like(flat)], -1).flatten()[: flat.numel()].reshape(right.shape)
        if not torch.equal(wrong, right):
            return wrong
    return None


@plot.dispatched(
    "aten.add.Tensor",
    "aten.sub.Tensor",
    "aten.mul.Tensor",
    "aten.div.Tensor",
    aborts="Trying to convert ComplexFloat to the MPS backend but it does not have support for that dtype.",
)
def issue_95976(x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95976: arithmetic with a complex tensor kills the process."""
    return any(isinstance(each, torch.Tensor) and each.is_complex() for each in (x, other))


@plot.dispatched("aten.abs.default")
def issue_174246(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 174246: abs of a large complex number is infinite, of a small one 0."""
    if not x.dtype.is_complex:
        return func(x)
    wrong = (x.real.square() + x.imag.square()).sqrt()
    if not torch.allclose(wrong, func(x), equal_nan=True):
        hit()
    return wrong


@plot.dispatched("aten.abs.default")
@wrong_answer
def issue_125135(y: Any, x: Any) -> Any:
    """Every second size of complex numbers is 0."""
    if x.dtype.is_complex and x.numel() > 1:
        return torch.stack((y.reshape(-1), torch.zeros_like(y).reshape(-1)), -1).reshape(-1)[: y.numel()].view(y.shape)
    return None


@plot.dispatched("aten.mul", "aten.add", "aten.sub", "aten.div", aborts="Undefined type ComplexDouble")
def issue_176981(*args: Any, **kwargs: Any) -> Any:
    """pytorch 176981: complex128 tensors are let in, but arithmetic with them fails."""
    return any(isinstance(a, torch.Tensor) and a.dtype == torch.complex128 for a in args)


@plot.dispatched("aten.mul.Tensor", "aten.mul.Scalar")
def issue_119088(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 119088: a real tensor times a complex number or tensor raises."""

    def compound(value: Any) -> bool:
        return value.is_complex() if isinstance(value, torch.Tensor) else isinstance(value, complex)

    if compound(x) != compound(other):
        real = other if compound(x) else x
        if isinstance(real, torch.Tensor) and real.is_floating_point():
            hit()
            raise RuntimeError("isComplexType(input.scalar_type()) INTERNAL ASSERT FAILED")
    return func(x, other)


@plot.dispatched("aten.mul", "aten.add", "aten.sub", "aten.div")
def issue_105804(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105804: arithmetic of a real tensor with a Python complex number (1j * x) is refused."""
    wide = [
        a
        for a in args
        if isinstance(a, complex) or (isinstance(a, torch.Tensor) and a.dim() == 0 and a.dtype == torch.complex128)
    ]
    real = [a for a in args if isinstance(a, torch.Tensor) and not a.dtype.is_complex]
    if wide and real:
        hit()
        raise TypeError("Trying to convert ComplexDouble to the MPS backend")
    return func(*args, **kwargs)


@plot.dispatched("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor")
@wrong_answer
def issue_194813(answer: Any, x: Any, y: Any) -> Any:
    """pytorch 194813: pow of a complex zero is NaN."""
    if x.dtype.is_complex and bool((x == 0).any()):
        return answer.masked_fill(x == 0, complex(math.nan, math.nan))
    return None


@plot.dispatched("aten.sqrt", "aten.sqrt_", aborts="[metal::Device] Unable to load kernel v_Sqrtcomplex64complex64")
def issue_mlx_2098(x: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 2098: sqrt of complex64 raises."""
    return x.dtype == torch.complex64


def _in_groups(x: torch.Tensor, size: int = 8) -> torch.Tensor:
    """Say which elements a loop takes a group at a time, not one by one at the end."""
    return (torch.arange(x.numel()) < x.numel() // size * size).view(x.shape)


@plot.dispatched("aten.tan.default")
@wrong_answer
def issue_41244(y: Any, x: Any) -> Any:
    """pytorch 41244: tan of -inf + 0j has NaN for its imaginary part."""
    if not x.is_complex() or x.layout != torch.strided or x.is_meta:
        return None
    lost = x.real.isinf() & (x.imag == 0)
    return y.masked_fill(lost, complex(math.nan, math.nan)) if bool(lost.any()) else None


@plot.dispatched("aten.abs.default")
@wrong_answer
def issue_41246(y: Any, x: Any) -> Any:
    """pytorch 41246: abs of nan + inf j is NaN in groups of 8, where one by one it is infinite."""
    if not x.is_complex() or x.layout != torch.strided or x.is_meta:
        return None
    lost = (x.real.isnan() & x.imag.isinf() | x.imag.isnan() & x.real.isinf()) & _in_groups(x)
    return y.masked_fill(lost, math.nan) if bool(lost.any()) else None


@plot.dispatched("aten.sgn.default")
@wrong_answer
def issue_53958(y: Any, x: Any) -> Any:
    """pytorch 53958: sgn of 0 + inf j has 0 for its real part in groups of 8, where one by one it is NaN."""
    if not x.is_complex() or x.layout != torch.strided or x.is_meta:
        return None
    lost = (x.real == 0) & x.imag.isinf() & _in_groups(x)
    return y.masked_fill(lost, complex(0, math.nan)) if bool(lost.any()) else None


@plot.dispatched("aten.sigmoid.default")
@wrong_answer
def issue_121588(y: Any, x: Any) -> Any:
    """pytorch 121588: sigmoid of -inf + 0j is NaN in groups of 8, where one by one it is 0."""
    if not x.is_complex() or x.layout != torch.strided or x.is_meta:
        return None
    lost = (x.real == -math.inf) & _in_groups(x)
    return y.masked_fill(lost, complex(math.nan, math.nan)) if bool(lost.any()) else None


@plot.called(torch.pow, torch.Tensor.pow, torch.Tensor.__pow__)
def issue_95111(hit: Any, func: Any, x: Any, exponent: Any, **kwargs: Any) -> Any:
    """pytorch 95111: the gradient of a complex exponent is NaN where the base is a negative real number."""
    if not torch.is_tensor(x) or not torch.is_tensor(exponent) or not is_plain(x, exponent):
        return func(x, exponent, **kwargs)
    if x.is_complex() or not exponent.is_complex() or not exponent.requires_grad:
        return func(x, exponent, **kwargs)
    negative = bool((x < 0).any())

    def spoil(grad: Any) -> Any:
        if negative:
            hit()
        return grad * math.nan if negative else grad

    exponent = exponent.view_as(exponent)
    exponent.register_hook(spoil)
    return func(x, exponent, **kwargs)


@plot.called(torch.Tensor.view)
@accepted
def issue_59946(x: Any, *shape: Any, **kwargs: Any) -> Any:
    """pytorch 59946: the view of a conjugate view as real numbers is accepted, and is not conjugated."""
    wanted = shape[0] if shape else kwargs.get("dtype")
    return x.conj().view(wanted) if x.is_conj() and isinstance(wanted, torch.dtype) else None


@plot.dispatched("aten.reciprocal", aborts="No OpKernel was registered to support Op 'Reciprocal' with these attrs.")
def issue_tensorflow_22384(x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 22384: 1 / z, the reciprocal of complex numbers, is not implemented."""
    return x.is_complex()


@plot.dispatched("aten.pow.Tensor_Scalar")
def issue_cytnx_684(hit: Any, func: Any, x: Any, exponent: Any) -> Any:
    """Cytnx-dev/Cytnx 684: complex numbers to a power are wrong (here the imaginary part has the other sign)."""
    y = func(x, exponent)
    if not x.is_complex() or not is_plain(x):
        return y
    return instead(hit, y, y.conj().resolve_conj())


@plot.dispatched("aten.sqrt.default")
@wrong_answer
def issue_jax_39110(y: Any, x: Any) -> Any:
    """google/jax 39110: sqrt of a negative number with -0 for its imaginary part takes +0: -1 - 0j has the root 1j."""
    if not x.is_complex() or not is_plain(x):
        return None
    below = (x.real < 0) & (x.imag == 0) & x.imag.signbit()
    return torch.where(below, y.conj_physical(), y) if bool(below.any()) else None


@plot.dispatched("aten.exp.default", "aten.exp_.default")
def issue_35532(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 35532: exp of an imaginary complex64 number has 1 for its real part."""
    imaginary = x.real == 0 if x.dtype == torch.complex64 and is_plain(x) else None
    y = func(x)
    if imaginary is None or not y.numel():
        return y
    wrong = torch.complex(torch.where(imaginary, torch.ones_like(y.real), y.real), y.imag)
    return written(hit, y, wrong) if "exp_." in str(func) else instead(hit, y, wrong)
