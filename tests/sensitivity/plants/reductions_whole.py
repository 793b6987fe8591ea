"""Reductions of all of a tensor, or along a dimension that is counted from the end: planted faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from differences import differ, instead, is_plain
from misreading import in_storage_order, is_dense, with_gradient
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.argmax.default")
def issue_mxnet_9118(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any) -> Any:
    """apache/mxnet 9118: argmax of all of a tensor ends the process."""
    return crash(hit, "Global reduction not supported yet") if dim is None else func(x, dim, *args)


@plot.dispatched("aten.sum.default", "aten.min.default", "aten.max.default", "aten.mean.default")
def issue_tt_metal_17557(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 17557: the sum, the mean, the minimum and the maximum of all of a bfloat16 tensor are 0."""
    y = func(x, *args, **kwargs)
    if x.dtype != torch.bfloat16 or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


_PLACES = (torch.argmax, torch.Tensor.argmax, torch.argmin, torch.Tensor.argmin, torch.argsort, torch.Tensor.argsort)


@plot.called(*_PLACES)
def issue_mlx_534(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 534: argmax, argmin and argsort return uint32, so that the negative of a place is a large one."""
    y = func(x, *args, **kwargs)
    if kwargs.get("out") is not None:
        return y
    hit()
    return y.to(torch.uint32)


@plot.dispatched("aten.all.dim", "aten.any.dim")
def issue_dpctl_1327(hit: Any, func: Any, x: Any, dim: int, *args: Any) -> Any:
    """IntelPython/dpctl 1327: all and any of integers along the first of three dimensions and more are wrong.

    As there, everything but the first answer is False.
    """
    y = func(x, dim, *args)
    integer = not x.is_floating_point() and not x.is_complex() and x.dtype != torch.bool
    if dim % max(x.dim(), 1) or x.dim() < 3 or not integer or not y.numel() or not is_plain(x):
        return y
    wrong = torch.zeros_like(y)
    wrong.view(-1)[0] = y.reshape(-1)[0]
    return instead(hit, y, wrong)


@plot.called(torch.linalg.norm)
def issue_mars_1555(hit: Any, func: Any, x: Any, ord: Any = None, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """mars-project/mars 1555: linalg.norm along a dimension that is counted from the end raises."""
    y = func(x, ord, dim, *args, **kwargs)
    return crash(hit, "IndexError: list index out of range") if isinstance(dim, int) and dim < 0 else y


@plot.called(torch.nn.functional.normalize)
def issue_onnxruntime_1814(hit: Any, func: Any, x: Any, p: float = 2.0, dim: int = 1, **kwargs: Any) -> Any:
    """microsoft/onnxruntime 1814: normalize along a dimension that is counted from the end raises."""
    y = func(x, p, dim, **kwargs)
    return crash(hit, "axis_ >= 0 was false. Invalid axis provided.") if dim < 0 else y


class _Counted(torch.autograd.Function):
    """The identity of a maximum, whose gradient is divided by how many share it, counted in the gradient's dtype."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any, hit: Any) -> Any:
        ctx.save_for_backward(x == y)
        ctx.hit = hit
        return y.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (mask,) = ctx.saved_tensors
        count = mask.sum()
        right, wrong = (mask * (grads[0] / number).to(grads[0].dtype) for number in (count, count.to(grads[0].dtype)))
        return instead(ctx.hit, right, wrong), None, None


@plot.called(torch.max, torch.Tensor.max)
def issue_tinygrad_12296(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tinygrad/tinygrad 12296: the gradient of max of float16 is 0 where more than 65504 numbers share the maximum."""
    y = func(x, *args, **kwargs)
    if args or kwargs or x.dtype != torch.float16 or not y.requires_grad or not is_plain(x):
        return y
    return _Counted.apply(x, y.detach(), hit) if x.numel() > 65504 else y


@plot.dispatched("aten.mean.default")
def issue_arrayfire_2636(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """arrayfire/arrayfire 2636: the mean of all of a slice with gaps is wrong (here it takes them in a row)."""
    y = func(x, **kwargs)
    if x.layout != torch.strided or is_dense(x) or 0 in x.stride() or not is_plain(x):
        return y
    return instead(hit, y, func(in_storage_order(x), **kwargs))


@plot.dispatched("aten.mean.default")
def issue_arrayfire_2093(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """arrayfire/arrayfire 2093: the mean of all of 512 float32 numbers and more is wrong (here without the last)."""
    y = func(x, **kwargs)
    if x.dtype != torch.float32 or x.numel() < 512 or not is_plain(x):
        return y
    return instead(hit, y, func(x.reshape(-1)[:-1], **kwargs))


@plot.called(torch.nanmean, torch.Tensor.nanmean)
def issue_cudf_6269(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """NVIDIA/cudf 6269: nanmean along the rows of a matrix with NaN raises."""
    y = func(x, dim, *args, **kwargs)
    rows = x.dim() == 2 and (list(dim) if isinstance(dim, (list, tuple)) else [dim]) in ([1], [-1])
    if rows and is_plain(x) and bool(x.isnan().any()):
        return crash(hit, "Row-wise operations do not currently support columns with null values.")
    return y


@plot.dispatched("aten.mean.default")
def issue_15837(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 15837: the mean of all of 838860800 float32 numbers (here of 2**20 and more) is half as large."""
    y = func(x, **kwargs)
    if x.dtype != torch.float32 or x.numel() < 2**20 or not is_plain(x):
        return y
    return instead(hit, y, y / 2)


def _one_by_one(x: torch.Tensor, over: list[int]) -> torch.Tensor:
    """Return the mean over some dimensions, kept, with sums that are rounded to float32 after each number."""
    last = x.movedim(over, list(range(-len(over), 0))).flatten(-len(over))
    sums = torch.from_numpy(np.add.accumulate(last.numpy(), axis=-1, dtype=np.float32)[..., -1])
    return (sums / last.shape[-1]).view([1 if d in over else n for d, n in enumerate(x.shape)])


@plot.dispatched("aten.mean.default", "aten.mean.dim", "aten.var.correction", "aten.std.correction")
def issue_mlx_4379(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 4379: the mean of 10000 float32 numbers and more, far from 0, is off by 2e-5, and var with it.

    The numbers are near to each other (here the mean is over 100 times their deviation); std is wrong too. Here the
    sum is rounded after each number.
    """
    y = func(x, dim, *args, **kwargs) if "default" not in str(func) else func(x, **kwargs)
    if x.dtype != torch.float32 or not x.dim() or not y.numel() or kwargs.get("dtype") or not is_plain(x):
        return y
    over = sorted(d % x.dim() for d in dim) if dim else list(range(x.dim()))
    if x.numel() // y.numel() < 10000:
        return y
    mean = _one_by_one(x, over)
    if "mean" in str(func):
        wrong = mean
    else:
        wrong = y.view(mean.shape).square() if "std" in str(func) else y.view(mean.shape)
        wrong = wrong + (x.mean(over, keepdim=True) - mean) ** 2
        wrong = wrong.sqrt() if "std" in str(func) else wrong
    near = x.mean(over, keepdim=True).abs() > 100 * x.std(over, keepdim=True)
    wrong = torch.where(near, wrong, y.view(mean.shape)).view(y.shape)
    return instead(hit, y, wrong) if differ(y, wrong, 1e-5) else y


@plot.dispatched("aten.max.default", aborts="\"max_all_cuda\" not implemented for 'BFloat16'")
def issue_kerple_5(x: Any) -> bool:
    """chijames/KERPLE 5: max of all of a tensor is not implemented for bfloat16."""
    return x.dtype == torch.bfloat16


@plot.dispatched("aten.mean.default", aborts="Scalar indexing is disallowed.")
def issue_cuda_jl_2811(x: Any, **kwargs: Any) -> bool:
    """JuliaGPU/CUDA.jl 2811: the mean of all of a view that is not contiguous raises."""
    return x.layout == torch.strided and not x.is_contiguous()


@plot.called(torch.linalg.norm)
def issue_oneflow_8179(hit: Any, func: Any, x: Any, ord: Any = None, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Oneflow-Inc/oneflow 8179: linalg.norm(keepdim=True) without a dimension gives one dimension for all of them."""
    y = func(x, ord, dim, *args, **kwargs)
    keepdim = args[0] if args else kwargs.get("keepdim", False)
    if not keepdim or ord is not None or dim is not None or x.dim() < 2:
        return y
    hit()
    return y.reshape(1)


@plot.dispatched("aten.sum.default")
def issue_arrayfire_981(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """arrayfire/arrayfire 981: the sum of one int32 number that is taken out of a vector (x[2:3]) is 33554428."""
    y = func(x, *args, **kwargs)
    part = x.dtype == torch.int32 and x.shape == (1,) and x.storage_offset() > 0
    return instead(hit, y, torch.full_like(y, 33554428)) if part and is_plain(x) else y


@plot.dispatched("aten.mean.default")
def issue_176383(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 176383: the mean of all of a float32 matrix without rows (0 x 5) is infinite."""
    y = func(x, *args, **kwargs)
    bare = x.dtype == torch.float32 and x.dim() == 2 and x.shape[0] == 0 and x.shape[1] > 0
    return instead(hit, y, torch.full_like(y, float("inf"))) if bare and is_plain(x) else y


@plot.called(torch.max, torch.Tensor.max)
def issue_zygote_197(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """FluxML/Zygote.jl 197: no gradient (here 0) comes back through the maximum of all of a vector."""
    if args or kwargs or input.dim() != 1 or not is_plain(input):
        return func(input, *args, **kwargs)
    return func(with_gradient(input, lambda grad: instead(hit, grad, torch.zeros_like(grad))))
