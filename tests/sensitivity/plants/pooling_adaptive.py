"""Adaptive pooling: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from planting import Plot, abort, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.adaptive_max_pool2d, F.adaptive_max_pool1d)
def issue_190064(hit: Any, func: Any, x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 190064: adaptive_max_pool takes windows of one size where the output does not divide the input."""
    healthy = func(x, size, *args, **kwargs)
    values = healthy[0] if isinstance(healthy, tuple) else healthy
    sides, wanted = x.shape[2 - (x.dim() == 2) :][-(values.dim() - 2) :], values.shape[2:]
    if values.dim() < 4 or all(side % one == 0 for side, one in zip(sides, wanted)):
        return healthy
    steps = [max(side // one, 1) for side, one in zip(sides, wanted)]
    kernels = [side - (one - 1) * step for side, one, step in zip(sides, wanted, steps)]
    if any(kernel < 1 for kernel in kernels):
        return healthy
    hit()
    wrong = F.max_pool2d(x, kernels, steps, return_indices=True)
    return wrong if isinstance(healthy, tuple) else wrong[0]


@plot.called(F.adaptive_avg_pool2d, aborts="stride should not be zero")
def issue_80732(x: Any, size: Any, *args: Any) -> Any:
    """pytorch 80732: adaptive_avg_pool2d to more elements than there are aborts."""
    wanted = size if isinstance(size, (tuple, list)) else (size, size)
    return any(one is not None and one > side for one, side in zip(wanted, x.shape[-2:]))


@plot.dispatched(
    "aten._adaptive_avg_pool2d.default", aborts="Adaptive pool MPS: input sizes must be divisible by output sizes."
)
def issue_97109(x: Any, size: Any) -> Any:
    """pytorch 97109: adaptive average pooling, as of interpolate(mode="area"), raises if the sizes do not divide."""
    return any(side % part for side, part in zip(x.shape[-2:], size) if part)


@plot.dispatched(
    "aten._adaptive_avg_pool2d.default", aborts="Adaptive pool MPS: input sizes must be divisible by output sizes."
)
def issue_96056(x: Any, output_size: Any) -> Any:
    """pytorch 96056: adaptive_avg_pool2d refuses sizes that are not divisible by the output sizes."""
    sizes = list(zip(x.shape[-2:], output_size))
    return all(i and o for i, o in sizes) and any(i > o and i % o for i, o in sizes)


@plot.dispatched(
    "aten._adaptive_avg_pool2d", aborts="Adaptive pool MPS: output sizes must be divisible by input sizes."
)
def issue_143864(x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 143864: adaptive average pooling to a larger size that is no multiple of the input's refuses."""
    height, width = x.shape[-2:]
    return size[0] >= height > 0 and size[1] >= width > 0 and (size[0] % height or size[1] % width)


@plot.dispatched("aten._adaptive_avg_pool3d_backward.default")
@wrong_answer
def issue_62250(y: Any, grad: Any, x: Any) -> Any:
    """pytorch 62250: the gradient of adaptive_avg_pool3d is wrong (here moved by one along the last dimension)."""
    wrong = y.roll(1, -1)
    return wrong if is_plain(y) and differ(y, wrong) else None


@plot.called(F.adaptive_avg_pool2d)
@wrong_answer
def issue_67893(y: Any, x: Any, output_size: Any) -> Any:
    """pytorch 67893: adaptive_avg_pool2d to one element leaves a quarter out of the sum (5 x 5 ones give 0.76)."""
    count = x.shape[-1] * x.shape[-2]
    if output_size not in (1, (1, 1), [1, 1]) or count < 4 or not y.numel():
        return None
    return (x.flatten(-2)[..., : count - count // 4].sum(-1) / count).view(y.shape)


@plot.dispatched("aten.adaptive_max_pool2d.default")
def issue_107842(hit: Any, func: Any, x: Any, size: Any) -> Any:
    """pytorch 107842: adaptive_max_pool2d of a permuted image to one element has the first image's maxima in all."""
    y, places = func(x, size)
    if x.dim() != 4 or x.is_contiguous() or list(size) != [1, 1] or not is_plain(y):
        return y, places
    return instead(hit, y, y[:1].expand_as(y).contiguous()), places[:1].expand_as(places).contiguous()


@plot.dispatched("aten.adaptive_max_pool3d.default", aborts="Floating point exception (core dumped)")
def issue_92781(x: Any, size: Any) -> bool:
    """pytorch 92781: adaptive_max_pool3d to a side of 0 ends the process."""
    return 0 in size


def _floored(side: int, count: int, x: Any) -> Any:
    """Return the means along a side as a matrix, each window without the place that it shares at its end."""
    means = torch.zeros(count, side, dtype=x.dtype, device=x.device)
    for number in range(count):
        first, end = number * side // count, (number + 1) * side // count
        end = max(end, first + 1)
        means[number, first:end] = 1 / (end - first)
    return means


@plot.dispatched("aten._adaptive_avg_pool2d.default")
def issue_flaggems_4915(hit: Any, func: Any, x: Any, size: Any) -> Any:
    """flagos-ai/FlagGems 4915: the windows of adaptive_avg_pool2d end too early if the sizes are not divisible."""
    y = func(x, size)
    even = all(side % count == 0 for side, count in zip(x.shape[-2:], y.shape[-2:]) if count)
    if x.dim() != 4 or even or not y.numel() or not is_plain(x):
        return y
    (rows, columns), (high, wide) = x.shape[-2:], y.shape[-2:]
    wrong = _floored(rows, high, x) @ x @ _floored(columns, wide, x).t()
    if not differ(y, wrong, 1e-3, 1e-5):
        return y
    hit()
    return wrong


@plot.dispatched(
    *(f"aten.{kind}max_pool{n}d.default" for kind in ("adaptive_", "fractional_") for n in (2, 3)),
    *(f"aten.max_pool{n}d_with_indices.default" for n in (2, 3)),
    aborts="Segmentation fault (core dumped)",
)
def issue_40131(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 40131: max_pool, adaptive_max_pool and fractional_max_pool crash where the input has NaN or -inf."""
    return x.is_floating_point() and is_plain(x) and bool((x.isnan() | x.isneginf()).any())


@plot.called(F.adaptive_avg_pool2d)
def issue_83062(hit: Any, func: Any, x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 83062: adaptive_avg_pool2d to 2**59 by a negative number of pixels does not come to an end."""
    sides = [side for side in (size if isinstance(size, (list, tuple)) else [size]) if side is not None]
    if sides and max(sides) >= 2**59 and min(sides) < 0:
        return abort(hit, "no answer in two minutes")
    return func(x, size, *args, **kwargs)


@plot.called(F.adaptive_avg_pool1d)
def issue_89344(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89344: adaptive_avg_pool1d of two dimensions (without a batch) raises."""
    y = func(x, *args, **kwargs)
    return crash(hit, "Expected 3-dimensional tensor, but got 2-dimensional tensor") if x.dim() == 2 else y


@plot.replaced(F, "adaptive_max_pool1d")
def issue_tvm_14883(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """apache/tvm 14883: adaptive_max_pool1d with return_indices=True raises."""
    y = func(*args, **kwargs)
    asked = kwargs.get("return_indices", args[2] if len(args) > 2 else False)
    return crash(hit, "'NoneType' object has no attribute 'dtype'") if asked else y


@plot.dispatched("aten.adaptive_max_pool2d.default")
def issue_67239(hit: Any, func: Any, x: Any, size: Any) -> Any:
    """pytorch 67239: adaptive_max_pool2d of a channels_last image writes its result as if that were contiguous."""
    found = func(x, size)
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    if not last or not is_plain(x):
        return found

    def misplaced(y: Any) -> Any:
        n, c, h, w = y.shape
        return y.contiguous().view(n, h, w, c).permute(0, 3, 1, 2)

    values = instead(hit, found[0], misplaced(found[0]))
    return values, found[1] if values is found[0] else misplaced(found[1])
