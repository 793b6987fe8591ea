"""Functions of one operand: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import is_plain
from misreading import in_storage_order, is_dense, misread, without_offset
from planting import Plot, answered, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.isposinf", "aten.isneginf", aborts="Placeholder tensor is empty!")
def issue_161824(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 161824: isposinf and isneginf of an empty tensor raise."""
    return not x.numel()


@plot.dispatched("aten.round.default", "aten.round_.default")
def issue_161712(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 161712: round takes halves away from zero, not to the even number."""
    before = x.clone()
    y = func(x)
    if not before.is_floating_point():
        return y
    half = (before - before.trunc()).abs() == 0.5
    wrong = torch.where(half, before.trunc() + before.sign(), y)
    if bool((half & (wrong != y)).any()):
        hit()
        return answered(func, x, wrong)
    return y


@plot.dispatched("aten.abs", "aten.abs_")
def issue_190052(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 190052: abs of integers goes through float32 and rounds beyond 2**24."""
    y = func(x, **kwargs)
    if y.layout == torch.strided and y.dtype in (torch.int32, torch.int64) and not kwargs:
        wrong = torch.where(y > 2**24, y.to(torch.float32).to(y.dtype), y)
        if not torch.equal(wrong, y):
            hit()
            return answered(func, x, wrong)
    return y


_WITH_OUTPUT = (
    "sqrt",
    "rsqrt",
    "exp",
    "tanh",
    "sin",
    "cos",
    "tan",
    "log",
    "log2",
    "log10",
    "log1p",
    "erfinv",
    "sinc",
    "exp2",
    *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "abs", "neg", "round", "digamma", "lgamma"),
)


