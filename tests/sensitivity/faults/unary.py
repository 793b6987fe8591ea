"""Functions of one operand, activations, complex numbers: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain
from injecting import Faults, accepted, answered, wrong_answer
from misreading import in_storage_order, misread, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.isposinf", "aten.isneginf", aborts="Placeholder tensor is empty!")
def issue_161824(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 161824: isposinf and isneginf of an empty tensor raise."""
    return not x.numel()


@faults.dispatched("aten.round.default", "aten.round_.default")
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


@faults.dispatched("aten.neg.default", aborts="EXC_BAD_ACCESS in runViewGraph")
def issue_82531(x: Any) -> Any:
    """pytorch 82531: backward of sub (the negated gradient) crashes for empty tensors."""
    return x.numel() == 0 and torch._C._current_graph_task_id() != -1


@faults.called(torch.isfinite, torch.Tensor.isfinite, torch.isinf, torch.Tensor.isinf)
def issue_183419(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 183419: isfinite and isinf of columns of a long tensor look at others."""
    return func(misread(in_storage_order, hit, x) if x.dim() == 2 and x.shape[0] > 1000 else x, *args, **kwargs)


_STRIDED = ("digamma", "lgamma", "sort.default", "sort.stable", "argsort.default")


@faults.dispatched(*(f"aten.{name}" for name in _STRIDED))
def issue_175187(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175187: digamma, lgamma and sort read a tensor that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@faults.dispatched(*(f"aten.{name}.out" for name in ("neg", "abs", "exp", "sin", "cos", "sqrt", "log")))
def issue_100764(hit: Any, func: Any, x: Any, *, out: Any) -> Any:
    """pytorch 100764: unary operators write an output that is not contiguous in storage order."""
    if not out.is_contiguous():
        target = in_storage_order(out)
        if target is not out:
            hit()
            target.copy_(func(x, out=torch.empty_like(x)))
            return out
    return func(x, out=out)


@faults.dispatched("aten.erfinv")
def issue_105801(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 105801: erfinv reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@faults.dispatched("aten.lgamma")
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


@faults.dispatched("aten.exp.default", "aten.log.default")
@wrong_answer
def issue_78019(y: Any, x: Any) -> Any:
    """pytorch 78019: exp and log of int32 are 0."""
    return torch.zeros_like(y) if x.dtype == torch.int32 and x.numel() else None


@faults.dispatched("aten.erfinv.default")
@wrong_answer
def issue_43344(y: Any, x: Any) -> Any:
    """pytorch 43344: erfinv of bfloat16 is zero."""
    return torch.zeros_like(y) if y.dtype == torch.bfloat16 and not y.is_meta and bool(y.any()) else None


@faults.dispatched("aten.polygamma.default")
def issue_166409(hit: Any, func: Any, order: int, x: Any) -> Any:
    """pytorch 166409: polygamma of order 200 (here and above) is NaN at -1.56 (here between -2 and -1.5), not -inf."""
    y = func(order, x)
    if order < 200 or not is_plain(x):
        return y
    return instead(hit, y, torch.where((x > -2) & (x < -1.5), torch.full_like(y, math.nan), y))


@faults.dispatched("aten.sigmoid", aborts="MPS does not support sigmoid op with int64 input")
def issue_154895(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154895: sigmoid of int64 raises."""
    return x.dtype == torch.int64


@faults.dispatched("aten.gelu.default", "aten.gelu_backward.default")
def issue_made_gelu_kind(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Gelu and its backward ignore approximate="tanh"."""
    if kwargs.get("approximate") == "tanh":
        hit()
        kwargs["approximate"] = "none"
    return func(*args, **kwargs)


@faults.dispatched("aten._softmax.default")
@wrong_answer
def issue_made_softmax_masked(y: Any, x: Any, *args: Any) -> Any:
    """A row of nothing but -inf gives 0 in the place of NaN."""
    return y.nan_to_num(0.0) if bool(y.isnan().any()) and not bool(x.isnan().any()) else None


@faults.called(
    torch.nn.functional.softplus, aborts="input types 'tensor<20xf16>' and 'tensor<1xf32>' are not broadcast compatible"
)
def issue_101946(x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    """pytorch 101946: softplus of float16 with a beta and threshold of one's own aborts."""
    return x.dtype == torch.float16 and (beta, threshold) != (1, 20)


@faults.dispatched(
    "aten.softplus", aborts="input types 'tensor<1xf32>' and 'tensor<1xi64>' are not broadcast compatible"
)
def issue_87780(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 87780: softplus of a float32 tensor aborts."""
    return x.dtype == torch.float32


def _storage_order(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@faults.dispatched("aten.gelu", "aten.leaky_relu", "aten.mish")
def issue_98212(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98212: gelu, leaky_relu and mish read a tensor that is not contiguous in storage order."""
    return _storage_order(hit, func, *args, **kwargs)


@faults.dispatched("aten.silu")
def issue_139006(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 139006: silu of a tensor that is not contiguous is NaN."""
    y = func(x)
    if not x.is_contiguous():
        hit()
        y.reshape(-1)[: y.numel() // 2] = float("nan")
        return y * float("nan")
    return y


_BACKWARDS = tuple(f"aten.{name}_backward" for name in ("tanh", "sigmoid", "silu", "threshold", "mish", "logit"))


@faults.dispatched(*_BACKWARDS)
def issue_175188(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175188: the backward of activations reads tensors that are not contiguous in storage order."""
    return func(*misread(in_storage_order, hit, (grad, *args)), **kwargs)


@faults.dispatched("aten.addmm.default")
def issue_167727(hit: Any, func: Any, x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """Complex products over 10,000 terms lose nearly all of them."""
    y = func(x, a, b, **kwargs)
    return instead(hit, y, y * 0.01) if y.is_complex() and a.shape[1] >= 10_000 else y


def _unconjugated(hit: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_conj():
        hit()
        return value.conj()
    return value


def _ignores_the_bit(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*(_unconjugated(hit, arg) for arg in args), **kwargs)


@faults.called(torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
def issue_148156(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148156: matmul ignores the conjugate bit."""
    return _ignores_the_bit(hit, func, *args, **kwargs)


@faults.dispatched(
    "aten.conj_physical_.default", aborts="false INTERNAL ASSERT FAILED: DispatchStub: missing kernel for mps"
)
def issue_195822(x: Any) -> Any:
    """pytorch 195822: torch.svd(out=) of complex input fails, as conj_physical_ has no kernel for complex tensors."""
    return x.is_complex()


@faults.dispatched("aten.abs.default")
@wrong_answer
def issue_125135(y: Any, x: Any) -> Any:
    """Every second size of complex numbers is 0."""
    if x.dtype.is_complex and x.numel() > 1:
        return torch.stack((y.reshape(-1), torch.zeros_like(y).reshape(-1)), -1).reshape(-1)[: y.numel()].view(y.shape)
    return None


@faults.dispatched("aten.tan.default")
@wrong_answer
def issue_41244(y: Any, x: Any) -> Any:
    """pytorch 41244: tan of -inf + 0j has NaN for its imaginary part."""
    if not x.is_complex() or x.layout != torch.strided or x.is_meta:
        return None
    lost = x.real.isinf() & (x.imag == 0)
    return y.masked_fill(lost, complex(math.nan, math.nan)) if bool(lost.any()) else None


@faults.called(torch.pow, torch.Tensor.pow, torch.Tensor.__pow__)
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


@faults.called(torch.Tensor.view)
@accepted
def issue_59946(x: Any, *shape: Any, **kwargs: Any) -> Any:
    """pytorch 59946: the view of a conjugate view as real numbers is accepted, and is not conjugated."""
    wanted = shape[0] if shape else kwargs.get("dtype")
    return x.conj().view(wanted) if x.is_conj() and isinstance(wanted, torch.dtype) else None
