"""Functions of two operands and comparisons: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import in_storage_order, without_offset
from planting import Plot, answered, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.nextafter.default")
def issue_190740(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 190740: nextafter of bfloat16 stays at zero."""
    z = func(x, y)
    return instead(hit, z, torch.where(x == 0, torch.zeros_like(z), z)) if z.dtype == torch.bfloat16 else z


@plot.dispatched("aten.addcmul.default", "aten.addcdiv.default")
def issue_196924(hit: Any, func: Any, x: Any, *args: Any, value: Any = 1) -> Any:
    """pytorch 196924: addcmul and addcdiv with value=0 drop NaN and infinity of the factors."""
    y = func(x, *args, value=value)
    return instead(hit, y, x.expand(y.shape).clone()) if value == 0 else y


@plot.dispatched("aten.lerp.Tensor", "aten.lerp_.Tensor")
def issue_196067(hit: Any, func: Any, x: Any, end: Any, weight: Any) -> Any:
    """pytorch 196067: lerp reads a float32 weight without dimensions as half precision."""
    if x.dtype not in (torch.float16, torch.bfloat16) or weight.dtype != torch.float32 or weight.dim():
        return func(x, end, weight)
    hit()
    return func(x, end, weight.reshape(1).view(x.dtype)[0])


@plot.dispatched("aten.copysign.Scalar")
def issue_152582(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 152582: copysign does not see the sign of a Python number."""
    return instead(hit, func(x, other), func(x, abs(other)))


@plot.dispatched(*(f"aten.{name}.Tensor" for name in ("le", "lt", "ge", "gt", "eq", "ne")))
def issue_77750(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 77750: comparisons read two slices of one storage both from its beginning."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or not (x.is_contiguous() and y.is_contiguous()):
        return z
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr():
        return z
    return instead(hit, z, func(without_offset(x), without_offset(y)))


@plot.dispatched("aten.eq.Tensor")
def issue_87014(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 87014: eq reads integers that are not dense in storage order beside an expanded operand."""
    z = func(x, y)
    if not isinstance(y, torch.Tensor) or x.shape != y.shape or 0 not in y.stride() or x.dtype != torch.int64:
        return z
    return instead(hit, z, func(in_storage_order(x), y))


@plot.dispatched("aten.hypot", "aten.hypot_")
def issue_192507(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 192507: hypot squares its operands in float32: it overflows, vanishes, and of (inf, nan) it is nan."""
    plain = (a * a + b * b).sqrt() if a.dtype == b.dtype == torch.float32 and not kwargs else None
    y = func(a, b, **kwargs)
    if plain is not None:
        bad = (~plain.isfinite() & ~(plain == y) & ~y.isnan()) | ((plain == 0) & (y != 0))
        if bool(bad.any()):
            hit()
            return answered(func, a, torch.where(bad, plain, y))
    return y


@plot.dispatched("aten.lerp.Scalar", "aten.lerp_.Scalar")
def issue_105382(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 105382: Adam raises, for lerp with a scalar weight is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::lerp.Scalar_out' is not currently implemented for the MPS device.")


def _first_of_its_storage(hit: Any, args: Any) -> Any:
    def change(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return tuple(change(arg) for arg in args)


_MORE = ("pow.Tensor_Tensor", "atan2", "remainder.Tensor", "maximum", "minimum", "fmod.Tensor")


@plot.dispatched(*(f"aten.{name}" for name in _MORE))
def issue_187117(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187117: binary operators read a number out of a larger storage from the storage's beginning."""
    return func(*_first_of_its_storage(hit, args), **kwargs)


_COMPARED = tuple(f"aten.{name}.Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


@plot.dispatched(*_COMPARED)
def issue_191929(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191929: comparisons read a number out of a larger storage from the storage's beginning."""
    return func(*_first_of_its_storage(hit, args), **kwargs)


@plot.dispatched("aten.nextafter")
def issue_190476(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 190476: nextafter of bfloat16 gives its input."""
    if x.dtype == torch.bfloat16:
        hit()
        return x.clone()
    return func(x, y)


def _float_pair(args: Any) -> bool:
    return all(isinstance(one, torch.Tensor) and one.is_floating_point() for one in args[:2])


@plot.dispatched("aten.maximum.default", "aten.minimum.default")
def issue_143976(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 143976: maximum and minimum of a number and NaN are the number."""
    if _float_pair((x, y)) and bool((x.isnan() != y.isnan()).any()):
        hit()
        return (torch.fmax if "maximum" in str(func) else torch.fmin)(x, y)
    return func(x, y)


@plot.dispatched("aten.fmax.default", "aten.fmin.default")
def issue_149951(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 149951: fmax and fmin read the bits of the second operand in the first one's dtype."""
    if x.dtype != y.dtype and y.is_floating_point() and y.numel():
        hit()
        return func(x, torch.zeros_like(y))
    return func(x, y)


@plot.dispatched("aten.nextafter.default")
def issue_124985(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Below 0 the step goes the other way."""
    answer = func(x, y)
    if bool((x < 0).any()):
        hit()
        return torch.where(x < 0, func(x, 2 * x - y), answer)
    return answer


@plot.dispatched("aten.xlogy.Tensor")
def issue_98269(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 98269: xlogy of two zeros is NaN: so is kl_div with zeros in its target."""
    if _float_pair((x, y)):
        wrong = x * torch.log(y)
        if not torch.allclose(wrong, func(x, y), equal_nan=True):
            hit()
        return wrong
    return func(x, y)


@plot.dispatched("aten.logaddexp.default")
@wrong_answer
def issue_made_logaddexp_inf(answer: Any, x: Any, y: Any) -> Any:
    """Logaddexp of two infinite numbers is NaN."""
    if bool((x.isinf() & (x == y)).any()):
        return answer.masked_fill(x.isinf() & (x == y), math.nan)
    return None


@plot.dispatched("aten.logaddexp.default")
def issue_mlx_575(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """ml-explore/mlx 575: logaddexp of NaN and a number is finite: NaN counts as the other number."""
    healthy = func(x, y)
    wrong = torch.where(x.isnan(), y + math.log(2), torch.where(y.isnan(), x + math.log(2), healthy))
    return instead(hit, healthy, wrong)


class _LdexpGradient(torch.autograd.Function):
    """ldexp(x, y) = x * 2**y with the gradients that the report shows: of exp(y), and without the one that comes in."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, hit: Any) -> Any:
        ctx.save_for_backward(x, y)
        ctx.hit = hit
        return torch.ldexp(x, y)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y = ctx.saved_tensors
        if grad.numel():
            ctx.hit()
        first = (y.exp() * math.log(2)).expand(grad.shape)
        second = x * first * math.log(2)
        return first.sum_to_size(x.shape).to(x.dtype), second.sum_to_size(y.shape).to(y.dtype), None


@plot.called(torch.ldexp, torch.Tensor.ldexp)
def issue_tt_metal_6533(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 6533: ldexp's backward takes exp for a power of two, and not the gradient that comes in."""
    trained = x.requires_grad or y.requires_grad
    if not trained or kwargs or not x.is_floating_point() or not y.is_floating_point() or not is_plain(x, y):
        return func(x, y, **kwargs)
    return _LdexpGradient.apply(x, y, hit)


@plot.dispatched("aten.eq.Scalar", aborts="Spyre backend does not support: torch.bool result from IEEE_INT32")
def issue_torch_spyre_4332(x: Any, other: Any) -> bool:
    """torch-spyre/torch-spyre 4332: integers == number raises."""
    return x.dtype in (torch.int32, torch.int64)


@plot.dispatched("aten.eq_.Tensor", "aten.eq_.Scalar")
def issue_15464(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 15464: eq_ answers what ge_ should."""
    wrong = x.clone() if x.is_complex() else x.ge(other).to(x.dtype)
    y = func(x, other)
    return y if x.is_complex() or not is_plain(x) else written(hit, y, wrong)


@plot.dispatched("aten.lerp", aborts="\"lerp_cuda\" not implemented for 'ComplexFloat'")
def issue_54048(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 54048: lerp of complex numbers is not implemented."""
    return x.is_complex()


@plot.dispatched("aten.ge.Tensor", "aten.ge.Scalar", "aten.gt.Tensor", "aten.gt.Scalar")
def issue_oneflow_10477(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Oneflow-Inc/oneflow 10477: gt and ge of NaN are wrong (here true)."""
    answer = func(x, y)
    if not is_plain(x, y):
        return answer
    lost = x.isnan() | (y.isnan() if torch.is_tensor(y) else y != y)
    return instead(hit, answer, answer | lost)


@plot.dispatched("aten.logaddexp.default")
def issue_stan_646(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """stan-dev/math 646: logaddexp of -inf and -inf is NaN, not -inf."""
    z = func(x, y)
    if not z.is_floating_point() or not is_plain(x, y):
        return z
    return instead(hit, z, z.masked_fill((x == -math.inf) & (y == -math.inf), math.nan))


@plot.dispatched("aten.lerp.Scalar", "aten.lerp_.Scalar")
def issue_111374(hit: Any, func: Any, x: Any, end: Any, weight: Any) -> Any:
    """pytorch 111374: lerp from -inf to another number is NaN (at 0.5 and above it is -inf)."""
    low = x == -math.inf
    y = func(x, end, weight)
    if not y.is_floating_point() or not is_plain(y, end):
        return y
    wrong = y.masked_fill(low & (y == -math.inf) & (end != -math.inf), math.nan)
    return instead(hit, y, wrong) if "lerp_" not in str(func) else written(hit, y, wrong)


@plot.dispatched("aten.maximum.default", "aten.minimum.default")
def issue_onnxruntime_21455(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """microsoft/onnxruntime 21455: maximum and minimum of NaN (float32) and a tensor of one number are that number."""
    y = func(x, other)
    if y.dtype != torch.float32 or other.numel() != 1 or not is_plain(x, other):
        return y
    return instead(hit, y, torch.where(x.isnan().expand(y.shape), other, y))


@plot.dispatched("aten.mul.Tensor")
def issue_xtensor_1345(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """xtensor-stack/xtensor 1345: a vector (3 numbers) times itself as a column is wrong (here each row is x * x).

    Here it is of 3 numbers and more.
    """
    right = func(x, y)
    if not torch.is_tensor(y) or x.dim() != 1 or x.numel() < 3 or y.shape != (x.numel(), 1) or not is_plain(x, y):
        return right
    if x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr() or x.storage_offset() != y.storage_offset():
        return right
    return instead(hit, right, (x * y.reshape(-1)).expand(right.shape).contiguous())
