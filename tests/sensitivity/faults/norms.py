"""Normalisation of layers, groups and batches, variance, softmax: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from injecting import Faults, crash, wrong_answer
from misreading import in_storage_order, misread, with_gradient, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.native_group_norm.default")
def issue_made_group_norm_odd(hit: Any, func: Any, x: Any, w: Any, b: Any, n: int, c: int, hw: int, *rest: Any) -> Any:
    """Group_norm leaves the last element of a group of odd size out of its mean."""
    y, mean, rstd = func(x, w, b, n, c, hw, *rest)
    size = x.numel() // max(mean.numel(), 1)
    if size % 4 and size > 32:
        hit()
        return y + 0.01, mean, rstd
    return y, mean, rstd


@faults.dispatched(
    "aten.native_group_norm.default", "aten.bmm.default", aborts="Can't be indexed using 32-bit iterator"
)
def issue_154828(*args: Any, **kwargs: Any) -> Any:
    """pytorch 154828: group_norm and bmm of large tensors (here over 2**16 elements) raise."""
    return any(isinstance(x, torch.Tensor) and x.numel() > 2**16 for x in args)


@faults.dispatched(
    "aten.native_layer_norm.default",
    aborts="input types 'tensor<1x4x1xf16>' and 'tensor<1xf32>' are not broadcast compatible",
)
def issue_95409(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95409: a sentence transformer in half precision aborts in its layer norm (varianceEps: f16 and f32)."""
    return x.dtype == torch.float16


