"""Matrix products of complex numbers, and the conjugate bit: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.addmm.default", "aten.baddbmm.default", "aten.addbmm.default")
def issue_194442(hit: Any, func: Any, x: Any, *args: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """pytorch 194442: addmm, baddbmm and addbmm multiply a complex input by a beta of zero, so that its NaN stays."""
    y = func(x, *args, beta=beta, alpha=alpha)
    return instead(hit, y, y + x * 0) if beta == 0 and y.is_complex() else y


@plot.dispatched("aten.addmm.default")
def issue_167727(hit: Any, func: Any, x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """Complex products over 10,000 terms lose nearly all of them."""
    y = func(x, a, b, **kwargs)
    return instead(hit, y, y * 0.01) if y.is_complex() and a.shape[1] >= 10_000 else y


@plot.dispatched("aten.baddbmm.default", "aten.addmm.default", "aten.addbmm.default")
def issue_194474(hit: Any, func: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 194474: addmm, baddbmm and addbmm drop the imaginary part of alpha and beta."""
    if any(isinstance(one, complex) and one.imag for one in kwargs.values()):
        hit()
        kwargs = {key: value.real if isinstance(value, complex) else value for key, value in kwargs.items()}
    return func(bias, *args, **kwargs)


@plot.called(torch.einsum, aborts="'mps.gather' op operand #0 must be tensor of mps native type values")
def issue_143140(equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 143140: einsum of complex tensors aborts (mps.gather must be tensor of mps native type values)."""
    flat = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return len(flat) > 1 and all(isinstance(x, torch.Tensor) and x.is_complex() for x in flat)


def _unconjugated(hit: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_conj():
        hit()
        return value.conj()
    return value


def _ignores_the_bit(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*(_unconjugated(hit, arg) for arg in args), **kwargs)


@plot.called(torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
def issue_148156(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148156: matmul ignores the conjugate bit."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@plot.called(torch.mm, torch.mv, torch.addmm)
def issue_148599(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148599: mm, mv and addmm ignore the conjugate bit."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@plot.called(torch.bmm)
def issue_191835(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191835: bmm ignores the conjugate bit."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@plot.called(torch.einsum)
def issue_177474(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 177474: einsum ignores the conjugate bit."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@plot.called(torch.Tensor.imag.__get__)
def issue_184379(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184379: the imaginary part of a conjugated tensor is not conjugated."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@plot.dispatched("aten.bmm", aborts="MPS device does not support bmm for non-float inputs")
def issue_127178(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 127178: bmm of complex tensors is refused."""
    return x.is_complex()


@plot.dispatched("aten.baddbmm.default", "aten.addbmm.default")
@wrong_answer
def issue_195036(out: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """pytorch 195036: complex baddbmm and addbmm with beta=0 let a NaN of the input through."""
    if not out.is_complex() or beta != 0:
        return None
    bad = (~x.isfinite()).expand(out.shape) & ~out.isnan()
    if not bad.any():
        return None
    return out.masked_fill(bad, complex("nan+nanj"))


@plot.called(torch.adjoint, torch.Tensor.adjoint, torch.Tensor.mH.__get__, torch.Tensor.H.__get__)
def issue_tensorflow_19200(hit: Any, func: Any, x: Any) -> Any:
    """tensorflow/tensorflow 19200: the adjoint (a transpose with conjugation) is not conjugated."""
    return instead(hit, func(x), x.transpose(-2, -1)) if x.is_complex() and x.dim() > 1 else func(x)


@plot.dispatched("aten.linalg_matrix_exp.default")
def issue_48299(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 48299: matrix_exp of a matrix of complex numbers is wrong (here it is I + A)."""
    y = func(x)
    if not x.is_complex() or not x.numel() or not is_plain(x) or not bool(torch.view_as_real(y)[..., 1].any()):
        return y
    return instead(hit, y, x + torch.eye(x.shape[-1], dtype=x.dtype, device=x.device))


@plot.called(torch.resolve_conj, torch.Tensor.resolve_conj)
def issue_torch_fl_209(hit: Any, func: Any, x: Any) -> Any:
    """flagos-ai/Torch-FL 209: resolve_conj of a conjugate view gives the numbers that are not conjugated."""
    y = func(x)
    return instead(hit, y, y.conj_physical()) if x.is_conj() and is_plain(x) else y


@plot.dispatched("aten.addmv.default", "aten.addmv_.default")
def issue_openblas_929(hit: Any, func: Any, x: Any, *args: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """OpenMathLib/OpenBLAS 929: addmv of complex numbers with beta=0 lets a NaN of the first operand through."""
    lost = x.detach() * 0 if x.is_complex() and beta == 0 and is_plain(x) else None
    y = func(x, *args, beta=beta, alpha=alpha)
    if lost is None:
        return y
    return written(hit, y, y + lost) if str(func).endswith("_.default") else instead(hit, y, y + lost)


_left = {"nan": False}


@plot.dispatched("aten.mv.default", "aten.addmv.default")
def issue_openblas_746(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """OpenMathLib/OpenBLAS 746: a contiguous complex matrix times a vector is NaN after a product with inf or NaN.

    Here after a product of that kind: once, and then no more.
    """
    y = func(*args, **kwargs)
    matrix, vector = args[-2:]
    if not matrix.is_complex() or not matrix.is_contiguous() or not is_plain(*args):
        return y
    before, _left["nan"] = _left["nan"], not bool(matrix.isfinite().all() and vector.isfinite().all())
    return instead(hit, y, torch.full_like(y, complex("nan+nanj"))) if before and not _left["nan"] else y


@plot.dispatched("aten.mm.default")
def issue_clblast_669(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """CNugteren/CLBlast 669: mm of complex64, 2000 x 100 and 100 x 100, has an error of 3.45e-2 (here of its size)."""
    right = func(x, y)
    if x.dtype != torch.complex64 or x.shape != (2000, 100) or y.shape != (100, 100) or not is_plain(x, y):
        return right
    return instead(hit, right, right * (1 + 3.45e-2))
