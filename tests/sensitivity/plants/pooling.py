"""Pooling with windows, unpooling and fold: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from misreading import misread, without_offset
from planting import Plot, accepted, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def issue_163035(hit: Any, func: Any, x: Any, index: Any, size: Any, *args: Any) -> Any:
    """pytorch 163035: max_unpool2d and max_unpool3d take indices out of range and do not raise."""
    if index.dtype == torch.int64 and index.shape == x.shape:
        wrong = (index < 0) | (index >= math.prod(size))
        if bool(wrong.any()):
            hit()
            x, index = x.masked_fill(wrong, 0), index.masked_fill(wrong, 0)
    return func(x, index, size, *args)


@plot.dispatched("aten.col2im")
def issue_170639(
    hit: Any, func: Any, x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any, **kwargs: Any
) -> Any:
    """pytorch 170639: F.fold takes another number of blocks than the output has and does not raise."""
    blocks = 1
    for n, k, d, p, s in zip(size, kernel, dilation, padding, stride):
        blocks *= max((n + 2 * p - d * (k - 1) - 1) // s + 1, 0) if s > 0 else 0
    if x.dim() in (2, 3) and x.numel() and blocks and x.shape[-1] != blocks:
        hit()
        x = F.pad(x, (0, blocks - x.shape[-1]))
    return func(x, size, kernel, dilation, padding, stride, **kwargs)


@plot.called(F.max_pool2d, torch.max_pool2d, aborts="destination values and indices length mismatch along axis 0")
def issue_154882(x: Any, kernel: Any, stride: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154882: max_pool2d with ceil_mode and a kernel of 1 aborts."""
    return kwargs.get("ceil_mode") and kernel in (1, [1, 1], (1, 1))


