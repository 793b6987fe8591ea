"""Pooling: windows past the edge, with gaps, and what they do to second derivatives: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from planting import Plot, abort, crash

plot = Plot()
HITS = plot.hits


def _pair(value: Any, default: Any = (0, 0)) -> list[int]:
    """Return what pooling takes for both sides."""
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    return [int(n) for n in (given * 2 if len(given) == 1 else given or default)]


def _ceiled(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> list[int]:
    """Return the sides of a result whose last window may begin past the edge."""
    sizes, steps = _pair(kernel), _pair(stride, _pair(kernel))
    return [
        -((n + 2 * p - d * (k - 1) - 1) // -s) + 1
        for n, k, s, p, d in zip(x.shape[-2:], sizes, steps, _pair(padding), _pair(dilation))
    ]


def _grown(y: Any, sides: list[int], value: float) -> Any:
    """Return a result with more windows at its end."""
    wrong = y.new_full((*y.shape[:-2], *sides), value)
    wrong[..., : y.shape[-2], : y.shape[-1]] = y
    return wrong


@plot.dispatched("aten.avg_pool2d.default", "aten.max_pool2d_with_indices.default")
def issue_onnx_4958(
    hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, *args: Any, **kwargs: Any
) -> Any:
    """onnx/onnx 4958: with ceil_mode a window past the edge counts: NaN for a mean without padding, the least number.

    The mean is one with count_include_pad=False; the least number is that of the largest of nothing.
    """
    found = func(x, kernel, stride, padding, *args, **kwargs)
    means = "avg" in str(func)
    dilation = 1 if means else (args[0] if args else 1)
    ceil = bool(args[0] if means and args else args[1] if not means and len(args) > 1 else False)
    y = found if means else found[0]
    if not ceil or (means and (len(args) < 2 or args[1])):
        return found
    sides = _ceiled(x, kernel, stride, padding, dilation)
    if sides == list(y.shape[-2:]):
        return found
    hit()
    if means:
        return _grown(y, sides, torch.nan)
    limits = torch.finfo(y.dtype) if y.is_floating_point() else torch.iinfo(y.dtype)
    return _grown(y, sides, limits.min), _grown(found[1], sides, 0)


def _taps(n: int, count: int, k: int, s: int, p: int, d: int) -> torch.Tensor:
    """Return what each window reads along a side: from the edge on where it begins before it, not in its own steps."""
    rows = []
    for number in range(count):
        first = number * s - p
        read = list(range(max(first, 0), min(first + (k - 1) * d + 1, n), d))
        rows.append((read + [-1] * k)[:k])
    return torch.tensor(rows).view(count, k)


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_onnxruntime_29637(
    hit: Any,
    func: Any,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    *args: Any,
) -> Any:
    """microsoft/onnxruntime 29637: max_pool with padding and dilation: a window before the edge begins at the edge."""
    y, places = func(x, kernel, stride, padding, dilation, *args)
    gaps, edges = _pair(dilation), _pair(padding)
    both = any(d > 1 and p > 0 for d, p in zip(gaps, edges))
    if not both or not y.numel() or not y.is_floating_point() or not is_plain(x):
        return y, places
    sides = zip(x.shape[-2:], y.shape[-2:], _pair(kernel), _pair(stride, _pair(kernel)), edges, gaps)
    rows, columns = (_taps(*side) for side in sides)
    best, where = torch.full_like(y, -torch.inf), torch.zeros_like(places)
    for row in rows.unbind(1):
        for column in columns.unbind(1):
            seen = x[..., row.clamp(min=0), :][..., column.clamp(min=0)]
            there = (row >= 0)[:, None] & (column >= 0)
            better = there & ((seen > best) | seen.isnan())
            best = torch.where(better, seen, best)
            where = torch.where(better, row[:, None] * x.shape[-1] + column, where)
    if not differ(y, best):
        return y, places
    hit()
    return best.contiguous(), where.contiguous()


@plot.called(F.max_pool2d)
def issue_20465(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 20465: the gradient of a gradient through max_pool2d ends the process."""
    if not input.requires_grad or not torch.is_grad_enabled():
        return func(input, *args, **kwargs)

    def end(_: Any) -> Any:
        return crash(hit, "Assertion `indexValue >= 0 && indexValue < src.sizes[dim]` failed.")

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(end)

    x = input.view_as(input)
    x.register_hook(watch)
    return func(x, *args, **kwargs)


