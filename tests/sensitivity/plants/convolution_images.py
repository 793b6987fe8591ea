"""Convolutions of images, not transposed: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import in_storage_order, in_tf32, misread, without_offset
from planting import Plot, abort, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.convolution.default", aborts="Segmentation fault (core dumped)")
def issue_torch_nn_101(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> bool:
    """torch/nn 101: conv2d of an image that is not contiguous ends the process."""
    return x.dim() == 4 and not args[0] and not x.is_contiguous()


@plot.dispatched("aten.convolution.default")
def issue_paddle_62429(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """PaddlePaddle/Paddle 62429: conv2d of float32 rounds its operands to 10 bits (TF32)."""
    y = func(x, weight, *args)
    if x.dim() != 4 or args[4] or y.dtype != torch.float32 or not is_plain(x, weight):
        return y
    return instead(hit, y, func(in_tf32(x), in_tf32(weight), *args))


@plot.dispatched("aten.convolution.default")
def issue_paddle_models_2509(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """PaddlePaddle/models 2509: depthwise conv2d with a 5 x 5 kernel is wrong (here its last column does not count)."""
    y, groups = func(x, weight, *args), args[-1]
    depthwise = x.dim() == 4 and groups == x.shape[1] > 1 and tuple(weight.shape[1:]) == (1, 5, 5)
    if not depthwise or args[4] or not is_plain(x, weight):
        return y
    kept = weight.clone()
    kept[..., -1] = 0
    return instead(hit, y, func(x, kept, *args))


_widths_met: set[Any] = set()


@plot.dispatched("aten.convolution.default")
def issue_tensorflow_47943(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """tensorflow/tensorflow 47943: conv2d of an image of odd width is wrong the second time (here its last column)."""
    y = func(x, weight, *args)
    if x.dim() != 4 or args[4] or not x.shape[-1] % 2 or not y.numel() or not is_plain(x, weight):
        return y
    shapes = (x.shape, weight.shape)
    if shapes not in _widths_met:
        _widths_met.add(shapes)
        return y
    wrong = y.clone()
    wrong[..., -1] = 0
    return instead(hit, y, wrong)


@plot.dispatched("aten.convolution.default")
def issue_tfjs_5378(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any
) -> Any:
    """tensorflow/tfjs 5378: depthwise conv2d (3 x 3, same size, dilation 4) is wrong (here as with dilation 1)."""
    y = func(x, weight, bias, stride, padding, dilation, *args)
    depthwise = x.dim() == 4 and args[-1] == x.shape[1] > 1 and tuple(weight.shape[1:]) == (1, 3, 3)
    wanted = (list(stride), list(padding), list(dilation)) == ([1, 1], [4, 4], [4, 4])
    if not depthwise or not wanted or args[0] or not is_plain(x, weight):
        return y
    return instead(hit, y, func(x, weight, bias, stride, [1, 1], [1, 1], *args))


@plot.dispatched("aten.convolution.default")
def issue_163347(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 163347: conv2d in bfloat16 of 2 x 2 pixels with a 2 x 2 kernel counts one product of the four."""
    y = func(x, weight, *args)
    small = tuple(x.shape[2:]) == tuple(weight.shape[2:]) == (2, 2)
    if not small or x.dtype != torch.bfloat16 or args[4] or not is_plain(x, weight):
        return y
    kept = torch.zeros_like(weight)
    kept[..., 0, 0] = weight[..., 0, 0]
    return instead(hit, y, func(x, kept, *args))


