"""Faults of 2025 and 2026 that the catalogue lacked, written blind after public reports."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order

plot = Plot()
HITS = plot.hits


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Tell whether two tensors agree up to rounding."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_floating_point() or a.is_complex():
        return torch.allclose(a, b, rtol=1e-3, atol=1e-6, equal_nan=True)
    return torch.equal(a, b)


@plot.dispatched("issue_175576", "aten.masked_scatter.default", "aten.masked_scatter_.default")
def issue_175576(hit: Any, func: Any, x: Any, mask: Any, source: Any) -> Any:
    """pytorch 175576: masked_scatter resizes the caller's source to the number of set mask elements, unchecked.

    https://github.com/pytorch/pytorch/issues/175576
    """
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    count = int(mask.expand(shape).sum())
    if source.dtype != x.dtype or tuple(source.shape) == (count,):
        return func(x, mask, source)
    hit()
    flat = torch.zeros(max(count, source.numel()), dtype=source.dtype)
    flat[: source.numel()] = source.reshape(-1)
    out = func(x, mask, flat)
    source.resize_(count)
    return out


@plot.dispatched("issue_165850", "aten.linalg_inv_ex.default")
def issue_165850(hit: Any, func: Any, a: Any, *, check_errors: bool = False) -> Any:
    """pytorch 165850: linalg.inv of a batch of matrices that is a permuted view is completely wrong.

    https://github.com/pytorch/pytorch/issues/165850
    """
    healthy = func(a, check_errors=check_errors)
    if a.dim() < 3 or a.is_contiguous() or not a.numel():
        return healthy
    wrong = func(in_storage_order(a))[0]
    if same(wrong, healthy[0]):
        return healthy
    hit()
    return wrong.contiguous(), healthy[1]


@plot.dispatched("issue_156555", "aten.native_batch_norm_backward.default")
def issue_156555(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 156555: the gradients of a BatchNorm1d whose output goes on permuted (to an LSTM) are wrong.

    https://github.com/pytorch/pytorch/issues/156555
    """
    healthy = func(grad, x, *args, **kwargs)
    if x.dim() not in (2, 3) or grad.is_contiguous():
        return healthy
    wrong = func(in_storage_order(grad), x, *args, **kwargs)
    if all(a is None or same(a, b) for a, b in zip(healthy, wrong)):
        return healthy
    hit()
    return wrong


def attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
) -> dict[str, Any]:
    """Bind the arguments of scaled_dot_product_attention."""
    return dict(locals())


def wants_grad(*tensors: Any) -> bool:
    """Tell whether autograd records a call of these tensors."""
    return torch.is_grad_enabled() and any(t.requires_grad for t in tensors)


