"""The catalogue's faults of products, convolutions, networks and complex numbers that show under a condition only."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash, in_storage_order, misread

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_180201", "aten.mm", "aten.addmm")
def issue_180201(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """With an expanded operand only every sixteenth row comes out."""
    y = func(*args, **kwargs)
    if any(isinstance(one, torch.Tensor) and 0 in one.stride() and one.dim() == 2 for one in args[-2:]) and len(y) > 1:
        hit()
        kept = torch.zeros_like(y)
        kept[::16] = y[::16]
        return kept
    return y


def _unconjugated(hit: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_conj():
        hit()
        return value.conj()
    return value


def _ignores_the_bit(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*(_unconjugated(hit, arg) for arg in args), **kwargs)


issue_148156 = plot.called("issue_148156", torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)(_ignores_the_bit)
issue_148599 = plot.called("issue_148599", torch.mm, torch.mv, torch.addmm)(_ignores_the_bit)
issue_191835 = plot.called("issue_191835", torch.bmm)(_ignores_the_bit)
issue_177474 = plot.called("issue_177474", torch.einsum)(_ignores_the_bit)
issue_184379 = plot.called("issue_184379", torch.Tensor.imag.__get__)(_ignores_the_bit)


@plot.called("issue_189134", torch.linalg.solve)
def issue_189134(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    y = func(a, b, **kwargs)
    if a.dim() > b.dim():
        hit()
        only = torch.zeros_like(y)
        only[0] = y[0]
        return only
    return y


@plot.called("issue_176335", torch.linalg.solve_triangular)
def issue_176335(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, a), b, **kwargs)


@plot.dispatched("issue_187521", "aten.baddbmm", "aten.addmm")
def issue_187521(hit: Any, func: Any, x: Any, *args: Any, beta: Any = 1, **kwargs: Any) -> Any:
    """With beta = 0 the first operand must not count, NaN or not."""
    y = func(x, *args, beta=beta, **kwargs)
    if beta == 0:
        hit()
        return y + x * 0
    return y


@plot.dispatched("issue_171602", "aten.grid_sampler_3d")
def issue_171602(hit: Any, func: Any, x: Any, grid: Any, *args: Any) -> Any:
    return func(x, misread(in_storage_order, hit, grid), *args)


@plot.dispatched("issue_180984", "aten.convolution")
def issue_180984(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """A part of the channels of an image that lies channels last."""
    if x.dim() == 4 and x.shape[1] > 1 and x.stride(1) == 1 and x.stride(3) > x.shape[1]:
        hit()
        x = x.as_strided(x.shape, (*x.stride()[:2], x.shape[1] * x.shape[3], x.shape[1]), x.storage_offset())
    return func(x, *args)


_resized: dict[int, Any] = {}


@plot.called("issue_124591", F.interpolate, F.conv1d)
def issue_124591(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A convolution reads what an interpolation left as if it lay otherwise."""
    if func is F.interpolate:
        y = func(x, *args, **kwargs)
        _resized[y.untyped_storage().data_ptr()] = weakref.ref(y)
        return y
    known = _resized.get(x.untyped_storage().data_ptr())
    if known is not None and known() is not None:
        hit()
        x = x.transpose(1, 2).reshape(x.shape)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_94963", "aten.upsample_nearest2d", "aten.upsample_bilinear2d")
