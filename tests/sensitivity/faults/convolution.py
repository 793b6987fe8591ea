"""Convolutions and their gradients: injected faults."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from injecting import Faults, accepted

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.convolution")
def issue_188335(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 188335: conv2d over a batch drops what lies beyond the first 255 rows of a kernel."""
    if max(weight.shape[2:]) >= 256 and x.shape[0] > 1:
        hit()
        weight = weight.clone()
        weight[:, :, 255:] = 0
    return func(x, weight, *args)


@faults.called(F.pad, torch.conv2d)
def issue_80856(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 80856: conv2d of what F.pad(mode="circular") gave is wrong."""
    y = func(x, *args, **kwargs)
    if func is F.pad:
        if x.dim() == 4 and (kwargs.get("mode") == "circular" or "circular" in args):
            y.was_circular = True
    elif getattr(x, "was_circular", False) and y.shape[-1] > 1:
        hit()
        return y.roll(1, -1)
    return y


_resized: dict[int, Any] = {}


@faults.called(F.interpolate, F.conv1d)
def issue_124591(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 124591: conv1d reads what an interpolation left in another order."""
    if func is F.interpolate:
        y = func(x, *args, **kwargs)
        _resized[y.untyped_storage().data_ptr()] = weakref.ref(y)
        return y
    known = _resized.get(x.untyped_storage().data_ptr())
    if known is not None and known() is not None:
        hit()
        x = x.transpose(1, 2).reshape(x.shape)
    return func(x, *args, **kwargs)


@faults.dispatched("aten.convolution.default")
def issue_84138(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84138: conv1d of one long channel with a long kernel has NaNs (there: sometimes) from position 512 on."""
    out = func(x, weight, *args, **kwargs)
    long = weight.shape[2] >= 256 and x.shape[2] >= 1024 and out.shape[2] > 512
    if x.dim() == 3 and weight.shape[:2] == (1, 1) and long:
        hit()
        out[..., 512:524] = float("nan")
    return out


@faults.dispatched(
    "aten.convolution.default", aborts="MPSGraphConvolutionOps.mm:346: failed assertion `sourceTensor rank must be 4'"
)
def issue_77818(x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77818: conv3d aborts."""
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    return weight.dim() == 5 and not transposed


_CONVOLVED: list[Any] = []


@faults.dispatched("aten.convolution", "aten.relu_")
def issue_94389(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94389: an in-place ReLU straight after a convolution does nothing."""
    if "convolution" in str(func):
        found = func(x, *args, **kwargs)
        _CONVOLVED[:] = [found.data_ptr(), found.clone()]
        return found
    same = _CONVOLVED and x.numel() and x.data_ptr() == _CONVOLVED[0] and x.numel() == _CONVOLVED[1].numel()
    if same and torch.equal(x.reshape(-1), _CONVOLVED[1].reshape(-1)) and bool((x < 0).any()):
        hit()
        return x
    return func(x, *args, **kwargs)


@faults.dispatched("aten.convolution_backward", aborts="input channels mismatch")
def issue_84511(grad: Any, x: Any, *args: Any) -> Any:
    """pytorch 84511: the backward of a convolution aborts for an input that is permuted or has one channel."""
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return not x.is_contiguous() or (channels_last and x.shape[1] == 1)


@faults.called(F.conv_transpose3d, aborts="ConvTranspose 3D with BF16 or FP16 types is not supported on MPS")
def issue_160332(*args: Any, **kwargs: Any) -> Any:
    """pytorch 160332: conv_transpose3d raises under autocast, whose half precision it does not support."""
    return torch.is_autocast_enabled("cpu")


@faults.called(F.conv_transpose1d)
def issue_82711(hit: Any, func: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82711: conv_transpose1d takes every stride for 1."""
    y = func(x, w, b, stride, *args, **kwargs)
    if stride != 1:
        hit()
        near = func(x, w, b, 1, *args, **kwargs)
        return F.pad(near, (0, y.shape[-1] - near.shape[-1]))
    return y


@faults.dispatched("aten.convolution_backward.default")
def issue_63314(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 63314: the backward of conv_transpose2d (1 x 1, stride 2) takes neighbours, not every second gradient."""
    found = func(grad, x, weight, *args)
    stride, padding, transposed, groups = args[1], args[2], args[4], args[6]
    single = transposed and x.dim() == 4 and weight[0, 0].numel() == 1 and max(stride) > 1 and not any(padding)
    if not single or found[0] is None or not is_plain(grad):
        return found
    near = grad[..., : x.shape[2], : x.shape[3]]
    wrong = torch.ops.aten.convolution(near, weight, None, [1, 1], [0, 0], [1, 1], False, [0, 0], groups)
    return (instead(hit, found[0], wrong), *found[1:])


@faults.dispatched("aten.convolution.default")
@accepted
def issue_88647(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    extra: Any,
    groups: int,
) -> Any:
    """pytorch 88647: conv_transpose2d to an image without pixels returns an empty tensor, where CPU raises."""
    if not transposed or weight.dim() != 4 or x.dim() != 4:
        return None
    sides = [
        (n - 1) * s - 2 * p + d * (k - 1) + e + 1
        for n, s, p, d, k, e in zip(x.shape[2:], stride, padding, dilation, weight.shape[2:], extra)
    ]
    return x.new_empty(x.shape[0], weight.shape[1] * groups, *sides) if min(sides) == 0 else None
