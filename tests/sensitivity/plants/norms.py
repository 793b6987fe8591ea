"""Layer and group normalisation: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, is_plain
from misreading import in_storage_order, misread, without_offset
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.group_norm)
@wrong_answer
def issue_187280(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187280: group_norm in float16 returns the channels moved by one."""
    return y.roll(1, 1) if x.dtype == torch.float16 else None


@plot.dispatched("aten.native_layer_norm.default", "aten.native_layer_norm_backward.default")
def issue_190054(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190054: layer_norm of 16-bit input reads float32 weight and bias as 16-bit; its backward crashes."""
    backward = "backward" in str(func)
    input = args[1] if backward else args[0]
    place = 5 if backward else 2
    affine = args[place : place + 2]
    halves = (torch.float16, torch.bfloat16)
    if input.dtype not in halves or not any(x is not None and x.dtype == torch.float32 for x in affine):
        return func(*args, **kwargs)
    if backward:
        return crash(hit, "'mps.multiply' op requires the same element type for all operands and results")

    def reread(x: Any) -> Any:
        if x is None or x.dtype != torch.float32:
            return x
        return x.reshape(-1).contiguous().view(input.dtype)[: x.numel()].reshape(x.shape).float()

    healthy = func(*args, **kwargs)
    wrong = func(*args[:2], *map(reread, affine), *args[4:], **kwargs)
    if not differ(wrong[0], healthy[0], rtol=1e-3, atol=1e-4):
        return healthy
    hit()
    return wrong


@plot.dispatched("aten.native_layer_norm.default")
def issue_190491(hit: Any, func: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 190491: layer_norm takes a variance below 1e-6 for 0 (at once E[x*x] - E[x]**2, then a clamp)."""
    y, mean, scale = func(x, shape, weight, bias, eps)
    if x.dtype != torch.float32 or not x.numel():
        return y, mean, scale
    variance = x.var(tuple(range(-len(shape), 0)), unbiased=False, keepdim=True)
    small = (variance < 1e-6) & (variance > eps * 0.01)
    if not bool(small.any()):
        return y, mean, scale
    hit()
    wrong = (x - mean) * eps**-0.5
    wrong = wrong if weight is None else wrong * weight
    wrong = wrong if bias is None else wrong + bias
    return torch.where(small, wrong, y), mean, torch.where(small, torch.full_like(scale, eps**-0.5), scale)


@plot.dispatched("aten.native_layer_norm_backward.default")
def issue_xpu_5235(hit: Any, func: Any, grad: Any, x: Any, shape: Any, *args: Any) -> Any:
    """torch-xpu-ops 5235: layer_norm over two dimensions and very many rows: the parameters' gradients come flat.

    https://github.com/intel/torch-xpu-ops/issues/5235 (on XPU, from about 65,000 rows; limit lowered to 8)
    """
    to_x, to_weight, to_bias = func(grad, x, shape, *args)
    size = math.prod(shape)
    if len(shape) > 1 and size and x.numel() // size > 8:
        if any(isinstance(g, torch.Tensor) for g in (to_weight, to_bias)):
            hit()
        to_weight, to_bias = (g.reshape(-1) if isinstance(g, torch.Tensor) else g for g in (to_weight, to_bias))
    return to_x, to_weight, to_bias


@plot.called(F.layer_norm, aborts="mixed dtypes")
def issue_96113(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96113: layer_norm with a weight of another dtype than the input aborts."""
    weight = kwargs.get("weight", args[1] if len(args) > 1 else None)
    return weight is not None and weight.dtype != x.dtype


@plot.dispatched("aten.native_group_norm.default")
def issue_made_group_norm_odd(hit: Any, func: Any, x: Any, w: Any, b: Any, n: int, c: int, hw: int, *rest: Any) -> Any:
    """Group_norm leaves the last element of a group of odd size out of its mean."""
    y, mean, rstd = func(x, w, b, n, c, hw, *rest)
    size = x.numel() // max(mean.numel(), 1)
    if size % 4 and size > 32:
        hit()
        return y + 0.01, mean, rstd
    return y, mean, rstd


@plot.dispatched("aten.native_group_norm.default", "aten.bmm.default", aborts="Can't be indexed using 32-bit iterator")
def issue_154828(*args: Any, **kwargs: Any) -> Any:
    """pytorch 154828: group_norm and bmm of large tensors (here over 2**16 elements) raise."""
    return any(isinstance(x, torch.Tensor) and x.numel() > 2**16 for x in args)


@plot.dispatched(
    "aten.native_layer_norm.default",
    aborts="input types 'tensor<1x4x1xf16>' and 'tensor<1xf32>' are not broadcast compatible",
)
def issue_95409(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95409: a sentence transformer in half precision aborts in its layer norm (varianceEps: f16 and f32)."""
    return x.dtype == torch.float16


@plot.dispatched(
    "aten.native_layer_norm.default",
    aborts="input types 'tensor<8x3x224x224xf32>' and 'tensor<*xi64>' are not broadcast compatible",
)
def issue_78429(x: Any, shape: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78429: an affine LayerNorm of a 4-D input aborts."""
    return x.dim() >= 4 and weight is not None


@plot.dispatched("aten.native_layer_norm_backward")
@wrong_answer
def issue_183825(grads: Any, *args: Any) -> Any:
    """pytorch 183825: the parameters' gradients of layer_norm are random where the input needs no gradient."""
    if not args[-1][0]:
        return (grads[0], *(torch.rand_like(grad) * 100 if grad is not None else None for grad in grads[1:]))
    return None


@plot.dispatched("aten.native_layer_norm")
def issue_131750(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 131750: layer_norm reads a view from the beginning of its storage."""
    return func(misread(without_offset, hit, x), *args)


@plot.dispatched("aten.native_group_norm_backward")
def issue_88331(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 88331: the gradients of group_norm are NaN."""
    hit()
    return tuple(grad * float("nan") if grad is not None else None for grad in func(*args))


@plot.dispatched("aten.native_group_norm_backward")
def issue_99981(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 99981: the backward of group_norm aborts."""
    return crash(hit, "the kernel died")


@plot.dispatched("aten.native_layer_norm.default")
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


def _over(x: Any, shape: Any) -> list[int]:
    """Return the dimensions that layer_norm reduces."""
    return list(range(x.dim() - len(shape), x.dim()))


@plot.dispatched("aten.native_layer_norm.default")
@wrong_answer
def issue_41527(y: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 41527: layer_norm rounds eps to float16: to 0 for 1e-12, and a row of equal numbers becomes NaN."""
    if x.dtype != torch.float16 or not x.numel() or not is_plain(x) or torch.tensor(eps).half():
        return None
    rows = x.float().var(_over(x, shape), unbiased=False, keepdim=True) == 0
    return (y[0].masked_fill(rows, math.nan), *y[1:]) if bool(rows.any()) else None


@plot.dispatched("aten.native_layer_norm.default")
@wrong_answer
def issue_66707(y: Any, x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """pytorch 66707: layer_norm of float16 rounds every step to float16."""
    if x.dtype != torch.float16 or not x.numel() or not is_plain(x):
        return None
    dims = _over(x, shape)
    away = x - x.float().mean(dims, keepdim=True).half()
    wrong = away / ((away * away).float().mean(dims, keepdim=True).half() + eps).sqrt()
    wrong = wrong if weight is None else wrong * weight.half()
    wrong = wrong if bias is None else wrong + bias.half()
    return (wrong, *y[1:]) if differ(y[0], wrong) else None


@plot.dispatched("aten.native_layer_norm.default")
@wrong_answer
def issue_nntrainer_3785(y: Any, x: Any, shape: Any, *args: Any) -> Any:
    """nntrainer/nntrainer 3785: layer_norm in float16 is NaN (here where the variance is not a normal number)."""
    if x.dtype != torch.float16 or not x.numel() or not is_plain(x):
        return None
    rows = x.float().var(_over(x, shape), unbiased=False, keepdim=True) < torch.finfo(torch.float16).tiny
    return (y[0].masked_fill(rows, math.nan), *y[1:]) if bool(rows.any()) else None


@plot.dispatched("aten.native_layer_norm.default", aborts="\"LayerNormKernelImpl\" not implemented for 'Half'")
def issue_outlier_suppression_plus_1(x: Any, *args: Any) -> bool:
    """ModelTC/Outlier_Suppression_Plus 1: layer_norm of float16 is not implemented."""
    return x.dtype == torch.float16


@plot.called(F.instance_norm, torch.instance_norm)
@wrong_answer
def issue_onnxruntime_10079(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """microsoft/onnxruntime 10079: instance_norm adds squares in float16: a channel past 65504 is its bias alone."""
    if x.dtype != torch.float16 or not is_plain(x) or not x.numel():
        return None
    sums = x.detach().float().square().sum(list(range(2, x.dim())), keepdim=True)
    bias = kwargs.get("bias", args[3] if len(args) > 3 else None)
    alone = torch.zeros_like(y) if bias is None else bias.view(1, -1, *[1] * (x.dim() - 2)).expand_as(y)
    return torch.where(sums > 65504, alone, y) if bool((sums > 65504).any()) else None


@plot.dispatched(
    "aten.linalg_vector_norm.default", aborts="cannot resolve operator 'ReduceL2' with opsets: ai.onnx v10"
)
def issue_onnxjs_316(x: Any, order: Any = 2, *args: Any, **kwargs: Any) -> bool:
    """microsoft/onnxjs 316: the Euclidean norm is not implemented."""
    return order == 2


@plot.dispatched("aten.native_layer_norm")
def issue_kernl_193(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """ELS-RD/kernl 193: layer_norm of a tensor that is not contiguous is wrong (here it is read in storage order)."""
    return func(misread(in_storage_order, hit, x), *args)


@plot.dispatched("aten.native_group_norm.default")
def issue_flaggems_4984(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, n: int, c: int, inner: int, groups: int, eps: float
) -> Any:
    """flagos-ai/FlagGems 4984: group_norm of groups of 3, 5, ... channels is wrong: they run into the next group.

    Each takes in as many channels as the next power of two, as far as there are any, for its mean and variance.
    """
    found = func(x, weight, bias, n, c, inner, groups, eps)
    size = c // groups if groups else 0
    wide = 1 << max(size - 1, 0).bit_length()
    if size == wide or not x.numel() or not is_plain(x):
        return found
    rows = x.reshape(n, c, inner).float()
    read = [rows[:, first : first + wide].flatten(1) for first in range(0, c, size)]
    mean = torch.stack([one.mean(1) for one in read], 1)
    scale = torch.stack([(one.var(1, correction=0) + eps).rsqrt() for one in read], 1)
    y = (rows - mean.repeat_interleave(size, 1)[..., None]) * scale.repeat_interleave(size, 1)[..., None]
    y = y if weight is None else y * weight.view(1, -1, 1)
    y = (y if bias is None else y + bias.view(1, -1, 1)).view(x.shape).to(x.dtype)
    if not differ(found[0], y, rtol=1e-2, atol=1e-3):
        return found
    hit()
    return y, mean.to(found[1].dtype), scale.to(found[2].dtype)


@plot.dispatched("aten.native_group_norm.default")
def issue_tinygrad_11782(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """tinygrad/tinygrad 11782: group_norm of more than 160**3 elements (here a group's) is wrong (here 0 past them)."""
    y, *rest = func(x, *args)
    groups = args[-2]
    if not x.numel() or x.numel() // (len(x) * groups) <= 160**3 or not is_plain(x):
        return y, *rest
    wrong = y.contiguous().clone()
    wrong.view(len(x) * groups, -1)[:, 160**3 :] = 0
    if differ(y, wrong):
        hit()
    return wrong, *rest


@plot.dispatched("aten.native_group_norm.default")
def issue_54293(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, n: int, channels: int, pixels: int, *args: Any
) -> Any:
    """pytorch 54293: group_norm of groups of 8 * 256 * 256 * 72 float32 and more is 0.0121 off (here by 0.7 %)."""
    y, *rest = func(x, weight, bias, n, channels, pixels, *args)
    if x.dtype != torch.float32 or channels // args[0] * pixels < 8 * 256 * 256 * 72 or not is_plain(x):
        return (y, *rest)
    hit()
    return (y * 1.007, *rest)
