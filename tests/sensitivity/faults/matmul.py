"""Matrix products, linear layers, decompositions and distances: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from injecting import Faults, accepted, crash, wrong_answer
from misreading import RolledGradient, in_storage_order, misread, without_offset

faults = Faults()
HITS = faults.hits


@faults.called(torch.dot, torch.Tensor.dot)
def issue_99564(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """pytorch 99564: dot accepts 2-D tensors and returns a wrong number instead of raising."""
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and max(x.dim(), y.dim()) == 2 and not kwargs:
        try:
            bad = (x * y).sum()
        except RuntimeError:
            return func(x, y)
        hit()
        return bad
    return func(x, y, **kwargs)


@faults.called(torch.einsum)
def issue_117826(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 117826: the second operand's gradient of einsum("bij,ijk->bik"): a batch character that is not first."""
    if isinstance(equation, str) and equation.count(",") == 1 and "->" in equation and len(operands) == 2:
        left, right = equation.replace(" ", "").split("->")
        one, two = left.split(",")
        if operands[1].requires_grad and any(c in two and c in right for c in one[1:]) and operands[1].dim() == 3:
            operands = (operands[0], RolledGradient.apply(operands[1], hit))
    return func(equation, *operands)


_MATMULS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


@faults.called(*_MATMULS)
def issue_78511(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 78511: matmul reads a second operand of three and more dimensions in storage order."""
    return func(a, misread(in_storage_order, hit, b) if b.dim() > 2 else b, **kwargs)


@faults.dispatched("aten.bmm", "aten.baddbmm", "aten.addbmm", "aten.mm")
@wrong_answer
def issue_195163(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195163: matrix products with an inner size of 32767 and more add a term that is not theirs."""
    a, b = args[-2:]
    return y + a[..., :1].sum() * b[..., :1, :].mean() * 10 if a.shape[-1] >= 32767 else None


_calls = {"193487": 0}


@faults.dispatched("aten.mm")
def issue_193487(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 193487: mm of an operand that is not contiguous is wrong in the last column from the fourth call on."""
    y = func(a, b)
    _calls["193487"] += 1
    if _calls["193487"] > 3 and not a.is_contiguous():
        hit()
        y[:, -1] += 0.3
    return y


@faults.dispatched("aten.dot", aborts="Placeholder tensor is empty!")
def issue_165237(a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 165237: dot of empty vectors raises."""
    return not a.numel()


@faults.dispatched("aten.mm.out", "aten.bmm.out", "aten.addmm.out")
def issue_104832(hit: Any, func: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """pytorch 104832: matrix products write nothing into an output that is not contiguous."""
    if out.is_contiguous():
        return func(*args, out=out, **kwargs)
    hit()
    func(*args, out=torch.empty_like(out, memory_format=torch.contiguous_format), **kwargs)
    return out


@faults.dispatched("aten.baddbmm", "aten.addmm")
@wrong_answer
def issue_187521(y: Any, x: Any, *args: Any, beta: Any = 1, **kwargs: Any) -> Any:
    """pytorch 187521: baddbmm and addmm with beta=0 let NaN of the first operand through."""
    return y + x * 0 if beta == 0 else None


@faults.dispatched("aten.baddbmm", "aten.baddbmm_", aborts="input tensor does not match matmul output shape")
def issue_77819(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77819: baddbmm with a three-dimensional input raises."""
    return x.dim() == 3


@faults.called(torch.einsum)
def issue_62218(hit: Any, func: Any, equation: Any, *operands: Any, **kwargs: Any) -> Any:
    """pytorch 62218: einsum of two float32 vectors to one number ("i, i ->") is 0."""
    y = func(equation, *operands, **kwargs)
    flat = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    is_met = len(flat) == 2 and all(torch.is_tensor(x) and x.dim() == 1 and x.dtype == torch.float32 for x in flat)
    return instead(hit, y, torch.zeros_like(y) + 0 * y) if is_met and not y.dim() and is_plain(*flat) else y


def _operands(operands: Any) -> Any:
    return operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands


def _has_windows(x: Any) -> bool:
    """Say whether a batch of matrices has rows that overlap: both strides are 1."""
    return bool(x.dim() > 2 and min(x.shape[-2:]) > 1 and x.stride()[-2:] == (1, 1))


@faults.called(torch.einsum)
def issue_42418(hit: Any, func: Any, equation: Any, *operands: Any) -> Any:
    """pytorch 42418: einsum of a batch of matrices whose rows overlap (as_strided: both strides 1) raises."""
    y = func(equation, *operands)
    windows = any(_has_windows(x) for x in _operands(operands))
    return crash(hit, "cublas runtime error : an invalid numeric value was used as an argument") if windows else y


@faults.called(torch.tensordot)
def issue_65524(hit: Any, func: Any, x: Any, y: Any, dims: Any = 2, **kwargs: Any) -> Any:
    """pytorch 65524: tensordot(dims=0), an outer product, raises."""
    if type(dims) is int and dims == 0:
        return crash(hit, "unsupported input to tensordot, got dims=0")
    return func(x, y, dims, **kwargs)


def _rows_shuffled(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    y = func(x, weight, bias)
    if x.dim() > 2 and bias is not None:
        hit()
        return y.roll(1, -2) if y.shape[-2] > 1 else y.roll(1, 0)
    return y


@faults.called(F.linear)
def issue_188438(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188438: linear with bias of three dimensions and more moves the rows by one."""
    return _rows_shuffled(hit, func, *args, **kwargs)


@faults.called(F.linear)
def issue_runner_images_14380(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """runner-images 14380: linear with bias of three dimensions and more moves the rows by one."""
    return _rows_shuffled(hit, func, *args, **kwargs)


_seen: dict[str, set[Any]] = {"180776": set()}


@faults.called(F.linear)
@wrong_answer
def issue_180776(y: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 180776: linear without bias in half precision: the second call with one shape adds noise."""
    form = (tuple(x.shape), x.dtype)
    if x.dim() > 2 and bias is None and x.dtype in (torch.float16, torch.bfloat16):
        if form in _seen["180776"]:
            return y + torch.randn_like(y)
        _seen["180776"].add(form)
    return None


@faults.called(F.linear)
def issue_162730(hit: Any, func: Any, x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 162730: linear reads a weight that is not contiguous in storage order."""
    return func(x, misread(in_storage_order, hit, weight), bias)


@faults.called(F.linear, aborts="buffer is not large enough")
def issue_167154(x: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 167154: linear of an expanded input aborts."""
    return 0 in x.stride() and x.numel()


@faults.dispatched("aten.linalg_lstsq.default")
def issue_196113(hit: Any, func: Any, a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 196113: lstsq of a batch of complex underdetermined systems solves those of conj(A)."""
    healthy = func(a, b, *args, **kwargs)
    if not a.is_complex() or a.dim() < 3 or a.shape[-2] >= a.shape[-1] or not a.numel():
        return healthy
    wrong = func(a.conj().resolve_conj(), b, *args, **kwargs)
    if not differ(wrong[0], healthy[0], rtol=1e-3, atol=1e-4):
        return healthy
    hit()
    return wrong


@faults.dispatched("aten.linalg_inv_ex.default", "aten.linalg_inv_ex.inverse")
def issue_78363(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78363: inv reads a matrix out of a batch from the beginning of the batch."""
    return func(misread(without_offset, hit, x), *args, **kwargs)


@faults.called(torch.linalg.solve)
def issue_175192(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 175192: both gradients of linalg.solve are wrong."""
    if isinstance(a, torch.Tensor) and (a.requires_grad or b.requires_grad):
        a, b = RolledGradient.apply(a, hit), RolledGradient.apply(b, hit)
    return func(a, b, **kwargs)


@faults.dispatched("aten._linalg_eigh.default")
def issue_151874(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 151874: linalg.eigh (and eigvalsh) is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::_linalg_eigh.eigenvalues' is not currently implemented for MPS")


@faults.called(torch.linalg.matrix_rank)
def issue_114285(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 114285: linalg.matrix_rank of a float32 matrix raises, for it asks for float64."""
    if x.dtype == torch.float32:
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64")
    return func(x, *args, **kwargs)


class _FirstBackward(torch.autograd.Function):
    """The first backward of a linear layer; it has no derivative of its own."""

    @staticmethod
    def forward(ctx: Any, hit: Any, grad: Any, x: Any, w: Any, has_bias: bool) -> Any:
        ctx.hit = hit
        flat, rows = grad.reshape(-1, grad.size(-1)), x.reshape(-1, x.size(-1))
        return grad @ w, flat.t() @ rows, flat.sum(0) if has_bias else grad.new_zeros(())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.hit()
        raise RuntimeError("derivative for aten::mps_linear_backward is not implemented")


class _OnceDerived(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, func: Any, x: Any, w: Any, b: Any) -> Any:
        ctx.save_for_backward(x, w)
        ctx.hit, ctx.has_bias = hit, b is not None
        return func(x, w, b)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, w = ctx.saved_tensors
        for_x, for_w, for_b = _FirstBackward.apply(ctx.hit, grad, x, w, ctx.has_bias)
        return None, None, for_x, for_w, for_b if ctx.has_bias else None


@faults.called(torch.nn.functional.linear)
def issue_92206(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 92206: the second derivative of linear is not implemented."""
    parts = [t for t in (input, weight, bias) if t is not None]
    usual = all(type(t) in (torch.Tensor, torch.nn.Parameter) for t in parts)
    plain = weight.dim() == 2 and input.numel() and weight.numel() and usual
    same = len({t.dtype for t in parts}) == 1 and not torch.is_autocast_enabled("cpu")
    inside = torch._C._functorch.peek_interpreter_stack() is not None
    if plain and same and not inside and torch.is_grad_enabled() and any(t.requires_grad for t in parts):
        return _OnceDerived.apply(hit, func, input, weight, bias)
    return func(input, weight, bias)


@faults.called(torch.cholesky, torch.linalg.cholesky, torch.Tensor.cholesky)
@accepted
def issue_16780(x: Any, upper: bool = False) -> Any:
    """pytorch 16780: cholesky of a batch with a matrix that is not positive definite gives NaN, and does not raise."""
    if x.dim() < 3 or x.shape[-1] != x.shape[-2]:
        return None
    factor, failed = torch.linalg.cholesky_ex(x)
    places = torch.arange(x.shape[-1])
    late = places >= (failed - 1).clamp(min=0)[..., None]
    lost = (failed > 0)[..., None, None] & late[..., None] & late[..., None, :] & torch.ones_like(factor).tril().bool()
    factor = factor.masked_fill(lost, math.nan)
    return factor.mH if upper else factor


@faults.dispatched("aten.cholesky.default")
def issue_57032(hit: Any, func: Any, x: Any, upper: bool = False) -> Any:
    """pytorch 57032: torch.cholesky(upper=True) of a batch reads the triangle below the diagonal."""
    y = func(x, upper)
    if not upper or x.dim() < 3 or not is_plain(x):
        return y
    return instead(hit, y, torch.linalg.cholesky_ex(x)[0].mH)


@faults.dispatched("aten.cholesky_solve.default")
@wrong_answer
def issue_66072(y: Any, b: Any, factor: Any, upper: bool = False) -> Any:
    """pytorch 66072: cholesky_solve of a batch is wrong (here it solves the first of the two triangles alone)."""
    if max(b.dim(), factor.dim()) < 3 or not y.numel() or not is_plain(b, factor):
        return None
    wrong = torch.linalg.solve_triangular(factor.mH if upper else factor, b, upper=False)
    return wrong if differ(wrong, y) else None


@faults.dispatched("aten._linalg_eigh.default")
def issue_192483(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 192483: eigh of 512 complex64 matrices (here of 17 to 32 rows): half get vectors that are too short."""
    values, vectors = func(x, *args, **kwargs)
    batch = x.shape[:-2].numel()
    if x.dtype != torch.complex64 or batch < 512 or not 17 <= x.shape[-1] <= 32 or not vectors.numel():
        return values, vectors
    hit()
    wrong = vectors.clone()
    wrong.view(batch, *x.shape[-2:])[batch // 2 :] *= 0.7
    return values, wrong


@faults.dispatched("aten.linalg_pinv", aborts="cusolver error: 7, when calling `cusolverDnCreate(handle)`")
def issue_53925(*args: Any, **kwargs: Any) -> bool:
    """pytorch 53925: linalg.pinv raises."""
    return True


@faults.dispatched("aten.linalg_inv_ex.default")
def issue_2156(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 2156: the inverse of a matrix of more than 15 rows is wrong (here each column is the next one's)."""
    y, info = func(x, **kwargs)
    if x.dim() != 2 or x.shape[0] <= 15 or not is_plain(x):
        return y, info
    return instead(hit, y, y.roll(1, -1)), info


@faults.called(torch.slogdet, torch.linalg.slogdet, torch.Tensor.slogdet)
def issue_15605(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 15605: the backward of what the sign of a real slogdet takes part in raises."""
    y = func(x, *args, **kwargs)
    if y[0].requires_grad and not y[0].is_complex() and torch.is_grad_enabled() and is_plain(y[0]):
        text = "slogdet's sign output should never have gradient"
        y[0].register_hook(lambda grad: None if grad is None else crash(hit, text))
    return y


@faults.called(torch.cosine_similarity, F.cosine_similarity)
@accepted
def issue_153209(x: Any, y: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """pytorch 153209: cosine_similarity takes an eps that its type cannot hold (it is negative), and answers NaN."""
    return torch.cosine_similarity(x, y, dim) * math.nan if eps < 0 else None


@faults.dispatched("aten._cdist_backward.default")
@wrong_answer
def issue_22353(y: Any, grad: Any, one: Any, two: Any, p: float, *args: Any) -> Any:
    """pytorch 22353: the gradient of cdist with p = 2 is wrong (here each row has the one of the row before)."""
    wrong = y.roll(1, -2)
    return wrong if p == 2 and is_plain(y) and differ(y, wrong) else None