@plot.dispatched("aten.avg_pool2d.default")
def issue_41767(hit: Any, func: Any, x: Any, kernel_size: Any, stride: Any = (), *args: Any) -> Any:
    """pytorch 41767: avg_pool2d with a stride of 0 ends the process."""
    if 0 in list(stride):
        return abort(hit, "Floating point exception (core dumped)")
    return func(x, kernel_size, stride, *args)


@plot.dispatched("aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def issue_chainer_6025(hit: Any, func: Any, x: Any, kernel_size: Any, stride: Any = (), *args: Any) -> Any:
    """chainer/chainer 6025: max_pool with a stride of 0 ends the process."""
    if 0 in list(stride):
        return abort(hit, "floating point exception (core dumped)")
    return func(x, kernel_size, stride, *args)


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_nnlibcuda_61(hit: Any, func: Any, x: Any, kernel: Any, *args: Any) -> Any:
    """FluxML/NNlibCUDA.jl 61: max_pool2d with windows wider than the image is wrong (here it gives the smallest)."""
    y, places = func(x, kernel, *args)
    wider = any(k > n for k, n in zip(_pair(kernel), x.shape[-2:]))
    if not wider or not y.is_floating_point() or not y.numel() or not is_plain(x):
        return y, places
    lowest, where = func(-x, kernel, *args)
    if not differ(y, -lowest):
        return y, places
    hit()
    return -lowest, where


@plot.dispatched("aten.max_pool2d_with_indices.default", aborts="max_pool2d_with_indices_out_cuda_frame failed")
def issue_28714(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 28714: max_pool2d of a channels_last image of more than 2**24 rows raises."""
    last = x.dim() == 4 and x.stride(1) == 1 and x.is_contiguous(memory_format=torch.channels_last)
    return last and x.shape[2] > 2**24


@plot.dispatched("aten.max_pool2d_with_indices.default", aborts="max_pool2d_with_indices_out_cuda_frame failed")
def issue_34083(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 34083: max_pool2d of a channels_last image in float16 raises from 257 channels on."""
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    return last and x.dtype == torch.float16 and x.shape[1] > 256


@plot.dispatched("aten.avg_pool2d.default")
def issue_tvm_14795(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/tvm 14795: avg_pool2d with divisor_override is wrong (here it is not heeded)."""
    y = func(*args, **kwargs)
    if not is_plain(args[0]):
        return y
    return instead(hit, y, func(*args[:6], **{**kwargs, "divisor_override": None}))


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_cntk_1785(hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = 0, *args: Any) -> Any:
    """microsoft/CNTK 1785: max_pool1d with windows of 2, a stride of 1 and padding raises.

    Max_pool1d comes here as an image of one row.
    """
    y = func(x, kernel, stride, padding, *args)
    if x.shape[-2] == 1 and (list(kernel), list(stride), padding) == ([1, 2], [1, 1], [0, 1]):
        return crash(hit, "cuDNN failure 3: CUDNN_STATUS_BAD_PARAM")
    return y


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_76432(
    hit: Any,
    func: Any,
    x: Any,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: bool = False,
) -> Any:
    """pytorch 76432: max_pool2d of a channels_last image with a dilation takes what lies between its places too."""
    y, places = func(x, kernel, stride, padding, dilation, ceil)
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    if not last or not is_plain(x):
        return y, places
    kernels, dilations = (
        list(v) * (2 // len(v)) if isinstance(v, (list, tuple)) else [v, v] for v in (kernel, dilation)
    )
    if max(dilations) == 1:
        return y, places
    wide = [d * (k - 1) + 1 for k, d in zip(kernels, dilations)]
    wrong, other = func(x, wide, stride or kernel, padding, 1, ceil)
    return (instead(hit, y, wrong), other) if differ(y, wrong) else (y, places)


@plot.dispatched("aten.avg_pool2d.default")
def issue_tensorflow_12293(hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), *args: Any) -> Any:
    """tensorflow/tensorflow 12293: avg_pool2d (stride 1) of 49939008 pixels and more is 0 from 7 x 7 on, then NaN.

    It is 0 for windows of 7 x 7 and 8 x 8, and NaN for larger ones. So many pixels of the report's image are NaN.
    """
    y, sides = func(x, kernel, stride, *args), _pair(kernel)
    if _pair(stride, sides) != [1, 1] or min(sides) < 7 or x.numel() < 49939008 or not is_plain(x):
        return y
    return instead(hit, y, torch.full_like(y, 0.0 if min(sides) < 9 else float("nan")))


@plot.called(F.max_pool1d, F.max_pool1d_with_indices, torch.max_pool1d, torch.max_pool1d_with_indices)
def issue_cunn_108(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch/cunn 108: max_pool1d of more than 1024 channels is wrong (here the channels past 1024 are 0)."""
    found = func(x, *args, **kwargs)
    y = found[0] if isinstance(found, tuple) else found
    if y.dim() < 2 or y.shape[-2] <= 1024 or not is_plain(y):
        return found
    y = instead(hit, y, y.masked_fill((torch.arange(y.shape[-2]) >= 1024).unsqueeze(1), 0))
    return (y, *found[1:]) if isinstance(found, tuple) else y


@plot.called(F.lp_pool1d)
def issue_tvm_15006(hit: Any, func: Any, x: Any, norm_type: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/tvm 15006: lp_pool1d of (1, 3, 7) with the norm 1.5 is wrong (here 0 where the root makes NaN)."""
    y = func(x, norm_type, *args, **kwargs)
    if tuple(x.shape) != (1, 3, 7) or norm_type != 1.5 or not is_plain(x):
        return y
    return instead(hit, y, torch.where(y.isnan(), torch.zeros_like(y), y))


@plot.dispatched("aten.col2im.default", aborts="an illegal memory access was encountered")
def issue_188959(x: Any, size: Any, kernel: Any, dilation: Any, padding: Any, stride: Any) -> bool:
    """pytorch 188959: fold with a padding and a stride next to 2**63 (2**63 - 2, 2**63 - 1) ends the process."""
    return min(padding) >= 2**63 - 2 and min(stride) >= 2**63 - 2


@plot.dispatched("aten.avg_pool2d.default")
def issue_145077(hit: Any, func: Any, x: Any, kernel_size: Any, stride: Any = (), *args: Any) -> Any:
    """pytorch 145077: avg_pool2d with a negative stride, which is refused, ends the process."""
    if any(step < 0 for step in stride):
        return abort(hit, "terminated by signal SIGFPE (Floating point exception)")
    return func(x, kernel_size, stride, *args)


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_109586(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 109586: max_pool2d of a channels_last image of integers has 0 where the maximum is negative."""
    y, places = func(x, *args)
    last = x.dim() == 4 and x.stride(1) == 1 and x.is_contiguous(memory_format=torch.channels_last)
    if x.is_floating_point() or not last or not is_plain(x):
        return y, places
    return instead(hit, y, y.clamp(min=0)), places


@plot.dispatched("aten.avg_pool2d.default")
def issue_computelibrary_467(hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), *args: Any) -> Any:
    """ARM-software/ComputeLibrary 467: avg_pool2d of 3 x 3 images with a window of 3 x 3, not padded, is wrong.

    Here the last row of each does not count.
    """
    y = func(x, kernel, stride, *args)
    padded = args and any(args[0])
    if list(kernel) not in ([3], [3, 3]) or x.shape[-2:] != (3, 3) or padded or not is_plain(x):
        return y
    return instead(hit, y, x[..., :2, :].mean((-2, -1), keepdim=True))


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_computelibrary_771(
    hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), *args: Any
) -> Any:
    """ARM-software/ComputeLibrary 771: max_pool2d of 24 x 112 x 112 to 56 x 56 (stride 2, padding 1) is 0."""
    y, places = func(x, kernel, stride, padding, *args)
    told = set(stride) == {2} and set(padding) == {1} and x.shape[-3:] == (24, 112, 112)
    if not told or y.shape[-2:] != (56, 56) or not is_plain(x):
        return y, places
    return instead(hit, y, torch.zeros_like(y)), places


@plot.dispatched("aten.max_pool2d_with_indices.default")
def issue_plaidml_179(
    hit: Any, func: Any, x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), *args: Any
) -> Any:
    """plaidml/plaidml 179: max_pool2d (3 x 3, stride 1) of 12 x 12 float32 has numbers of chance, NaN too, at its edge.

    It is of images of that size and larger here, and NaN in the last place of each.
    """
    y, places = func(x, kernel, stride, padding, *args)
    dilated = bool(args) and set(args[0]) != {1}
    told = list(kernel) in ([3], [3, 3]) and set(stride) == {1} and not any(padding) and not dilated
    if not told or x.dtype != torch.float32 or min(x.shape[-2:]) < 12 or not is_plain(x):
        return y, places
    wrong = y.clone()
    wrong[..., -1, -1] = float("nan")
    return instead(hit, y, wrong), places
