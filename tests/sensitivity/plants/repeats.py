"""Tensors that are repeated, tiled, flipped or expanded: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, abort, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.repeat.default")
def issue_paddle_79366(hit: Any, func: Any, x: Any, repeats: Any) -> Any:
    """PaddlePaddle/Paddle 79366: repeat and tile refuse a count of 0."""
    return crash(hit, "every count must be greater than 0") if 0 in repeats else func(x, repeats)


@plot.dispatched("aten.repeat.default")
def issue_tensorflow_61643(hit: Any, func: Any, x: Any, repeats: Any) -> Any:
    """tensorflow/tensorflow 61643: a negative count of repeat ends with an illegal memory access, not refused."""
    return abort(hit, "CUDA_ERROR_ILLEGAL_ADDRESS") if any(n < 0 for n in repeats) else func(x, repeats)


@plot.dispatched("aten.repeat.default")
def issue_burn_1670(hit: Any, func: Any, x: Any, repeats: Any) -> Any:
    """tracel-ai/burn 1670: repeat along a dimension of another size than 1 raises."""
    y = func(x, repeats)
    last = list(repeats)[len(repeats) - x.dim() :]
    if any(n > 1 and side != 1 for n, side in zip(last, x.shape)):
        return crash(hit, "Can only repeat dimension with dim=1")
    return y


@plot.called(torch.tile, torch.Tensor.tile)
def issue_dpctl_1627(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """IntelPython/dpctl 1627: tile of a tensor without dimensions, no counts given, has one dimension."""
    y = func(x, *args, **kwargs)
    if y.dim() or not is_plain(y):
        return y
    hit()
    return y.reshape(1)


@plot.dispatched("aten.flip.default")
def issue_cupynumeric_577(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """nv-legate/cupynumeric 577: flip does nothing along a dimension that is counted from the end."""
    y = func(x, dims)
    if all(dim >= 0 for dim in dims) or not is_plain(x):
        return y
    return instead(hit, y, func(x, [dim for dim in dims if dim >= 0]))


@plot.dispatched("aten.flip.default")
def issue_49982(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 49982: flip along no dimensions raises."""
    return func(x, dims) if len(dims) else crash(hit, "flip dims size out of range, got flip dims size=0")


@plot.called(torch.Tensor.expand)
def issue_xla_3394(hit: Any, func: Any, x: Any, *sizes: Any, **kwargs: Any) -> Any:
    """pytorch/xla 3394: expand copies: what is written to the tensor later is not seen."""
    y = func(x, *sizes, **kwargs)
    if y.shape == x.shape or not is_plain(x):
        return y
    hit()
    return y.contiguous() if y.numel() > 1 and not y.is_contiguous() else y.clone()


@plot.called(torch.Tensor.repeat)
def issue_tt_metal_55799(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 55799: the backward of repeat (four dimensions) raises where a last side is no tile of 32.

    Where a dimension of the last two is repeated, there is no gradient. Where a repeated one of the first two has
    a size over 1, the gradient is the sum over all of that dimension (there of size 1, here for each place).
    """
    counts = args[0] if args and isinstance(args[0], (tuple, list)) else kwargs.get("repeats", args)
    if x.dim() != 4 or len(counts) != 4 or max(counts) < 2 or min(counts) < 1:
        return func(x, *args, **kwargs)

    def change(grad: Any) -> Any:
        if any(side % 32 for side in x.shape[2:]):
            return crash(hit, "TT_FATAL: shapes do not match")
        if max(counts[2:]) > 1:
            return crash(hit, "list index out of range")
        wrong = grad
        for dim in (0, 1):
            if counts[dim] > 1 and x.shape[dim] > 1:
                wrong = wrong.sum(dim, True).expand_as(grad)
        return instead(hit, grad, wrong.contiguous())

    return func(with_gradient(x, change), *args, **kwargs)


@plot.called(torch.repeat_interleave, torch.Tensor.repeat_interleave)
def issue_tt_metal_43726(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 43726: repeat_interleave of a vector, by a number, raises."""
    y = func(*args, **kwargs)
    x = args[0] if args else kwargs.get("input")
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats")
    vector = torch.is_tensor(x) and x.dim() == 1 and isinstance(repeats, int)
    return crash(hit, "TT_FATAL: Index is out of bounds for the rank") if vector else y


@plot.dispatched("aten.flip.default")
def issue_52062(hit: Any, func: Any, x: Any, dims: Any) -> Any:
    """pytorch 52062: flip of bools that are not contiguous raises."""
    y = func(x, dims)
    slice_of_bools = x.dtype == torch.bool and not x.is_contiguous()
    return crash(hit, "\"flip_cuda\" not implemented for 'Bool'") if slice_of_bools else y


@plot.dispatched("aten.repeat.default")
def issue_arrayfire_2348(hit: Any, func: Any, x: Any, repeats: Any) -> Any:
    """arrayfire/arrayfire 2348: tile along a last dimension of 1 (four dimensions) has zeros in large results.

    There in 36 million numbers, for most sizes; here from 2**25 on, and its last is zero.
    """
    y = func(x, repeats)
    once = all(n == 1 for n in repeats[:-1])
    if x.dim() != 4 or len(repeats) != 4 or x.shape[-1] != 1 or not once or y.numel() < 2**25 or not is_plain(x):
        return y
    wrong = y.clone()
    wrong.view(-1)[-1] = 0
    return instead(hit, y, wrong)
