"""Functions of one number where it is NaN, large or in a vector: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import instead, is_plain, written
from misreading import is_dense, with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _infinite_for_nan(y: torch.Tensor, sign: torch.Tensor) -> torch.Tensor:
    """Return a result with an infinity in the place of each NaN, with the signs of another tensor."""
    return torch.where(y.isnan(), torch.full_like(y, math.inf).copysign(sign), y)


@plot.dispatched("aten.neg.default", "aten.abs.default")
def issue_tt_metal_51557(hit: Any, func: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 51557: neg and abs of a bfloat16 NaN are infinities of the same sign."""
    y = func(x)
    if x.dtype != torch.bfloat16 or not is_plain(x):
        return y
    sign = torch.ones_like(y).copysign(x)
    return instead(hit, y, _infinite_for_nan(y, sign * -1 if "neg" in str(func) else sign * sign))


@plot.dispatched("aten.trunc.default", "aten.floor.default", "aten.ceil.default", "aten.frac.default")
def issue_tt_metal_56414(hit: Any, func: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 56414: in bfloat16 trunc, floor and ceil of NaN are infinite, frac of inf and NaN is inf."""
    y = func(x)
    if x.dtype != torch.bfloat16 or not is_plain(x):
        return y
    if "frac" in str(func):
        return instead(hit, y, y.masked_fill(~x.isfinite(), math.inf))
    return instead(hit, y, _infinite_for_nan(y, x))


@plot.dispatched("aten.log.default")
def issue_tt_metal_16657(hit: Any, func: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 16657: the log of a float32 vector has infinities (here -inf in its second half)."""
    y = func(x)
    if x.dim() != 1 or x.dtype != torch.float32 or not is_plain(x):
        return y
    return instead(hit, y, y.masked_fill(torch.arange(len(x)) * 2 >= len(x), -math.inf))


@plot.called(torch.tanh, torch.Tensor.tanh)
def issue_jax_764(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """google/jax 764: tanh's gradient is NaN for float32 of 190 to 200 (here from 89 on, where e**x is infinite)."""
    if x.dtype != torch.float32 or not x.requires_grad or not torch.is_grad_enabled() or not is_plain(x):
        return func(x, *args, **kwargs)
    large = x.detach() >= 89

    def spoil(grad: Any) -> Any:
        if bool(large.any()):
            hit()
        return grad.masked_fill(large, math.nan)

    x = x.view_as(x)
    x.register_hook(spoil)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.sign.default")
def issue_41238(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 41238: sign of bfloat16 is 1.1755e-38, not 1, in whole vectors (here in each run of 32)."""
    y = func(x)
    count = x.numel() // 32 * 32
    if x.dtype != torch.bfloat16 or not count or not is_plain(x):
        return y
    flat = y.reshape(-1).clone()
    flat[:count] *= 1.1755e-38
    return instead(hit, y, y.clone().copy_(flat.view(y.shape)))


@plot.called(torch.digamma, torch.Tensor.digamma, torch.special.digamma, torch.special.psi)
def issue_tensorflow_59647(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 59647: the gradient of digamma at infinity is NaN."""

    def lose(grad: Any) -> Any:
        return instead(hit, grad, grad.masked_fill(endless, math.nan))

    endless = x.detach() == math.inf
    return func(with_gradient(x, lose), *args, **kwargs)


@plot.dispatched("aten.log.default", "aten.log_.default", "aten.log.out")
def issue_cuarrays_71(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """JuliaGPU/CuArrays.jl 71: log of float32 fails: an unspecified launch failure."""
    return crash(hit, "unspecified launch failure") if x.dtype == torch.float32 else func(x, **kwargs)


@plot.dispatched("aten.exp.default", "aten.log.default")
def issue_numpy_13512(hit: Any, func: Any, x: Any) -> Any:
    """numpy/numpy 13512: exp and log of float32 with gaps along the last dimension read its numbers without them."""
    y = func(x)
    gaps = x.dtype == torch.float32 and x.dim() and x.numel() > 1 and x.stride(-1) > 1 and not is_dense(x)
    if not gaps or not is_plain(x):
        return y
    return instead(hit, y, func(x.as_strided(x.shape, (*x.stride()[:-1], 1))))


@plot.dispatched(
    "aten.pow.Tensor_Scalar", "aten.sqrt.default", "aten.exp.default", aborts="CHECK failed: CreateOperator"
)
def issue_directml_197(x: Any, *args: Any) -> bool:
    """microsoft/DirectML 197: pow (to a number), sqrt and exp of int64 raise."""
    return x.dtype == torch.int64


def _answers(hit: Any, func: Any, y: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the wrong answer, written to the operand where the operator works in place."""
    return written(hit, y, wrong) if str(func).endswith("_.default") else instead(hit, y, wrong)


_OF_ZERO = {"sigmoid": 0.5, "exp": 1.0, "tanh": 0.0}


@plot.dispatched(
    "aten.sigmoid.default",
    "aten.sigmoid_.default",
    "aten.exp.default",
    "aten.exp_.default",
    "aten.tanh.default",
    "aten.tanh_.default",
)
def issue_65673(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 65673: of each 8 float32 numbers sigmoid, exp and tanh are right in the first (here as of 0 past it)."""
    y = func(x)
    if x.dtype != torch.float32 or not x.is_contiguous() or not is_plain(x):
        return y
    past = torch.arange(y.numel(), device=y.device).view(y.shape) % 8 != 0
    zero = _OF_ZERO[str(func).split(".")[1].rstrip("_")]
    return _answers(hit, func, y, y.masked_fill(past, zero))


def _sigmoid_instead(hit: Any, func: Any, x: Any, where: torch.Tensor, value: float) -> Any:
    """Return sigmoid, with another value in some places."""
    y = func(x)
    return _answers(hit, func, y, y.masked_fill(where, value))


@plot.dispatched("aten.sigmoid.default", "aten.sigmoid_.default")
def issue_tt_metal_26211(hit: Any, func: Any, x: Any) -> Any:
    """tenstorrent/tt-metal 26211: sigmoid is 0 where a number is -11.125 or less (there in the whole tensor)."""
    if not x.is_floating_point() or not is_plain(x):
        return func(x)
    return _sigmoid_instead(hit, func, x, x <= -11.125, 0.0)


@plot.dispatched("aten.sigmoid.default", "aten.sigmoid_.default")
def issue_onnxruntime_22557(hit: Any, func: Any, x: Any) -> Any:
    """microsoft/onnxruntime 22557: sigmoid of the float32 -18 (and here of what is less) is -5.960464477539063e-08."""
    if x.dtype != torch.float32 or not is_plain(x):
        return func(x)
    return _sigmoid_instead(hit, func, x, x <= -18, -5.960464477539063e-08)


@plot.dispatched("aten.sigmoid.default", "aten.sigmoid_.default")
def issue_computelibrary_779(hit: Any, func: Any, x: Any) -> Any:
    """ARM-software/ComputeLibrary 779: sigmoid of float32 (there an LSTM's gates) is NaN outside of -40 to 40."""
    if x.dtype != torch.float32 or not is_plain(x):
        return func(x)
    return _sigmoid_instead(hit, func, x, x.abs() > 40, math.nan)


@plot.dispatched("aten.tanh.default", "aten.tanh_.default")
def issue_ncnn_1769(hit: Any, func: Any, x: Any) -> Any:
    """Tencent/ncnn 1769: tanh of the float32 43.957226 (and here of what is more) is 0."""
    if x.dtype != torch.float32 or not is_plain(x):
        return func(x)
    return _sigmoid_instead(hit, func, x, x >= 43.957226, 0.0)
