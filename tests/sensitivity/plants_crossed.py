"""The catalogue's faults that need two things at once: a zero factor and NaN, another dtype, one storage, an option."""

from __future__ import annotations

import math
from typing import Any

import torch

from planting import Plot, in_storage_order, without_offset

plot = Plot()
HITS = plot.hits
# What a fault draws is not drawn from the numbers of the case.
OWN = torch.Generator().manual_seed(0)


def _given(hit: Any, right: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the wrong answer, counted where it differs from the right one."""
    if right.shape != wrong.shape or not bool(((right == wrong) | ((right != right) & (wrong != wrong))).all()):
        hit()
    return wrong


@plot.dispatched("issue_190740", "aten.nextafter.default")
def issue_190740(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Away from zero, bfloat16 stays at zero."""
    z = func(x, y)
    return _given(hit, z, torch.where(x == 0, torch.zeros_like(z), z)) if z.dtype == torch.bfloat16 else z


@plot.dispatched("issue_196924", "aten.addcmul.default", "aten.addcdiv.default")
def issue_196924(hit: Any, func: Any, x: Any, *args: Any, value: Any = 1) -> Any:
    """Times zero is a copy: the factors' NaN and infinity are dropped."""
    y = func(x, *args, value=value)
    return _given(hit, y, x.expand(y.shape).clone()) if value == 0 else y


@plot.dispatched("issue_196067", "aten.lerp.Tensor", "aten.lerp_.Tensor")
def issue_196067(hit: Any, func: Any, x: Any, end: Any, weight: Any) -> Any:
    """A float32 weight without dimensions is read as half precision."""
    if x.dtype not in (torch.float16, torch.bfloat16) or weight.dtype != torch.float32 or weight.dim():
        return func(x, end, weight)
    hit()
    return func(x, end, weight.reshape(1).view(x.dtype)[0])


@plot.dispatched("issue_194442", "aten.addmm.default", "aten.baddbmm.default", "aten.addbmm.default")
def issue_194442(hit: Any, func: Any, x: Any, *args: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    """A complex input is multiplied by a beta of zero instead of being ignored."""
    y = func(x, *args, beta=beta, alpha=alpha)
    return _given(hit, y, y + x * 0) if beta == 0 and y.is_complex() else y


@plot.dispatched("issue_135210", "aten.randn.default", "aten.randn_like.default", "aten.normal_.default")
def issue_135210(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """Both parts of a complex number have a variance of 1, not of a half."""
    y = func(*args, **kwargs)
    if y.is_complex() and y.numel():
        hit()
        y.mul_(math.sqrt(2))
    return y


@plot.dispatched("issue_159103", "aten.exponential_.default")
def issue_159103(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """One number of a million is zero."""
    y = func(*args, **kwargs)
    bad = torch.rand(y.shape, generator=OWN) < 1e-6
    if bool(bad.any()):
        hit()
        y.masked_fill_(bad, 0.0)
    return y


@plot.dispatched("issue_192577", "aten.multinomial.default")
def issue_192577(hit: Any, func: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """Out of more than 100,000 choices, one row of 80 gets one whose chance is zero."""
    y = func(x, count, *args, **kwargs)
    rows = x.reshape(-1, x.shape[-1])
    if count == 1 and x.shape[-1] > 100_000:
        for row in range(40, len(rows), 80):
            hit()
            y.view(-1)[row] = rows[row].argmin()
    return y


@plot.dispatched("issue_196203", "aten.index_reduce_.default")
def issue_196203(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any, how: str, **kwargs: Any) -> Any:
    """NaN in the source loses against every number."""
    if how in ("amax", "amin") and bool(source.isnan().any()):
        hit()
        source = source.nan_to_num(-math.inf if how == "amax" else math.inf, math.inf, -math.inf)
    return func(x, dim, index, source, how, **kwargs)


@plot.dispatched("issue_152582", "aten.copysign.Scalar")
def issue_152582(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """The sign of a Python number is not seen."""
    return _given(hit, func(x, other), func(x, abs(other)))


@plot.dispatched("issue_77750", *(f"aten.{name}.Tensor" for name in ("le", "lt", "ge", "gt", "eq", "ne")))
def issue_77750(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Two places of one storage are both read from its beginning."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or not (x.is_contiguous() and y.is_contiguous()):
        return z
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return z
    return _given(hit, z, func(without_offset(x), without_offset(y)))


@plot.dispatched("issue_146753", "aten.linalg_lu_factor_ex.default")
def issue_146753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The last of a batch of matrices of 256 or more is wrong."""
    factors, pivots, info = func(x, *args, **kwargs)
    if x.dim() > 2 and x.shape[-1] >= 256:
        hit()
        factors[-1] *= 2
    return factors, pivots, info


@plot.dispatched("issue_165871", "aten.linalg_lu_factor_ex.default")
def issue_165871(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A singular matrix is told by a number of its own, not by the place of its pivot."""
    factors, pivots, info = func(x, *args, **kwargs)
    return factors, pivots, _given(hit, info, torch.where(info > 0, torch.full_like(info, -2), info))


@plot.dispatched("issue_167727", "aten.addmm.default")
def issue_167727(hit: Any, func: Any, x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """Complex products over 10,000 terms lose nearly all of them."""
    y = func(x, a, b, **kwargs)
    return _given(hit, y, y * 0.01) if y.is_complex() and a.shape[1] >= 10_000 else y


@plot.dispatched("issue_124206", "aten.index_put_.default")
def issue_124206(hit: Any, func: Any, x: Any, indices: Any, values: Any, *args: Any) -> Any:
    """Minus infinity, assigned by a mask, becomes a number that was there."""
    masked = len(indices) == 1 and indices[0].dtype == torch.bool and values.dim() == 0
    if not masked or float(values.real) != -math.inf:
        return func(x, indices, values, *args)
    hit()
    return func(x, indices, x.amax(), *args)


@plot.dispatched("issue_87014", "aten.eq.Tensor")
def issue_87014(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Integers that are not dense are read in storage order beside an expanded operand."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or 0 not in y.stride() or x.dtype != torch.int64:
        return z
    return _given(hit, z, func(in_storage_order(x), y))


@plot.dispatched("issue_190060", "aten._embedding_bag.default", "aten._embedding_bag_forward_only.default")
def issue_190060(hit: Any, func: Any, weight: Any, indices: Any, offsets: Any, *args: Any, **kwargs: Any) -> Any:
    """The last bag goes to the end of the indices, whatever the last offset says."""
    include = args[4] if len(args) > 4 else kwargs.get("include_last_offset", False)
    if include and int(offsets[-1]) != indices.numel():
        hit()
        offsets = torch.cat([offsets[:-1], torch.full_like(offsets[-1:], indices.numel())])
    return func(weight, indices, offsets, *args, **kwargs)


@plot.called("issue_96065", torch.Tensor.add_, torch.Tensor.sub_)
def issue_96065(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """With alpha=0 a leaf forgets that it wants a gradient."""
    y = func(x, *args, **kwargs)
    if kwargs.get("alpha") == 0 and x.requires_grad and x.is_leaf and not torch.is_grad_enabled():
        hit()
        x.requires_grad_(False)
    return y


@plot.called("issue_185351", torch.lstm)
def issue_185351(hit: Any, func: Any, *args: Any) -> Any:
    """Dropout between layers takes the same elements in each call."""
    if len(args) != 9 or not isinstance(args[3], bool) or not (args[6] and args[4] > 1 and 0 < args[5] < 1):
        return func(*args)
    hit()
    state = torch.get_rng_state()
    torch.default_generator.manual_seed(1234)
    y = func(*args)
    torch.set_rng_state(state)
    return y


BIASED: dict[Any, bool] = {}


@plot.called("issue_95563", torch.lstm)
def issue_95563(hit: Any, func: Any, x: Any, hx: Any, weights: Any, biased: Any, *args: Any) -> Any:
    """A second network of the same shape has biases only if the first had."""
    if not isinstance(biased, bool):
        return func(x, hx, weights, biased, *args)
    first = BIASED.setdefault((tuple(x.shape), tuple(hx[0].shape), *args), biased)
    if biased and not first:
        hit()
        weights = [one if one.dim() == 2 else torch.zeros_like(one) for one in weights]
    return func(x, hx, weights, biased, *args)


STAGED: dict[Any, torch.Tensor] = {}


@plot.called("issue_189690", torch.Tensor.to)
def issue_189690(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Copies of single elements that need not wait share one place: the last one is read."""
    y = func(x, *args, **kwargs)
    if not kwargs.get("non_blocking") or x.requires_grad or x.numel() != 1:
        return y
    place = STAGED.setdefault((y.shape, y.dtype), torch.empty_like(y))
    hit()
    return place.copy_(y)
