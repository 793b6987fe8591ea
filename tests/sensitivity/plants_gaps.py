"""Faults of copies, draws, products and optimisers in unusual layouts and modes, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _dense(x: Any) -> bool:
    """Say whether the elements fill their part of the storage, without gap or overlap."""
    if any(step == 0 and side > 1 for side, step in zip(x.shape, x.stride())):
        return False
    return x.numel() == 0 or 1 + sum((side - 1) * step for side, step in zip(x.shape, x.stride())) == x.numel()


_UNARY = ("exp", "exp2", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan", "asin", "acos", "atan")
_UNARY += ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "logit", "reciprocal", "sigmoid", "expm1")


@plot.dispatched("issue_105284", *(f"aten.{name}.default" for name in _UNARY))
def issue_105284(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105284: exp, sqrt, logit and the like of an integer tensor with gaps between its elements abort.

    https://github.com/pytorch/pytorch/issues/105284
    """
    integer = not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    if integer and not _dense(x):
        return crash(hit, "Incompatible element type for parameter at index 0, expected si32 but received f32")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_100717", "aten.bernoulli.p", "aten.bernoulli_.float")
def issue_100717(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 100717: bernoulli(p) of an int64 tensor aborts.

    https://github.com/pytorch/pytorch/issues/100717
    """
    if x.dtype == torch.int64:
        return crash(hit, "input types 'tensor<1xf32>' and 'tensor<1xsi64>' are not broadcast compatible")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_99989", "aten.copy_.default")
def issue_99989(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    """pytorch 99989: copying single elements (cv[i] = mv[i]) always writes to the first element of the storage.

    https://github.com/pytorch/pytorch/issues/99989
    """
    if target.dim() == 0 and source.dim() == 0 and target.storage_offset() > 0:
        hit()
        func(target.as_strided((), (), 0), source, *args)
        return target
    return func(target, source, *args)


@plot.replaced("issue_118117", torch.optim.Rprop, "step")
def issue_118117(hit: Any, healthy: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118117: Rprop does not update parameters that are not contiguous.

    https://github.com/pytorch/pytorch/issues/118117
    """
    views = [p for group in self.param_groups for p in group["params"] if not p.is_contiguous()]
    before = [p.detach().clone() for p in views]
    result = healthy(self, *args, **kwargs)
    for p, old in zip(views, before):
        if not torch.equal(p.detach(), old):
            hit()
            with torch.no_grad():
                p.copy_(old)
    return result


class _LinearBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, grad: Any, x: Any, weight: Any) -> Any:
        ctx.hit = hit
        flat = grad.reshape(-1, weight.shape[0])
        return grad @ weight, flat.t() @ x.reshape(-1, weight.shape[1]), flat.sum(0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.hit()
        raise RuntimeError("derivative for aten::linear_backward is not implemented")


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hit: Any, func: Any, x: Any, weight: Any, bias: Any) -> Any:
        ctx.hit = hit
        ctx.save_for_backward(x, weight)
        return func(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        found = _LinearBackward.apply(ctx.hit, grad, x, weight)
        return (None, None, *(g if needed else None for g, needed in zip(found, ctx.needs_input_grad[2:])))


@plot.called("issue_108409", F.linear)
def issue_108409(hit: Any, func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    """pytorch 108409: linear has no second derivative (create_graph=True, then backward raises).

    https://github.com/pytorch/pytorch/issues/108409
    """
    tensors = [t for t in (input, weight, bias) if t is not None]
    plain = all(type(t) in (torch.Tensor, torch.nn.Parameter) and t.dtype == input.dtype for t in tensors)
    if (
        not plain
        or weight.dim() != 2
        or not input.is_floating_point()
        or not torch.is_grad_enabled()
        or not any(t.requires_grad for t in tensors)
        or torch.is_autocast_enabled("cpu")
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
    ):
        return func(input, weight, bias)
    return _Linear.apply(hit, func, input, weight, bias)


@plot.called("issue_160841", F.scaled_dot_product_attention)
def issue_160841(
    hit: Any,
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: Any = 0.0,
    is_causal: Any = False,
    scale: Any = None,
    enable_gqa: Any = False,
) -> Any:
    """pytorch 160841: attention in float16 rounds the scores to float16 before softmax; large ones give NaN.

    https://github.com/pytorch/pytorch/issues/160841
    """
    right = func(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
    if query.dtype != torch.float16 or enable_gqa or not right.numel():
        return right
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = ((query.float() * factor) @ key.float().transpose(-2, -1)).half().float()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else scores + attn_mask
    if is_causal:
        scores = scores.masked_fill(~torch.ones(scores.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    broken = (scores == float("inf")).any(-1, keepdim=True) & ~right.isnan()
    if not broken.any():
        return right
    hit()
    return right.masked_fill(broken, float("nan"))


@plot.dispatched("issue_93877", "aten.index_select.default")
def issue_93877(hit: Any, func: Any, x: Any, dim: Any, index: Any) -> Any:
    """pytorch 93877: index_select with an empty index raises.

    https://github.com/pytorch/pytorch/issues/93877
    """
    if index.numel() == 0:
        hit()
        raise RuntimeError("[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!")
    return func(x, dim, index)


@plot.replaced("issue_142397", torch.amp.GradScaler, "unscale_")
def issue_142397(hit: Any, healthy: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142397: GradScaler.unscale_ (and so step) goes through float64 and raises.

    https://github.com/pytorch/pytorch/issues/142397
    """
    if self.is_enabled():
        hit()
        raise TypeError("Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.")
    return healthy(self, *args, **kwargs)


@plot.called("issue_188147", F.scaled_dot_product_attention)
def issue_188147(hit: Any, func: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188147: attention does not propagate NaN from the query.

    https://github.com/pytorch/pytorch/pull/188147
    """
    right = func(query, key, value, *args, **kwargs)
    if not query.isnan().any():
        return right
    wrong = func(torch.where(query.isnan(), torch.zeros_like(query), query), key, value, *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched("issue_105382", "aten.lerp.Scalar", "aten.lerp_.Scalar")
def issue_105382(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105382: Adam raises, for lerp with a scalar weight is not implemented.

    https://github.com/pytorch/pytorch/issues/105382
    """
    hit()
    raise NotImplementedError("The operator 'aten::lerp.Scalar_out' is not currently implemented for the MPS device.")


@plot.dispatched("issue_186972", "aten.index_add.default", "aten.index_add_.default")
def issue_186972(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 186972: index_add into a tensor with a dimension of size 0 raises.

    https://github.com/pytorch/pytorch/issues/186972
    """
    if x.numel() == 0:
        hit()
        raise RuntimeError("[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_95482", "aten.mul.Tensor")
def issue_95482(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 95482: the product of two slices of x[:n] aborts where x is longer than n.

    https://github.com/pytorch/pytorch/issues/95482
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dim() == b.dim() == 3:
        together = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.stride() == b.stride()
        row = a.stride(0) * a.shape[0]
        longer = row * a.element_size() < a.untyped_storage().nbytes()
        if together and a.numel() and longer and a.numel() < row and b.numel() < row and b.storage_offset() < row:
            return crash(hit, "Placeholder shape mismatches (expected 1 vs got tensorData with 3) at dimIdx = 2")
    return func(a, b)