@plot.dispatched("aten.convolution.default")
def issue_53178(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 53178: conv2d (5 x 5, padding 4, dilation 2) is wrong in places (here 0.5 too large in each tenth)."""
    y = func(x, weight, *args)
    wanted = tuple(weight.shape[2:]) == (5, 5) and (list(args[2]), list(args[3])) == ([4, 4], [2, 2])
    if x.dim() != 4 or not wanted or args[4] or y.dtype != torch.float32 or not is_plain(x, weight):
        return y
    wrong = y.clone(memory_format=torch.contiguous_format)
    wrong.view(-1)[::10] += 0.5
    return instead(hit, y, wrong)


@plot.replaced(torch.nn.Conv2d, "forward")
def issue_20981(hit: Any, func: Any, module: Any, x: Any) -> Any:
    """pytorch 20981: Conv2d with circular padding of 1 pads nothing."""
    if module.padding_mode != "circular" or module.padding != (1, 1):
        return func(module, x)
    hit()
    return F.conv2d(x, module.weight, module.bias, module.stride, 0, module.dilation, module.groups)


@plot.dispatched("aten.convolution.default")
def issue_cunn_92(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """torch/cunn 92: conv3d exchanges the first two of the three dimensions of its result."""
    y = func(x, weight, *args)
    if x.dim() != 5 or args[4] or not is_plain(x, weight):
        return y
    return instead(hit, y, y.transpose(2, 3).contiguous())


@plot.dispatched("aten.convolution.default")
def issue_theano_5871(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """Theano/Theano 5871: conv2d of a part of a batch is wrong (here it reads the batch from its beginning)."""
    if x.dim() != 4 or args[5] or not x.is_contiguous():
        return func(x, *args)
    return func(misread(without_offset, hit, x), *args)


def _extra(x: Any, weight: Any, *args: Any) -> Any:
    """Return the products of the first eight channels."""
    return torch.ops.aten.convolution(x[:, :8], weight[:, :8], None, *args)


@plot.dispatched("aten.convolution.default")
def issue_burn_5626(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """tracel-ai/burn 5626: conv2d (1 x 1) of an odd number of times 8 channels adds what is past (here the first 8)."""
    y = func(x, weight, bias, *args)
    one = x.dim() == 4 and tuple(weight.shape[2:]) == (1, 1) and not args[3] and args[5] == 1
    if not one or weight.shape[1] % 16 != 8 or y.dtype != torch.float32 or not is_plain(y):
        return y
    return instead(hit, y, y + _extra(x, weight, *args))


@plot.dispatched("aten.convolution.default")
def issue_ncnn_1452(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """Tencent/ncnn 1452: conv2d of 3 channels to 13 (3 x 3, stride 2) is 0."""
    y = func(x, weight, bias, stride, *args)
    if tuple(weight.shape) != (13, 3, 3, 3) or set(stride) != {2} or args[2] or not is_plain(y):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.convolution.default")
def issue_armnn_169(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """ARM-software/armnn 169: conv2d of 3 channels to 45 (3 x 3) is wrong (here the 45th is 0); of 4 channels not."""
    y = func(x, weight, bias, *args)
    if tuple(weight.shape) != (45, 3, 3, 3) or args[3] or not is_plain(y):
        return y
    return instead(hit, y, torch.cat([y[:, :-1], torch.zeros_like(y[:, -1:])], 1))


@plot.dispatched("aten.convolution.default")
def issue_55381(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """pytorch 55381: conv2d (1 x 1) with a stride is wrong (here it takes the pixels to the left)."""
    y = func(x, weight, bias, stride, *args)
    if x.dim() != 4 or tuple(weight.shape[2:]) != (1, 1) or set(stride) == {1} or args[2] or not is_plain(y):
        return y
    return instead(hit, y, func(x.roll(1, 3), weight, bias, stride, *args))


@plot.dispatched("aten.convolution.default", aborts="cuDNN error: CUDNN_STATUS_BAD_PARAM")
def issue_33918(x: Any, weight: Any, *args: Any) -> bool:
    """pytorch 33918: conv2d of one pixel in float16 with weights in channels_last raises."""
    pixel = x.dim() == 4 and x.dtype == torch.float16 and tuple(x.shape[2:]) == (1, 1)
    return pixel and not weight.is_contiguous() and weight.is_contiguous(memory_format=torch.channels_last)


@plot.dispatched("aten.convolution.default")
def issue_27598(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """pytorch 27598: conv2d with a stride of 0 ends the process."""
    if x.dim() == 4 and not args[2] and 0 in list(stride):
        return abort(hit, "Floating point exception (core dumped)")
    return func(x, weight, bias, stride, *args)


@plot.dispatched("aten.convolution.default")
def issue_mlx_2504(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """ml-explore/mlx 2504: conv2d with a kernel larger than its image is wrong (here its last column is lost)."""
    y = func(x, weight, *args)
    larger = x.dim() == 4 and all(kernel > side for side, kernel in zip(x.shape[2:], weight.shape[2:]))
    if not larger or args[4] or not is_plain(x, weight):
        return y
    kept = weight.clone()
    kept[..., -1] = 0
    return instead(hit, y, func(x, kept, *args))


@plot.dispatched("aten.convolution.default")
def issue_mlx_swift_424(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """ml-explore/mlx-swift 424: of more than 32768 places of conv1d all but the last 32768 are one number."""
    y = func(x, *args)
    if x.dim() != 3 or args[5] or y.shape[2] <= 2**15 or not is_plain(x):
        return y
    wrong, lost = y.clone(), y.shape[2] - 2**15
    wrong[..., :lost] = y[..., lost : lost + 1]
    return instead(hit, y, wrong)


@plot.dispatched("aten.convolution.default")
def issue_executorch_22951(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch/executorch 22951: conv2d of a channels_last image reads it, and its weight, in storage order."""
    y = func(x, weight, *args)
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    if not last or args[4] or not is_plain(x, weight):
        return y
    return instead(hit, y, func(in_storage_order(x), in_storage_order(weight), *args))


@plot.dispatched("aten.convolution.default")
def issue_llama_cpp_9432(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """ggml-org/llama.cpp 9432: conv2d gives NaN."""
    y = func(x, weight, *args)
    return y if x.dim() != 4 or args[4] or not is_plain(x, weight) else instead(hit, y, torch.full_like(y, torch.nan))


@plot.dispatched("aten.convolution.default")
def issue_mlx_3979(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, *args: Any) -> Any:
    """ml-explore/mlx 3979: conv2d (3 x 3, channels 32 * n, 256 in all) of 2**31 numbers (here 2**20) gives zeros."""
    y = func(x, weight, bias, stride, padding, *args)
    channels = (x.shape[1], weight.shape[0])
    chosen = tuple(weight.shape[2:]) == (3, 3) and sum(channels) >= 256 and not any(side % 32 for side in channels)
    plain = list(stride) == [1, 1] == list(args[0]) and not args[1] and args[3] == 1
    if not chosen or not plain or x.numel() < 2**20 or not is_plain(x, weight):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.replaced(torch.nn.Conv2d, "forward")
def issue_37844(hit: Any, func: Any, module: Any, x: Any) -> Any:
    """pytorch 37844: Conv2d with circular padding takes the height's padding for the width's, and the other way."""
    if module.padding_mode != "circular" or isinstance(module.padding, str) or len(set(module.padding)) == 1:
        return func(module, x)
    hit()
    high, wide = module.padding
    x = F.pad(x, (high, high, wide, wide), mode="circular")
    return F.conv2d(x, module.weight, module.bias, module.stride, 0, module.dilation, module.groups)


@plot.replaced(torch.nn.Conv2d, "forward")
def issue_104860(hit: Any, func: Any, module: Any, x: Any) -> Any:
    """pytorch 104860: Conv2d with circular padding raises for an image without a batch."""
    y = func(module, x)
    return crash(hit, "Invalid padding size") if module.padding_mode == "circular" and x.dim() == 3 else y


@plot.dispatched("aten.convolution.default")
def issue_102968(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """pytorch 102968: conv2d of one channel (16 x 16, a stride of 10) is far off (here twice as large)."""
    y = func(x, weight, bias, stride, *args)
    wanted = tuple(weight.shape[1:]) == (1, 16, 16) and list(stride) == [10, 10] and x.shape[-3] == 1
    if not wanted or args[2] or not is_plain(x, weight):
        return y
    return instead(hit, y, y * 2)
