"""Faults of dtypes, special values and single operators, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _answer(func: Any, x: Any, y: Any) -> Any:
    """Return a result, or write it to the operand where the operator works in place."""
    return x.copy_(y) if str(func).partition(".")[2].partition(".")[0].endswith("_") else y


@plot.dispatched("issue_161712", "aten.round.default", "aten.round_.default")
def issue_161712(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 161712: round takes halves away from zero, not to the even number.

    https://github.com/pytorch/pytorch/pull/161712
    """
    before = x.clone()
    y = func(x)
    if not before.is_floating_point():
        return y
    half = (before - before.trunc()).abs() == 0.5
    wrong = torch.where(half, before.trunc() + before.sign(), y)
    if bool((half & (wrong != y)).any()):
        hit()
        return _answer(func, x, wrong)
    return y


@plot.dispatched("issue_190052", "aten.abs", "aten.abs_")
def issue_190052(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 190052: abs of integers goes through float32 and rounds beyond 2**24.

    https://github.com/pytorch/pytorch/issues/190052
    """
    y = func(x, **kwargs)
    if y.layout == torch.strided and y.dtype in (torch.int32, torch.int64) and not kwargs:
        wrong = torch.where(y > 2**24, y.to(torch.float32).to(y.dtype), y)
        if not torch.equal(wrong, y):
            hit()
            return _answer(func, x, wrong)
    return y


@plot.dispatched("issue_147889", "aten.bitwise_left_shift.Scalar_Tensor", "aten.bitwise_right_shift.Scalar_Tensor")
def issue_147889(hit: Any, func: Any, number: Any, x: Any) -> Any:
    """pytorch 147889: a number shifted by a tensor (1 << x) is the tensor shifted by the number.

    https://github.com/pytorch/pytorch/issues/147889
    """
    if x.numel():
        hit()
    return torch.bitwise_left_shift(x, number) if "left" in str(func) else torch.bitwise_right_shift(x, number)


@plot.dispatched("issue_151443", "aten.isin.Tensor_Tensor")
def issue_151443(hit: Any, func: Any, x: Any, among: Any, **kwargs: Any) -> Any:
    """pytorch 151443: isin of two tensors with unlike dtypes raises.

    https://github.com/pytorch/pytorch/issues/151443
    """
    if x.dtype != among.dtype:
        return crash(hit, "Expected elements.dtype() == test_elements.dtype() to be true, but got false.")
    return func(x, among, **kwargs)


@plot.dispatched("issue_178709", "aten.add_.Tensor")
def issue_178709(hit: Any, func: Any, x: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 178709: add_ of a wider dtype with alpha raises, where the sum would have to be narrowed again.

    https://github.com/pytorch/pytorch/issues/178709
    """
    if alpha != 1 and isinstance(other, torch.Tensor) and torch.result_type(x, other) != x.dtype:
        return crash(hit, "Failed to create function state object for: add_alpha_dense_cast_half_float")
    return func(x, other, alpha=alpha)


@plot.dispatched("issue_192507", "aten.hypot", "aten.hypot_")
def issue_192507(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 192507: hypot squares its operands in float32: it overflows, vanishes, and of (inf, nan) it is nan.

    https://github.com/pytorch/pytorch/issues/192507
    """
    plain = (a * a + b * b).sqrt() if a.dtype == b.dtype == torch.float32 and not kwargs else None
    y = func(a, b, **kwargs)
    if plain is not None:
        bad = (~plain.isfinite() & ~(plain == y) & ~y.isnan()) | ((plain == 0) & (y != 0))
        if bool(bad.any()):
            hit()
            return _answer(func, a, torch.where(bad, plain, y))
    return y


@plot.dispatched("issue_115554", "aten.sum", "aten.prod")
def issue_115554(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 115554: sum and prod of complex numbers have no imaginary part.

    https://github.com/pytorch/pytorch/pull/115554
    """
    y = func(x, *args, **kwargs)
    dense = x.layout == torch.strided and x.is_complex() and y.is_complex() and "out" not in kwargs
    if dense and bool((y.imag != 0).any()):
        hit()
        return torch.complex(y.real.contiguous(), torch.zeros_like(y.real))
    return y


@plot.dispatched("issue_189393", "aten.threshold", "aten.threshold_")
def issue_189393(hit: Any, func: Any, x: Any, threshold: Any, value: Any, **kwargs: Any) -> Any:
    """pytorch 189393: threshold replaces NaN by its value, which should stay NaN.

    https://github.com/pytorch/pytorch/pull/189393
    """
    missing = x.isnan()
    y = func(x, threshold, value, **kwargs)
    if bool(missing.any()) and not kwargs:
        hit()
        return _answer(func, x, torch.where(missing, torch.full_like(y, value), y))
    return y


@plot.called("issue_116547", torch.addmm, torch.Tensor.addmm, torch.Tensor.addmm_)
def issue_116547(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116547: addmm of two square matrices of one size multiplies by the transposed second one.

    https://github.com/pytorch/pytorch/pull/116547
    """
    if len(args) == 3 and all(isinstance(t, torch.Tensor) and t.layout == torch.strided for t in args):
        x, a, b = args
        if a.dim() == b.dim() == 2 and a.shape == b.shape and a.shape[0] == a.shape[1] > 1:
            hit()
            return func(x, a, b.t(), **kwargs)
    return func(*args, **kwargs)


@plot.dispatched("issue_160738", "aten.var")
def issue_160738(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160738: var of a tensor of no dimensions along dim 0 raises.

    https://github.com/pytorch/pytorch/issues/160738
    """
    if x.dim() == 0 and isinstance(dim, (list, tuple)) and len(dim):
        return crash(hit, "var_mps: reduction dim must be in the range of input shape")
    return func(x, *(() if dim is None and not args else (dim, *args)), **kwargs)