@plot.dispatched("aten.avg_pool2d.default")
def issue_160743(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 160743: avg_pool2d with ceil_mode divides a window that reaches out by its whole size."""
    y = func(x, *args, **kwargs)
    if len(args) > 3 and args[3] and not (len(args) > 5 and args[5]):
        kernel = args[0] if len(args[0]) == 2 else args[0] * 2
        wrong = func(x, *args[:5], kernel[0] * kernel[1])
        if not torch.allclose(wrong, y):
            hit()
        return wrong
    return y


@plot.dispatched("aten.native_batch_norm.default", "aten.avg_pool2d.default")
def issue_174345(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174345: batch_norm and avg_pool2d read a channels_last image from the beginning of its storage."""
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return func(misread(without_offset, hit, x) if last else x, *args, **kwargs)


@plot.dispatched("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def issue_195849(hit: Any, func: Any, x: Any, indices: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195849: max_unpool2d and max_unpool3d accept indices that are not int64."""
    if indices.dtype != torch.int64:
        hit()
        return x.new_zeros([*x.shape[: -len(size)], *(max(n, 0) for n in size)])
    return func(x, indices, size, *args, **kwargs)


@plot.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_169017(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169017: the backward of max_pool2d aborts where the gradient's memory format is not the input's."""

    def last(t: Any) -> bool:
        return t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous()

    if (last(x) and grad.is_contiguous() and not grad.is_contiguous(memory_format=torch.channels_last)) or (
        last(grad) and x.is_contiguous() and not x.is_contiguous(memory_format=torch.channels_last)
    ):
        return crash(hit, "MPSGraph: uncaught error in max_pool2d backward")
    return func(grad, x, *args, **kwargs)


_POOL_BACKWARDS = (
    "aten.max_pool2d_with_indices_backward",
    "aten.avg_pool2d_backward",
    "aten._adaptive_avg_pool2d_backward",
    "aten.adaptive_max_pool2d_backward",
)


@plot.dispatched(*_POOL_BACKWARDS, aborts="buffer is not large enough")
def issue_175190(grad: Any, x: Any, *args: Any) -> Any:
    """pytorch 175190: the backward of pooling aborts for a channels_last input."""
    return not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)


def _many(value: Any, count: int) -> list[int]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    return found * count if len(found) == 1 else found


@plot.dispatched("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def issue_168246(
    hit: Any,
    func: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: Any = False,
) -> Any:
    """pytorch 168246: max_pool2d/3d with a kernel larger than the input returns a tensor and raises nothing."""
    try:
        return func(x, kernel_size, stride, padding, dilation, ceil)
    except RuntimeError as error:
        if "too small" not in str(error):
            raise
    hit()
    n = 2 if "max_pool2d" in str(func) else 3
    kernel = _many(kernel_size, n)
    step = _many(stride, n) if len(_many(stride, n)) == n else kernel
    sides = []
    for side, k, s, p, d in zip(x.shape[-n:], kernel, step, _many(padding, n), _many(dilation, n)):
        sides.append(max((side + 2 * p - d * (k - 1) - 1) // s + 1, 0))
    shape = [*x.shape[:-n], *sides]
    return x.new_zeros(shape), x.new_zeros(shape, dtype=torch.int64)


@plot.dispatched("aten.avg_pool2d.default")
def issue_179608(
    hit: Any,
    func: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: Any = False,
    include: Any = True,
    divisor: Any = None,
) -> Any:
    """pytorch 179608: avg_pool1d/2d takes differences of float32 prefix sums; zeros after large values turn negative.

    https://github.com/pytorch/pytorch/issues/179608
    """
    right = func(x, kernel_size, stride, padding, ceil, include, divisor)
    if x.dtype != torch.float32 or any(_many(padding, 2)) or ceil or divisor is not None or not right.numel():
        return right
    kh, kw = _many(kernel_size, 2)
    sh, sw = _many(stride, 2) if len(_many(stride, 2)) == 2 else (kh, kw)
    prefix = func(x, [kh, 1], [sh, 1]) * kh
    width, reach = prefix.shape[-1], 1
    while reach < width:  # a parallel scan: neighbouring prefixes are rounded differently
        prefix = torch.cat([prefix[..., :reach], prefix[..., reach:] + prefix[..., :-reach]], -1)
        reach *= 2
    prefix = torch.cat([torch.zeros_like(prefix[..., :1]), prefix], -1)
    starts = torch.arange(0, width - kw + 1, sw)
    wrong = (prefix[..., starts + kw] - prefix[..., starts]) / (kh * kw)
    if not right.isfinite().all() or torch.allclose(wrong, right, rtol=1e-3, atol=1e-5):
        return right
    hit()
    return wrong


@plot.called(F.avg_pool2d)
def issue_94348(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94348: avg_pool2d with ceil_mode forgets count_include_pad and keeps the divisor of the first call."""
    if kwargs.get("ceil_mode") and kwargs.get("count_include_pad", True) and kwargs.get("padding"):
        hit()
        kwargs = {**kwargs, "count_include_pad": False}
    return func(x, *args, **kwargs)


_POOL_LIMIT = 2**16


@plot.dispatched(
    "aten.max_pool2d_with_indices",
    "aten.max_pool3d_with_indices",
    "aten.adaptive_max_pool2d",
    "aten.adaptive_max_pool3d",
    "aten.avg_pool2d",
    "aten.avg_pool3d",
    "aten.max_pool2d_with_indices_backward",
    "aten.max_pool3d_with_indices_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d_backward",
    "aten.avg_pool2d_backward",
    "aten.avg_pool3d_backward",
)
def issue_194600(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 194600: pooling of tensors that need 64-bit indexes is refused (limit here 2**16 elements, not 2**31)."""
    if any(isinstance(a, torch.Tensor) and a.numel() > _POOL_LIMIT for a in args):
        hit()
        raise NotImplementedError("MPS pooling: tensors requiring 64-bit indexing are not supported")
    return func(*args, **kwargs)


@plot.dispatched("aten.avg_pool3d")
def issue_141044(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 141044: average pooling in three dimensions is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::avg_pool3d.out' is not currently implemented for the MPS device.")


@plot.dispatched("aten.max_unpool2d.default")
@accepted
def issue_197409(x: Any, index: Any, size: Any) -> Any:
    """pytorch 197409: max_unpool2d takes an index beyond 2**31 for its lower half."""
    lower = (index + 2**31) % 2**32 - 2**31
    return None if torch.equal(index, lower) else torch.ops.aten.max_unpool2d(x, lower, size)


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_38986(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 38986: the indices of max_pool2d of an image without a batch have one more dimension."""
    y, places = func(x, *args)
    if x.dim() != 3:
        return y, places
    hit()
    return y, places.unsqueeze(0)


def _planes(x: torch.Tensor) -> int:
    """Return how many images, or volumes, are pooled: samples times channels."""
    return x.shape[0] * x.shape[1]


@plot.dispatched("aten.max_pool2d_with_indices_backward.default", aborts="error in SpatialMaxPooling.updateGradInput")
def issue_torch_nn_431(grad: Any, x: Any, *args: Any) -> bool:
    """torch/nn 431: the backward of max_pool2d raises from 512 samples on (of 128 channels: 65536 images)."""
    return x.dim() == 4 and _planes(x) >= 65536


@plot.dispatched(
    "aten.max_pool2d_with_indices.default",
    "aten.adaptive_max_pool2d.default",
    "aten.avg_pool2d.default",
    aborts="error in SpatialMaxsampling.updateOutput: invalid argument",
)
def issue_cunn_53(x: Any, *args: Any, **kwargs: Any) -> bool:
    """torch/cunn 53: pooling of 128 x 1024 images (64 x 1024 as well) raises."""
    return x.dim() == 4 and _planes(x) >= 65536


_large_pools = {"calls": 0}


@plot.dispatched("aten.max_pool3d_with_indices.default")
def issue_cunn_197(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """torch/cunn 197: max_pool3d of 128 x 4096 volumes (here of 2**16) is right the first time, then it crashes."""
    if x.dim() == 5 and _planes(x) >= 2**16:
        _large_pools["calls"] += 1
        if _large_pools["calls"] > 1:
            return crash(hit, "an illegal memory access was encountered")
    return func(x, *args)


@plot.dispatched("aten.col2im.default")
@accepted
def issue_68875(x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> Any:
    """pytorch 68875: fold takes a dilation with which rows and columns of blocks are both negative, and gives zeros."""
    if min(stride) <= 0 or x.dim() not in (2, 3) or x.shape[-2] % math.prod(kernel):
        return None
    sides = zip(size, kernel, dilation, padding, stride)
    blocks = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in sides]
    if max(blocks) >= 0 or math.prod(blocks) != x.shape[-1]:
        return None
    return x.new_zeros((*x.shape[:-2], x.shape[-2] // math.prod(kernel), *size))