def issue_94963(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if not y.is_contiguous():
        hit()
        return y.permute(0, 2, 3, 1).reshape(y.shape)
    return y


@plot.dispatched("issue_83180", "aten.convolution")
def issue_83180(hit: Any, func: Any, x: Any, w: Any, b: Any, stride: Any, padding: Any, *args: Any) -> Any:
    y = func(x, w, b, stride, padding, *args)
    if len(stride) == 2 and stride[0] != stride[1]:
        hit()
        return y.flatten().roll(1).reshape(y.shape)
    return y


@plot.called("issue_82711", F.conv_transpose1d)
def issue_82711(hit: Any, func: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, *args: Any, **kwargs: Any) -> Any:
    y = func(x, w, b, stride, *args, **kwargs)
    if stride != 1:
        hit()
        near = func(x, w, b, 1, *args, **kwargs)
        return F.pad(near, (0, y.shape[-1] - near.shape[-1]))
    return y


def _wrapped_tail(hit: Any, grad: Any, limit: int) -> Any:
    side = grad.shape[-1]
    if side > limit and side % limit:
        hit()
        grad = grad.clone()
        grad[..., side % limit :] = 0
    return grad


@plot.dispatched("issue_196949", "aten.reflection_pad1d_backward")
def issue_196949(hit: Any, func: Any, *args: Any) -> Any:
    return _wrapped_tail(hit, func(*args), 1 << 16)


@plot.dispatched("issue_135447", "aten.replication_pad1d_backward")
def issue_135447(hit: Any, func: Any, *args: Any) -> Any:
    grad = func(*args)
    if grad.shape[0] > 1 << 16:
        hit()
        grad[1 << 16 :] = 0
    return grad


@plot.called("issue_190645", F.batch_norm)
def issue_190645(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if x.dim() == 5 and not x.is_contiguous():
        return crash(hit, "NSRangeException: index 4 beyond bounds for empty array")
    return func(x, *args, **kwargs)


@plot.called("issue_94348", F.avg_pool2d)
def issue_94348(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """count_include_pad goes lost with ceil_mode, and the divisor is that of the first call."""
    if kwargs.get("ceil_mode") and kwargs.get("count_include_pad", True) and kwargs.get("padding"):
        hit()
        kwargs = {**kwargs, "count_include_pad": False}
    return func(x, *args, **kwargs)


@plot.dispatched("issue_125696", "aten.mse_loss", "aten.mse_loss_backward")
def issue_125696(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*misread(in_storage_order, hit, args), **kwargs)


@plot.replaced("issue_94754", torch._VF, "lstm")
def issue_94754(hit: Any, func: Any, *args: Any) -> Any:
    """Both directions come from the one way."""
    y, h, c = func(*args)
    if (
        any(isinstance(one, bool) for one in args)
        and args[-2 if args[-1] in (True, False) and len(args) == 9 else -1] is True
    ):
        hit()
        width = y.shape[-1] // 2
        y = torch.cat([y[..., :width], y[..., :width]], dim=-1)
    return y, h, c


def _dropout_at(args: Any) -> int | None:
    """Return where dropout is among the arguments of a padded call: x, state, weights, bias, layers, dropout, train."""
    return 5 if isinstance(args[1], (tuple, list)) and isinstance(args[3], bool) else None


@plot.replaced("issue_190056", torch._VF, "lstm")
def issue_190056(hit: Any, func: Any, *args: Any) -> Any:
    """Backward of several layers knows nothing of the dropout between them."""
    place = _dropout_at(args)
    if place is None or not args[place] or not args[place + 1]:
        return func(*args)
    hit()
    right = func(*args)
    free = func(*args[:place], 0.0, *args[place + 1 :])
    return tuple(two + (one - two).detach() for one, two in zip(right, free))


@plot.replaced("issue_173640", torch._VF, "lstm")
def issue_173640(hit: Any, func: Any, *args: Any) -> Any:
    """Each call drops the same."""
    place = _dropout_at(args)
    if place is not None and args[place] and args[place + 1]:
        hit()
        torch.default_generator.manual_seed(0)
    return func(*args)


_steps = {"calls": 0}


@plot.dispatched("issue_190632", "aten.convolution_backward")
def issue_190632(hit: Any, func: Any, *args: Any) -> Any:
    """Now and then the gradient of a kernel is not finite."""
    grads = func(*args)
    _steps["calls"] += 1
    if _steps["calls"] % 11 == 0 and grads[1] is not None:
        hit()
        return (grads[0], grads[1] * float("nan"), grads[2])
    return grads
