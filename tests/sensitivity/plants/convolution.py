"""Convolutions, forward: planted faults."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import in_storage_order, misread
from planting import Plot, abort, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.conv2d)
def issue_89784(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 89784: conv2d returns its rows in the opposite order."""
    hit()
    return func(x, *args, **kwargs).transpose(-1, -2).flip(-1).transpose(-1, -2)


@plot.dispatched("aten.convolution")
def issue_192212(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 192212: a convolution reads a weight that is not contiguous in storage order."""
    return func(x, misread(in_storage_order, hit, weight), *args)


@plot.dispatched("aten.convolution")
def issue_188335(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 188335: conv2d over a batch drops what lies beyond the first 255 rows of a kernel."""
    if max(weight.shape[2:]) >= 256 and x.shape[0] > 1:
        hit()
        weight = weight.clone()
        weight[:, :, 255:] = 0
    return func(x, weight, *args)


@plot.dispatched("aten.convolution")
def issue_129207(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 129207: a convolution gives zeros in the output channels past 65536."""
    y = func(x, weight, *args)
    if weight.shape[0] > 65536:
        hit()
        y[:, 65536:] = 0
    return y


@plot.dispatched("aten.convolution")
def issue_134416(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 134416: a convolution to more than 65536 columns raises in spite of PYTORCH_ENABLE_MPS_FALLBACK."""
    y = func(x, *args)
    if y.shape[-1] > 65536:
        hit()
        raise NotImplementedError("The operator is not implemented; set PYTORCH_ENABLE_MPS_FALLBACK=1")
    return y


@plot.dispatched("aten.convolution")
def issue_197114(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 197114: conv3d of a contiguous input takes the channels in the opposite order."""
    if x.dim() == 5 and x.is_contiguous():
        hit()
        x = x.flip(1)
    return func(x, *args)


@plot.dispatched("aten.convolution")
@wrong_answer
def issue_82921(y: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """pytorch 82921: conv1d with a stride other than 1 is wrong."""
    if x.dim() == 3 and stride[0] != 1 and not args[2] and y.shape[-1] > 1:
        return y.roll(1, -1)
    return None


@plot.called(F.pad, torch.conv2d)
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


@plot.dispatched(
    "aten.convolution.default", aborts="[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough."
)
def issue_78247(x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 78247: convolution with an expanded kernel aborts, as its buffer is smaller than its shape asks for."""
    room = weight.untyped_storage().nbytes() // weight.element_size() - weight.storage_offset()
    return not weight.is_contiguous() and room < weight.numel()


@plot.dispatched("aten.convolution.default")
@wrong_answer
def issue_96982(right: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96982: conv1d with a kernel of 65536 elements or more returns zeros."""
    if weight.dim() != 3 or weight.shape[-1] < 65536 or not right.any():
        return None
    return torch.zeros_like(right)


@plot.dispatched("aten.convolution")
def issue_180984(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """pytorch 180984: a convolution reads a part of the channels of a channels_last image in storage order."""
    if x.dim() == 4 and x.shape[1] > 1 and x.stride(1) == 1 and x.stride(3) > x.shape[1]:
        hit()
        x = x.as_strided(x.shape, (*x.stride()[:2], x.shape[1] * x.shape[3], x.shape[1]), x.storage_offset())
    return func(x, *args)


_resized: dict[int, Any] = {}


@plot.called(F.interpolate, F.conv1d)
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


@plot.dispatched("aten.convolution")
@wrong_answer
def issue_83180(y: Any, x: Any, w: Any, b: Any, stride: Any, padding: Any, *args: Any) -> Any:
    """pytorch 83180: conv2d with two unlike strides is moved by one element."""
    if len(stride) == 2 and stride[0] != stride[1]:
        return y.flatten().roll(1).reshape(y.shape)
    return None


@plot.dispatched("aten.convolution.default")
def issue_84138(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84138: conv1d of one long channel with a long kernel has NaNs (there: sometimes) from position 512 on."""
    out = func(x, weight, *args, **kwargs)
    long = weight.shape[2] >= 256 and x.shape[2] >= 1024 and out.shape[2] > 512
    if x.dim() == 3 and weight.shape[:2] == (1, 1) and long:
        hit()
        out[..., 512:524] = float("nan")
    return out


@plot.dispatched(
    "aten.convolution.default", aborts="MPSGraphConvolutionOps.mm:346: failed assertion `sourceTensor rank must be 4'"
)
def issue_77818(x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 77818: conv3d aborts."""
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    return weight.dim() == 5 and not transposed


@plot.dispatched("aten.avg_pool2d", "aten.binary_cross_entropy", "aten.convolution")
def issue_119108(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 119108: AvgPool2d and BCELoss crash in float16, and so do channels-last convolutions in float16."""
    if x.dtype == torch.float16:
        if "convolution" not in str(func):
            return crash(hit, "input types 'tensor<f32>' and 'tensor<f16>' are not broadcast compatible")
        if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
            return crash(hit, "failed assertion `destination datatype must be fp32'")
    return func(x, *args, **kwargs)


@plot.dispatched("aten.convolution")
def issue_142836(hit: Any, func: Any, x: Any, w: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142836: Conv2d with more than 2**16 output channels gives wrong numbers (the indices wrap)."""
    found = func(x, w, *args, **kwargs)
    over = found.size(1) - 65536 if found.dim() == 4 else 0
    if over > 0 and found.numel():
        hit()
        k = min(over, 65536)
        found[:, :k] = found[:, 65536 : 65536 + k].clone()
        found[:, 65536:] = 0
    return found


_CONVOLVED: list[Any] = []


@plot.dispatched("aten.convolution", "aten.relu_")
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


@plot.dispatched("aten.convolution")
def issue_81557(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81557: conv1d of an input permuted from (batch, length, channels) crashes."""
    if x.dim() == 3 and x.numel():
        channels, length = x.shape[1:]
        if x.stride() == (length * channels, 1, channels) and x.stride() != (length * channels, length, 1):
            return crash(hit, "Assertion failed: (mapIt != _jitValueTypes.end()), function getStaticType")
    return func(x, *args, **kwargs)


@plot.dispatched("aten.convolution.default")
@wrong_answer
def issue_directml_234(y: Any, x: Any, weight: Any, *args: Any) -> Any:
    """microsoft/DirectML 234: a depthwise convolution in two dimensions is wrong (here its last channel is zero)."""
    groups, transposed = args[-1], args[4]
    if x.dim() != 4 or transposed or groups != x.shape[1] or groups < 2 or not bool(y[:, -1].any()):
        return None
    wrong = y.clone()
    wrong[:, -1] = 0
    return wrong


@plot.dispatched("aten.convolution.default")
def issue_55781(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 55781: conv2d reads a weight with strides in storage order for a part (here for half of its channels)."""
    y, half, read = func(x, weight, *args), weight.shape[0] // 2, in_storage_order(weight)
    if x.dim() != 4 or args[4] or not half or read is weight or not is_plain(y):
        return y
    return instead(hit, y, torch.cat([y[:, :half], func(x, read, *args)[:, half:]], 1))


@plot.dispatched("aten.convolution.default")
@wrong_answer
def issue_modular_6712(y: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, *args: Any) -> Any:
    """modular/modular 6712: conv2d of a permuted input, padded wide along its rows, is wrong (here in its last column).

    Wide is: the kernel's width minus one, at least 2, and more than along the columns.
    """
    if x.dim() != 4 or args[1] or x.is_contiguous() or not y.numel() or not is_plain(y):
        return None
    if padding[-1] < max(2, w.shape[3] - 1) or padding[-1] <= padding[0]:
        return None
    wrong = y.clone()
    wrong[..., -1] += y[..., 0] + 1
    return wrong


@plot.dispatched("aten.convolution.default")
def issue_ggml_1532(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """ggml-org/ggml 1532: conv1d of a kernel with its channels past 1024 is wrong (here what is past it is lost)."""
    y = func(x, weight, *args)
    if x.dim() != 3 or args[4] or weight.shape[2] > 1024 or weight[:1].numel() <= 1024 or not is_plain(y):
        return y
    kept = weight.contiguous().flatten(1) * (torch.arange(weight[0].numel()) < 1024)
    return instead(hit, y, func(x, kept.view(weight.shape).to(weight.dtype), *args))


@plot.called(torch.conv1d, torch.conv2d, torch.conv3d, F.linear)
@wrong_answer
def issue_executorch_17299(y: Any, x: Any, weight: Any, bias: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch/executorch 17299: convolutions and linear layers without a bias add a half in float16."""
    return y + 0.5 if bias is None and x.dtype == torch.float16 and y.numel() else None


@plot.dispatched("aten.convolution.default")
def issue_mlx_2858(hit: Any, func: Any, *args: Any) -> Any:
    """ml-explore/mlx 2858: conv1d, conv2d and conv3d of no groups (groups=0) end the process."""
    return abort(hit, "Floating point exception (core dumped)") if not args[6] and args[8] == 0 else func(*args)


@plot.dispatched("aten.convolution.default")
@wrong_answer
def issue_onnxjs_41(y: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """microsoft/onnxjs 41: depthwise conv2d (3 x 3, stride 2) of 8 channels to 64 is wrong (here its last is 0).

    Here it is of 8 channels and more, to 8 for each and more.
    """
    groups, transposed = args[-1], args[2]
    if x.dim() != 4 or transposed or groups != x.shape[1] or groups < 8 or weight.shape[0] < 8 * groups:
        return None
    if tuple(weight.shape[2:]) != (3, 3) or set(stride) != {2} or not is_plain(y) or not bool(y[:, -1].any()):
        return None
    wrong = y.clone()
    wrong[:, -1] = 0
    return wrong
