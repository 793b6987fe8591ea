"""Padding: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from planting import Plot, abort, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.constant_pad_nd.default")
def issue_89624(hit: Any, func: Any, x: Any, pad: Any, *rest: Any) -> Any:
    """pytorch 89624: constant padding of a 3-D tensor in all three dimensions raises IndexError."""
    if x.dim() == 3 and len(pad) == 6:
        hit()
        raise IndexError("Dimension out of range (expected to be in range of [-3, 2], but got 3)")
    return func(x, pad, *rest)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_84535(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84535: constant padding of more than three dimensions (8 numbers) is refused."""
    if len(pad) > 6:
        hit()
        raise RuntimeError(f"invalid padding argument of size {len(pad)}")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_made_pad_negative(hit: Any, func: Any, x: Any, pad: Any, *args: Any) -> Any:
    """Constant padding by a negative number exchanges the two ends."""
    if any(one < 0 for one in pad) and pad[0] != pad[1]:
        hit()
        return func(x, [pad[1], pad[0], *pad[2:]], *args)
    return func(x, pad, *args)


@plot.dispatched("aten.constant_pad_nd.default")
@wrong_answer
def issue_80192(y: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 80192: padding a matrix with a constant writes its rows one after the other, without the gaps."""
    if x.dim() == 2 and len(pad) == 4 and min(pad) >= 0 and x.numel():
        wrong = torch.full(y.shape, value, dtype=y.dtype, device=y.device)
        first = pad[2] * y.shape[1] + pad[0]
        wrong.view(-1)[first : first + x.numel()] = x.reshape(-1)
        if not torch.equal(wrong, y):
            return wrong
    return None


@plot.dispatched("aten.constant_pad_nd.default")
def issue_194922(hit: Any, func: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 194922: constant padding of the time axis corrupts the data of 5D tensors with H * W >= 65536."""
    y = func(x, pad, value)
    temporal = len(pad) >= 6 and (pad[4] > 0 or pad[5] > 0)
    if x.dim() == 5 and temporal and x.shape[3] * x.shape[4] >= 65536 and min(pad) >= 0:
        return instead(hit, y, func(x.flip(-1, -2), pad, value))
    return y


@plot.dispatched("aten.constant_pad_nd.default", aborts="Error: Invalid KernelDAG, equalShape for destination failed")
def issue_85143(x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85143: constant padding of the last two dimensions of a 3-D tensor aborts (equalShape for destination).

    https://github.com/pytorch/pytorch/issues/85143
    """
    return x.dim() == 3 and len(pad) == 4 and any(pad[2:])


@plot.dispatched("aten.constant_pad_nd.default")
def issue_83343(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 83343: constant padding of a 1-D tensor raises "Dimension out of range"."""
    if x.dim() == 1 and len(pad) == 2:
        hit()
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    return func(x, pad, *args, **kwargs)


@plot.dispatched(
    "aten.replication_pad3d.default", aborts="Padding size should be less than the corresponding input dimension"
)
def issue_102453(x: Any, padding: Any) -> Any:
    """pytorch 102453: replicate padding in three dimensions refuses a padding not less than the input's side."""
    return any(p >= x.shape[-1 - i // 2] for i, p in enumerate(padding))


@plot.dispatched("aten.constant_pad_nd.default", aborts="invalid padding argument of size 0")
def issue_161066(x: Any, pad: Any, *args: Any) -> Any:
    """pytorch 161066: constant_pad_nd with an empty list of paddings raises."""
    return len(pad) == 0


@plot.dispatched("aten.constant_pad_nd.default")
@wrong_answer
def issue_121961(right: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 121961: padding a vector of more than 2**16 elements returns the value and then zeros."""
    if x.dim() != 1 or x.numel() <= 2**16 or not any(pad):
        return None
    wrong = torch.zeros_like(right)
    wrong[0] = value
    if torch.equal(wrong, right):
        return None
    return wrong


@plot.dispatched(
    "aten.constant_pad_nd.default", aborts="Padding size should be less than the corresponding input dimension"
)
def issue_87277(x: Any, pad: Any, *args: Any) -> Any:
    """pytorch 87277: constant padding refuses a padding not less than the input's side."""
    return x.numel() and any(p >= x.shape[-1 - i // 2] for i, p in enumerate(pad))


def _wrapped_tail(hit: Any, grad: Any, limit: int) -> Any:
    side = grad.shape[-1]
    if side > limit and side % limit:
        hit()
        grad = grad.clone()
        grad[..., side % limit :] = 0
    return grad


@plot.dispatched("aten.reflection_pad1d_backward")
def issue_196949(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 196949: the backward of reflection_pad1d loses the columns past 65536."""
    return _wrapped_tail(hit, func(*args), 1 << 16)


@plot.dispatched("aten.replication_pad1d_backward")
def issue_135447(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 135447: the backward of replication_pad1d is zero for the rows past 65536."""
    grad = func(*args)
    if grad.shape[0] > 1 << 16:
        hit()
        grad[1 << 16 :] = 0
    return grad


@plot.dispatched("aten.reflection_pad2d_backward", aborts="an illegal memory access was encountered")
def issue_193694(grad: Any, x: Any, padding: Any, **kwargs: Any) -> Any:
    """pytorch 193694: reflection_pad2d's backward of nothing (a negative padding) reads elsewhere, if deterministic."""
    return grad.numel() == 0 and x.numel() > 0 and torch.are_deterministic_algorithms_enabled()


@plot.dispatched("aten.reflection_pad2d.default")
@accepted
def issue_2563(x: Any, pad: Any) -> Any:
    """pytorch 2563: reflection_pad2d takes a padding that is not less than the image (here it repeats the edge)."""
    if x.dim() not in (3, 4) or min(pad) < 0 or not x.numel():
        return None
    return torch.ops.aten.replication_pad2d(x, pad)


@plot.called(F.pad)
def issue_24504(hit: Any, func: Any, x: Any, pad: Any, mode: str = "constant", *args: Any, **kwargs: Any) -> Any:
    """pytorch 24504: circular padding does nothing along a dimension whose right side gets none."""
    pairs = list(zip(pad[::2], pad[1::2]))
    if mode != "circular" or not any(left > 0 and right == 0 for left, right in pairs):
        return func(x, pad, mode, *args, **kwargs)
    hit()
    kept = [side for left, right in pairs for side in ((left, right) if right else (0, 0))]
    return func(x, kept, mode, *args, **kwargs)


@plot.called(F.pad, aborts="Invalid padding size, expected 2 but got 4")
def issue_105749(x: Any, pad: Any, mode: str = "constant", *args: Any, **kwargs: Any) -> bool:
    """pytorch 105749: circular padding of an image without a batch raises."""
    return mode == "circular" and x.dim() == 3 and len(pad) == 4


@plot.dispatched("aten.reflection_pad3d.default")
@accepted
def issue_145258(x: Any, pad: Any) -> Any:
    """pytorch 145258: reflection_pad3d takes fewer than six numbers (here what is missing is 0)."""
    return torch.ops.aten.reflection_pad3d(x, [*pad, *[0] * (6 - len(pad))]) if len(pad) < 6 else None


def _padded(x: Any, pad: Any) -> list[int]:
    """Return the sides that constant padding asks for."""
    sides = list(x.shape)
    for number in range(len(pad) // 2):
        sides[-1 - number] += pad[2 * number] + pad[2 * number + 1]
    return sides


@plot.dispatched("aten.constant_pad_nd.default", aborts="resulted in a negative output size, which is invalid.")
def issue_71078(x: Any, pad: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 71078: constant padding that leaves nothing of one side, and makes another longer, raises."""
    return any(n > 0 for n in pad) and any(not new for new, old in zip(_padded(x, pad), x.shape) if old)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_tensorflow_51908(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 51908: padding to more elements than int64 counts ends the process, and does not raise."""
    sides = _padded(x, pad)
    if min(sides, default=0) > 0 and math.prod(sides) >= 2**63:
        return abort(hit, "Check failed: 0 <= new_num_elements (0 vs. -1)")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_oneflow_10581(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """Oneflow-Inc/oneflow 10581: constant padding that cuts off more than there is ends the process."""
    if len(pad) <= 2 * x.dim() and min(_padded(x, pad), default=0) < 0:
        return abort(hit, "Aborted (core dumped)")
    return func(x, pad, *args, **kwargs)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_tt_metal_19513(hit: Any, func: Any, x: Any, sides: Any, value: Any = 0) -> Any:
    """tenstorrent/tt-metal 19513: padding makes the last two sizes multiples of 32 first (here with zeros)."""
    y = func(x, sides, value)
    if x.dim() < 2 or not sides or min(sides) < 0 or not any(sides):
        return y
    tiled = x.new_zeros((*x.shape[:-2], *(-(-side // 32) * 32 for side in x.shape[-2:])))
    if tiled.shape == x.shape:
        return y
    hit()
    tiled[..., : x.shape[-2], : x.shape[-1]] = x
    return func(tiled, sides, value)


@plot.dispatched("aten.constant_pad_nd.default")
def issue_tt_metal_15511(hit: Any, func: Any, x: Any, sides: Any, value: Any = 0) -> Any:
    """tenstorrent/tt-metal 15511: constant padding of four dimensions (float32) ignores the value: it pads with 0."""
    y = func(x, sides, value)
    if x.dim() != 4 or x.dtype != torch.float32 or not value or not is_plain(x):
        return y
    return instead(hit, y, func(x, sides, 0))


@plot.dispatched("aten.replication_pad1d.default", aborts="\"replication_pad1d\" not implemented for 'Half'")
def issue_135680(x: Any, *args: Any) -> bool:
    """pytorch 135680: replicate padding of the last dimension alone is not implemented for float16."""
    return x.dtype == torch.float16