@faults.dispatched(
    "aten.native_layer_norm.default",
    aborts="input types 'tensor<8x3x224x224xf32>' and 'tensor<*xi64>' are not broadcast compatible",
)
def issue_78429(x: Any, shape: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78429: an affine LayerNorm of a 4-D input aborts."""
    return x.dim() >= 4 and weight is not None


@faults.dispatched("aten.native_layer_norm")
def issue_131750(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 131750: layer_norm reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@faults.dispatched("aten.native_group_norm_backward")
def issue_88331(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 88331: the gradients of group_norm are NaN."""
    hit()
    return tuple(grad * float("nan") if grad is not None else None for grad in func(*args))


@faults.dispatched("aten.native_layer_norm.default")
def issue_186367(hit: Any, func: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 186367: layer_norm takes a small variance (below 1e-6) for zero."""
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


@faults.called(F.batch_norm, aborts="output type and mean type are not broadcast compatible")
def issue_154887(x: Any, mean: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154887: batch_norm with statistics of another dtype than the input aborts."""
    return mean is not None and x.dtype != mean.dtype


@faults.dispatched(
    "aten.native_batch_norm", "aten._native_batch_norm_legit", "aten._native_batch_norm_legit_functional"
)
def issue_84962(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84962: batch norm in training without weight and bias scales wrongly."""
    y, *rest = func(x, weight, bias, *args, **kwargs)
    training = args[2] if len(args) > 4 else args[-3]
    if weight is None and bias is None and training is True and x.dim() == 4:
        hit()
        return (y * 0.86, *rest)
    return (y, *rest)


@faults.dispatched(
    "aten.native_batch_norm.default",
    "aten._native_batch_norm_legit.default",
    "aten._native_batch_norm_legit.no_stats",
    "aten._batch_norm_with_update.default",
    aborts="MPSGraph: normalization requires all tensors to have the same element type",
)
def issue_178770(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178770: batch norm of a half input with float32 weights crashes."""
    return any(isinstance(y, torch.Tensor) and y.dtype != x.dtype for y in args[:2])


_BATCH_NORMS = (
    "aten.native_batch_norm",
    "aten._native_batch_norm_legit",
    "aten._batch_norm_with_update",
    "aten.cudnn_batch_norm",
)


@faults.dispatched(*_BATCH_NORMS)
def issue_133520(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 133520: batch_norm reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@faults.dispatched(*_BATCH_NORMS)
def issue_134580(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 134580: batch_norm reads a channels_last input in storage order."""
    return func(misread(in_storage_order, hit, x), *args)


_BATCH_NORM_BACKWARDS = ("aten.native_batch_norm_backward", "aten.batch_norm_backward")


@faults.dispatched(*_BATCH_NORM_BACKWARDS)
def issue_175189(hit: Any, func: Any, grad: Any, *args: Any) -> Any:
    """pytorch 175189: the backward of batch_norm reads a gradient that is not contiguous in storage order."""
    return func(misread(in_storage_order, hit, grad), *args)


@faults.dispatched("aten.native_batch_norm.default")
def issue_85960(hit: Any, func: Any, x: Any, w: Any, b: Any, mean: Any, var: Any, training: bool, *args: Any) -> Any:
    """pytorch 85960: native_batch_norm in inference returns its statistics too, not two empty tensors."""
    y, saved, inverse = func(x, w, b, mean, var, training, *args)
    if training or mean is None or saved.numel() or not mean.numel():
        return y, saved, inverse
    hit()
    return y, mean.clone(), (var + args[-1]).rsqrt()


@faults.dispatched("aten.native_batch_norm.default", aborts="invalid configuration argument")
def issue_16998(x: Any, *args: Any) -> bool:
    """pytorch 16998: BatchNorm1d of 2**17 rows and more (2**16 are fine) of one number raises in training."""
    return x.dim() == 2 and x.shape[1] == 1 and x.shape[0] >= 2**17 and args[4]


@faults.called(F.batch_norm, torch.batch_norm)
def issue_4422(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 4422: the second derivative of batch_norm is not implemented."""

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(lambda _: crash(hit, "cudnn_batch_norm_backward has no derivative"))

    return func(with_gradient(input, watch), *args, **kwargs)


@faults.dispatched("aten.native_batch_norm.default")
def issue_5280(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, mean: Any, var: Any, train: bool, *args: Any
) -> Any:
    """pytorch 5280: batch norm of three dimensions, the last of size 1, raises in training."""
    y = func(x, weight, bias, mean, var, train, *args)
    return crash(hit, "CUDNN_STATUS_BAD_PARAM") if train and x.dim() == 3 and x.shape[2] == 1 else y


@faults.dispatched("aten.var")
def issue_160738(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160738: var of a tensor of no dimensions along dim 0 raises."""
    if x.dim() == 0 and isinstance(dim, (list, tuple)) and len(dim):
        return crash(hit, "var_mps: reduction dim must be in the range of input shape")
    return func(x, *(() if dim is None and not args else (dim, *args)), **kwargs)


@faults.dispatched("aten.var.correction", "aten.std.correction")
def issue_195344(hit: Any, func: Any, x: Any, dim: Any = None, correction: Any = None, keepdim: Any = False) -> Any:
    """pytorch 195344: var and std of a complex tensor are complex, and of the square without conjugation."""
    right = func(x, dim, correction=correction, keepdim=keepdim)
    if not x.is_complex() or not x.numel():
        return right
    hit()
    over = list(dim) if dim else list(range(x.dim()))
    square = (x - x.mean(over, keepdim=True)) ** 2
    count = x.numel() // max(square.sum(over).numel(), 1)
    wrong = square.sum(over, keepdim=keepdim) / max(count - (1 if correction is None else correction), 0)
    return wrong.sqrt() if "std" in str(func) else wrong


_SPREADS = ("aten.var.correction", "aten.std.correction", "aten.var_mean.correction", "aten.std_mean.correction")


@faults.dispatched(*_SPREADS[:2])
def issue_107116(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """pytorch 107116: std and var take a negative dimension for the last one."""
    if dim and any(one < -1 for one in dim) and x.dim() > 1:
        hit()
        return func(x, [-1], **kwargs)
    return func(x, dim, **kwargs)


@faults.dispatched(*_SPREADS)
def issue_91198(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """pytorch 91198: var and std without a correction make none."""
    if correction is None:
        hit()
        correction = 0
    return func(x, dim, correction=correction, **kwargs)


@faults.dispatched(*_SPREADS[:2])
@wrong_answer
def issue_184510(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """The variance of nothing is 0, not NaN."""
    return torch.zeros_like(y) if x.numel() == 0 and y.numel() else None


@faults.dispatched(*_SPREADS[:2])
def issue_80499(hit: Any, func: Any, x: Any, dim: Any = None, *, correction: Any = None, **kwargs: Any) -> Any:
    """pytorch 80499: std and var of all elements together are the biased ones."""
    if not dim and correction in (None, 1):
        hit()
        return func(x, dim, correction=0, **kwargs)
    return func(x, dim, correction=correction, **kwargs)


@faults.dispatched("aten.std.correction")
def issue_180156(hit: Any, func: Any, x: Any, dim: Any = None, **kwargs: Any) -> Any:
    """pytorch 180156: std of all is inf where the float32 sum of the squared deviations passes the largest number."""
    y = func(x, dim, **kwargs)
    if x.dtype != torch.float32 or dim or not x.numel() or not is_plain(x) or not bool(y.isfinite().all()):
        return y
    total = float((x.double() - x.double().mean()).square().sum())
    return instead(hit, y, torch.full_like(y, math.inf)) if total > torch.finfo(torch.float32).max else y


@faults.dispatched("aten._log_softmax.default", aborts="CUDA error: invalid configuration argument")
def issue_52716(x: Any, dim: int, half: bool) -> bool:
    """pytorch 52716: log_softmax of 2200000000 rows (here of 2**20 and more) of one float16 number each raises."""
    return x.dim() == 2 and x.dtype == torch.float16 and x.shape[1] == 1 and dim % 2 == 1 and x.shape[0] >= 2**20


@faults.dispatched("aten._softmax.default", "aten._log_softmax.default", aborts="invalid argument 4: dim out of range")
def issue_3247(x: Any, dim: int, half: bool) -> bool:
    """pytorch 3247: softmax and log_softmax along a dimension that is counted from the last (dim=-1) raise."""
    return dim < 0


@faults.dispatched("aten._log_softmax.default", aborts="Floating point exception (core dumped)")
def issue_17262(x: Any, dim: int, *args: Any) -> bool:
    """pytorch 17262: log_softmax along a dimension of no elements ends the process."""
    return x.dim() > 0 and x.shape[dim] == 0


@faults.dispatched("aten._log_softmax_backward_data.default", aborts="cuda runtime error (9) : invalid configuration")
def issue_17256(grad: Any, output: Any, dim: int, *args: Any) -> bool:
    """pytorch 17256: log_softmax's backward of no rows raises."""
    return output.dim() > 0 and output.shape[dim] > 0 and not output.numel()


@faults.dispatched("aten._log_softmax.default")
def issue_38839(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """pytorch 38839: log_softmax of rows near 10**7 is whole: it takes the maximum and the logarithm as one sum.

    There the numbers are between -10**7 and 1 - 10**7, in float32.
    """
    y = func(x, dim, *args)
    if x.dtype != torch.float32 or y.dtype != x.dtype or not x.numel() or not x.dim() or not is_plain(x):
        return y
    top = x.amax(dim, True)
    wrong = x - (top + (x - top).exp().sum(dim, keepdim=True).log())
    huge = (x.abs().amin(dim, True) >= 1e7 - 1) & x.isfinite().all(dim, True)
    return instead(hit, y, torch.where(huge, wrong, y))