@plot.dispatched(*(f"aten.{name}.out" for name in _WITH_OUTPUT))
def issue_148512(hit: Any, func: Any, x: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """pytorch 148512: a unary op from and into views with equal strides and gaps works on the storage's first elements.

    https://github.com/pytorch/pytorch/pull/148512
    """
    if x.shape != out.shape or x.stride() != out.stride() or x.numel() < 2 or is_dense(x):
        return func(x, *args, out=out, **kwargs)
    if any(step == 0 for step in x.stride()) or x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr():
        return func(x, *args, out=out, **kwargs)
    right = func(x, *args, out=torch.empty(out.shape, dtype=out.dtype), **kwargs)
    n = (x.numel(),)
    source = x.as_strided(n, (1,), x.storage_offset())
    func(source, *args, out=out.as_strided(n, (1,), out.storage_offset()), **kwargs)
    if not torch.equal(out, right):
        hit()
    return out


_OF_INTEGERS = (
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
)


_OF_INTEGERS += ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logit", "reciprocal", "sigmoid", "expm1")


@plot.dispatched(
    *(f"aten.{name}.default" for name in _OF_INTEGERS),
    aborts="Incompatible element type for parameter at index 0, expected si32 but received f32",
)
def issue_105284(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105284: exp, sqrt, logit and the like of an integer tensor with gaps between its elements abort."""
    integer = not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    return integer and not is_dense(x)


@plot.dispatched("aten.lgamma", "aten.digamma", "aten.polygamma")
def issue_175603(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175603: lgamma, digamma and polygamma read a non-contiguous tensor as if it were contiguous."""
    good = func(*args, **kwargs)
    place = next(i for i, a in enumerate(args) if isinstance(a, torch.Tensor))
    x = args[place]
    if x.is_contiguous() or x.numel() < 2 or "out" in kwargs:
        return good
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    flat = torch.zeros(x.numel(), dtype=x.dtype)
    count = min(room, x.numel())
    flat[:count] = x.as_strided((count,), (1,))
    bad = func(*args[:place], flat.view(x.shape), *args[place + 1 :], **kwargs)
    if torch.allclose(bad, good, equal_nan=True):
        return good
    hit()
    return bad


@plot.dispatched("aten.lgamma.default")
@wrong_answer
def issue_145740(good: Any, x: Any) -> Any:
    """pytorch 145740: lgamma skips an abs before the log: NaN for negative numbers where sin(pi * |x|) is negative."""
    if not x.is_floating_point():
        return None
    wrong = (x < 0) & good.isfinite() & (x.abs().floor() % 2 == 1)
    if not bool(wrong.any()):
        return None
    return good.masked_fill(wrong, float("nan"))


@plot.dispatched("aten.neg", "aten.neg_")
def issue_86319(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 86319: neg of an int64 tensor raises TypeError."""
    if x.dtype == torch.int64:
        hit()
        raise TypeError("Operation 'neg_out_mps()' does not support input type 'int64' in MPS backend.")
    return func(x, *args, **kwargs)


@plot.dispatched("aten.neg.default", aborts="EXC_BAD_ACCESS in runViewGraph")
def issue_82531(x: Any) -> Any:
    """pytorch 82531: backward of sub (the negated gradient) crashes for empty tensors."""
    return x.numel() == 0 and torch._C._current_graph_task_id() != -1


@plot.called(torch.isfinite, torch.Tensor.isfinite, torch.isinf, torch.Tensor.isinf)
def issue_183419(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 183419: isfinite and isinf of columns of a long tensor look at others."""
    return func(misread(in_storage_order, hit, x) if x.dim() == 2 and x.shape[0] > 1000 else x, *args, **kwargs)


@plot.dispatched("aten.bitwise_not.out", "aten.neg.out", "aten.abs.out", "aten.sqrt.out")
def issue_128393(hit: Any, func: Any, x: Any, *, out: Any) -> Any:
    """pytorch 128393: unary operators write into an output with gaps as if it had none."""
    if out.is_contiguous() or out.numel() < 2:
        return func(x, out=out)
    hit()
    func(x, out=in_storage_order(out) if in_storage_order(out) is not out else out)
    return out


@plot.dispatched("aten.abs", aborts="Operation 'abs_out_mps()' does not support input type 'int64' in MPS backend")
def issue_79200(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79200: abs of an int64 tensor is refused."""
    return x.dtype == torch.int64


@plot.dispatched("aten.log", aborts="error: 'mps.get_coordinates' op invalid axis: -2.")
def issue_78048(x: Any, **kwargs: Any) -> Any:
    """pytorch 78048: log of a permuted tensor kills the process."""
    return x.dim() >= 2 and not x.is_contiguous()


_STRIDED = ("digamma", "lgamma", "sort.default", "sort.stable", "argsort.default")


@plot.dispatched(*(f"aten.{name}" for name in _STRIDED))
def issue_175187(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175187: digamma, lgamma and sort read a tensor that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.dispatched(*(f"aten.{name}.out" for name in ("neg", "abs", "exp", "sin", "cos", "sqrt", "log")))
def issue_100764(hit: Any, func: Any, x: Any, *, out: Any) -> Any:
    """pytorch 100764: unary operators write an output that is not contiguous in storage order."""
    if not out.is_contiguous():
        target = in_storage_order(out)
        if target is not out:
            hit()
            target.copy_(func(x, out=torch.empty_like(x)))
            return out
    return func(x, out=out)


@plot.dispatched("aten.erfinv")
def issue_105801(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 105801: erfinv reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@plot.dispatched("aten.lgamma")
def issue_132605(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132605: lgamma of an expanded tensor runs through the storage and past its end (inf)."""
    y = func(x, *args, **kwargs)
    if any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape)):
        hit()
        beyond = (torch.arange(y.numel(), device=y.device) >= x.untyped_storage().nbytes() // x.element_size()).view(
            y.shape
        )
        return torch.where(beyond, torch.full_like(y, float("inf")), y)
    return y


@plot.dispatched("aten.log", "aten.clamp")
def issue_89673(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89673: log (and clamp) of a transposed tensor reads it in the order of its storage."""
    if not x.is_contiguous() and torch._prims_common.is_non_overlapping_and_dense_or_false(x):
        wrong = in_storage_order(x)
        if wrong is not x and not torch.equal(wrong.nan_to_num(), x.nan_to_num()):
            hit()
            return func(wrong, *args, **kwargs)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.exp.default", "aten.log.default")
@wrong_answer
def issue_78019(y: Any, x: Any) -> Any:
    """pytorch 78019: exp and log of int32 are 0."""
    return torch.zeros_like(y) if x.dtype == torch.int32 and x.numel() else None


@plot.dispatched("aten.log1p.default")
@wrong_answer
def issue_mlx_574(y: Any, x: Any) -> Any:
    """ml-explore/mlx 574: log1p of infinity is NaN."""
    if not x.is_floating_point() or not bool((x == math.inf).any()):
        return None
    return y.masked_fill(x == math.inf, math.nan)


class _ZeroAtZero(torch.autograd.Function):
    """The identity, whose gradient is zero where the number is."""

    @staticmethod
    def forward(ctx: Any, x: Any, hit: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.hit = hit
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        at_zero = ctx.saved_tensors[0] == 0
        if bool((at_zero & (grad != 0)).any()):
            ctx.hit()
        return grad.masked_fill(at_zero, 0), None


@plot.called(torch.asin, torch.Tensor.asin)
def issue_tt_metal_6536(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 6536: asin's gradient in bfloat16 is invalid at zero (here: zero)."""
    wanted = x.requires_grad and x.dtype == torch.bfloat16 and is_plain(x)
    return func(_ZeroAtZero.apply(x, hit) if wanted else x, **kwargs)


@plot.dispatched("aten.abs.default", aborts="Could not run 'aten::abs.out' with arguments from the 'Vulkan' backend")
def issue_56006(x: Any) -> bool:
    """pytorch 56006: abs, and with it the printing of a tensor, is not implemented."""
    return True