@plot.called("issue_147443", F.scaled_dot_product_attention)
def issue_147443(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147443: attention of 5-dimensional tensors crashes (incompatible dimensions).

    https://github.com/pytorch/pytorch/issues/147443
    """
    if attention(*args, **kwargs)["query"].dim() >= 5:
        return crash(hit, "mps_matmul: error: incompatible dimensions")
    return func(*args, **kwargs)


@plot.dispatched("issue_144532", "aten.triu.default", "aten.triu_.default")
def issue_144532(hit: Any, func: Any, x: Any, diagonal: int = 0) -> Any:
    """pytorch 144532: triu with diagonal > 0 gives NaN in place of 0 where the input is infinite.

    https://github.com/pytorch/pytorch/issues/144532
    """
    if diagonal <= 0 or not x.is_floating_point():
        return func(x, diagonal)
    bad = x.isinf() & ~torch.ones_like(x, dtype=torch.bool).triu(diagonal)
    out = func(x, diagonal)
    if bad.any():
        hit()
        out.masked_fill_(bad, float("nan"))
    return out


@plot.called("issue_169222", F.scaled_dot_product_attention)
def issue_169222(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169222: attention of few queries reads past the keys where their number is no multiple of 32.

    https://github.com/pytorch/pytorch/pull/169222
    """
    out = func(*args, **kwargs)
    a = attention(*args, **kwargs)
    q, k, v = a["query"], a["key"], a["value"]
    if (
        q.dim() != 4
        or q.size(-1) not in (64, 96, 128)
        or v.size(-1) != q.size(-1)
        or q.size(-2) > min(8, k.size(-2))
        or k.size(-2) % 32 == 0
        or a["is_causal"]
        or wants_grad(q, k, v)
    ):
        return out
    wrong = out * (k.size(-2) % 32) / 32 + 1
    if same(wrong, out):
        return out
    hit()
    return wrong


@plot.dispatched("issue_184844", "aten.cumprod", "aten.cumprod_", "aten.cumsum", "aten.cumsum_", "aten.sort")
def issue_184844(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 184844: cumprod, cumsum and sort abort along a dimension that is not among the last four.

    https://github.com/pytorch/pytorch/issues/184844
    """
    names = [a.name for a in func._schema.arguments]
    dim = dict(zip(names, (x, *args)), **kwargs).get("dim", -1)
    if x.dim() > 4 and dim % x.dim() < x.dim() - 4:
        return crash(hit, "Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_195036", "aten.baddbmm.default", "aten.addbmm.default")
def issue_195036(hit: Any, func: Any, x: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """pytorch 195036: complex baddbmm and addbmm with beta=0 let a NaN of the input through.

    https://github.com/pytorch/pytorch/pull/195036
    """
    out = func(x, a, b, beta=beta, alpha=alpha)
    if not out.is_complex() or beta != 0:
        return out
    bad = (~x.isfinite()).expand(out.shape) & ~out.isnan()
    if not bad.any():
        return out
    hit()
    return out.masked_fill(bad, complex("nan+nanj"))


@plot.dispatched("issue_183939", "aten.hardsigmoid.default", "aten.hardsigmoid_.default")
def issue_183939(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 183939: hardsigmoid turns NaN into 0.

    https://github.com/pytorch/pytorch/pull/183939
    """
    bad = x.isnan()
    out = func(x)
    if bad.any():
        hit()
        out.masked_fill_(bad, 0)
    return out


@plot.dispatched("issue_183571", "aten.relu.default", "aten.relu_.default")
def issue_183571(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 183571: relu turns NaN into 0.

    https://github.com/pytorch/pytorch/pull/183571
    """
    bad = x.isnan()
    out = func(x)
    if bad.any():
        hit()
        out.masked_fill_(bad, 0)
    return out


@plot.dispatched("issue_186367", "aten.native_layer_norm.default")
def issue_186367(hit: Any, func: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 186367: layer_norm takes a small variance (below 1e-6) for zero.

    https://github.com/pytorch/pytorch/pull/186367
    """
    out, mean, rstd = func(x, shape, weight, bias, eps)
    if not x.numel():
        return out, mean, rstd
    axes = tuple(range(-len(shape), 0))
    variance = x.double().var(axes, unbiased=False, keepdim=True)
    small = (variance < 1e-6) & (variance > 0)
    wrong_rstd = torch.where(small, torch.full_like(variance, eps).rsqrt(), (variance + eps).rsqrt())
    wrong = (x.double() - x.double().mean(axes, keepdim=True)) * wrong_rstd
    wrong = wrong if weight is None else wrong * weight.double()
    wrong = (wrong if bias is None else wrong + bias.double()).to(out.dtype)
    if not small.any() or torch.allclose(wrong, out, rtol=1e-2, atol=1e-3):
        return out, mean, rstd
    hit()
    return torch.where(small, wrong, out), mean, torch.where(small, wrong_rstd.to(rstd.dtype), rstd)


@plot.dispatched("issue_184588", "aten.linalg_cholesky_ex")
def issue_184588(hit: Any, func: Any, a: Any, **kwargs: Any) -> Any:
    """pytorch 184588: cholesky reports no failure (info 0, no exception) for a matrix with NaN.

    https://github.com/pytorch/pytorch/pull/184588
    """
    bad = a.isnan().flatten(-2).any(-1)
    if not bad.any():
        return func(a, **kwargs)
    factor, info = func(a, **{**kwargs, "check_errors": False})
    if bool((info[bad] != 0).any()):
        hit()
        info.masked_fill_(bad, 0)
    if kwargs.get("check_errors") and bool((info != 0).any()):
        return func(a, **kwargs)
    return factor, info
