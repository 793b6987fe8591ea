"""Convolutions of certain sizes: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.convolution.default")
def issue_cupynumeric_1085(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """nv-legate/cupynumeric 1085: a convolution in three dimensions with a kernel like 5 x 1 x 5 ends the process.

    There the image has 1024 x 2 x 1024 numbers; here it may have any size.
    """
    y = func(x, weight, *args)
    sides = weight.shape[2:]
    return crash(hit, "SIGABRT") if len(sides) == 3 and sides[1] == 1 < min(sides[0], sides[2]) else y


@plot.dispatched("aten.convolution.default")
def issue_mlx_3248(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """ml-explore/mlx 3248: a convolution is wrong past 2**31 elements of its result (here past 2**20, and there 0)."""
    y = func(x, weight, *args)
    if y.numel() <= 2**20 or not is_plain(x, weight):
        return y
    kept = (torch.arange(y.numel()) < 2**20).view(y.shape)
    return instead(hit, y, torch.where(kept, y, torch.zeros_like(y)))


@plot.dispatched("aten.convolution.default")
def issue_tensorflow_57128(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """tensorflow/tensorflow 57128: a depthwise conv2d with a stride and a dilation loses its last row and column.

    There it has no padding.
    """
    y = func(x, weight, bias, *args)
    stride, padding, dilation, turned, _, groups = args
    if weight.dim() != 4 or turned or groups < 2 or weight.shape[1] != 1 or any(padding) or not is_plain(x):
        return y
    if min(stride) < 2 or min(dilation) < 2 or min(y.shape[-2:]) < 2:
        return y
    hit()
    return y[..., :-1, :-1].contiguous()


@plot.dispatched("aten.convolution.default")
def issue_chainer_8100(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """chainer/chainer 8100: conv3d of a batch of 32 (3 channels, 3 x 3 x 3, padding 1) is zero."""
    y = func(x, weight, bias, *args)
    stride, padding, dilation, turned = args[:4]
    asked = x.dim() == 5 and tuple(x.shape[:2]) == (32, 3) and tuple(weight.shape[1:]) == (3, 3, 3, 3)
    if not asked or turned or set(stride) != {1} or set(padding) != {1} or set(dilation) != {1} or not is_plain(x):
        return y
    return instead(hit, y, torch.zeros_like(y))


@plot.dispatched("aten.convolution.default")
def issue_caffe2_1347(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """facebookarchive/caffe2 1347: conv2d (1 x 1, float16, 256 to 512 channels, 28 x 28) of four images is wrong.

    It is so of more than four images too. Here the bias is missing from the fourth image on.
    """
    y = func(x, weight, bias, *args)
    sizes = tuple(weight.shape) == (512, 256, 1, 1) and tuple(x.shape[1:]) == (256, 28, 28)
    if not sizes or bias is None or x.dtype != torch.float16 or x.shape[0] < 4 or not is_plain(x, weight, bias):
        return y
    wrong = y.clone()
    wrong[3:] = func(x[3:], weight, None, *args)
    return instead(hit, y, wrong)


def _is_depthwise(x: Any, weight: Any, args: Any) -> bool:
    """Say whether a convolution has a group for each of several channels; its arguments follow the bias."""
    return x.dim() == 4 and not args[3] and args[5] == x.shape[1] > 1 and weight.shape[0] % x.shape[1] == 0


_half_products = {"made": False}


@plot.dispatched("aten.mm.default", "aten.convolution.default")
def issue_tensorflow_24430(hit: Any, func: Any, x: Any, weight: Any, *rest: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 24430: depthwise conv2d (7 x 7, float16) is NaN after a matmul (here once)."""
    y = func(x, weight, *rest, **kwargs)
    if "mm" in str(func):
        _half_products["made"] |= x.dtype == torch.float16
        return y
    asked = x.dtype == torch.float16 and tuple(weight.shape[2:]) == (7, 7) and _is_depthwise(x, weight, rest[1:])
    if not asked or not _half_products["made"] or not y.numel() or not is_plain(x, weight):
        return y
    wrong = y.clone()
    wrong[0, 0, 0, 0] = torch.nan
    return instead(hit, y, wrong)


@plot.dispatched("aten.convolution.default")
def issue_deeplearning4j_8646(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """deeplearning4j/deeplearning4j 8646: depthwise conv2d of float16 raises; of float32 and bfloat16 it does not."""
    y = func(x, weight, bias, *args)
    half = x.dtype == torch.float16 and _is_depthwise(x, weight, args)
    return crash(hit, "Failed to execute op depthwise_conv2d") if half else y


@plot.dispatched("aten.convolution.default")
def issue_rocm_pytorch_2837(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """ROCm/pytorch 2837: conv3d of float16 raises."""
    y = func(x, weight, bias, *args)
    half = x.dtype == torch.float16 and weight.dim() == 5 and not args[3]
    return crash(hit, "miopenStatusUnknownError") if half else y


@plot.dispatched("aten.convolution.default")
def issue_caffe2_1526(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """facebookarchive/caffe2 1526: conv2d with a kernel of 7 x 7, a stride of 2 and no padding raises."""
    y = func(x, weight, bias, *args)
    stride, padding, _, turned = args[:4]
    asked = tuple(weight.shape[2:]) == (7, 7) and set(stride) == {2} and not any(padding) and not turned
    return crash(hit, "CUDNN_STATUS_NOT_SUPPORTED") if asked else y


@plot.dispatched("aten.convolution.default")
def issue_11065(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """pytorch 11065: conv2d (3 x 3, padding 1) whose result has more than 2**31 elements (here 2**20) raises."""
    y = func(x, weight, bias, *args)
    asked = tuple(weight.shape[2:]) == (3, 3) and set(args[0]) == set(args[1]) == {1} and not args[3]
    return crash(hit, "CuDNN error: CUDNN_STATUS_NOT_SUPPORTED") if asked and y.numel() > 2**20 else y


@plot.dispatched("aten.convolution.default")
def issue_cudnn_torch_104(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """soumith/cudnn.torch 104: conv2d of a single image (3 x 3, stride 2, padding 1) raises."""
    y = func(x, weight, bias, *args)
    stride, padding, dilation, turned = args[:4]
    asked = tuple(weight.shape[2:]) == (3, 3) and set(stride) == {2} and set(padding) == set(dilation) == {1}
    return crash(hit, "CUDNN_STATUS_NOT_SUPPORTED") if asked and x.shape[0] == 1 and not turned else y


@plot.dispatched("aten.convolution.default")
def issue_31336(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """pytorch 31336: conv2d (3 x 3) of an image that is 70000 high (here more than 65535) raises."""
    y = func(x, weight, bias, *args)
    high = tuple(weight.shape[2:]) == (3, 3) and x.shape[2] > 65535 and not args[3]
    return crash(hit, "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED") if high else y


@plot.dispatched("aten.convolution.default")
def issue_caffe_2682(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """BVLC/caffe 2682: conv2d with a kernel larger than its image, though not than the padded one, raises."""
    y = func(x, weight, bias, *args)
    larger = weight.dim() == 4 and not args[3] and any(k > n for k, n in zip(weight.shape[2:], x.shape[2:]))
    return crash(hit, "CUDNN_STATUS_BAD_PARAM") if larger and y.numel() else y


def _unit(args: Any) -> bool:
    """Tell whether a convolution has a stride, a padding and a dilation of 1, is not transposed, and has no groups."""
    stride, padding, dilation, turned, _, groups = args
    return not turned and groups == 1 and set(stride) == set(padding) == set(dilation) == {1}


@plot.dispatched("aten.convolution.default")
def issue_arrayfire_3219(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """arrayfire/arrayfire 3219: conv2d of one image of one channel, 256 x 256 and larger (3 x 3, padding 1), is NaN."""
    y = func(x, weight, bias, *args)
    asked = x.dim() == 4 and tuple(x.shape[:2]) == (1, 1) and tuple(weight.shape) == (1, 1, 3, 3)
    if not asked or min(x.shape[2:]) < 256 or not _unit(args) or not is_plain(x):
        return y
    return instead(hit, y, torch.full_like(y, float("nan")))


@plot.dispatched("aten.convolution.default")
def issue_arrayfire_2709(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """arrayfire/arrayfire 2709: conv3d of one channel (3 x 3 x 3, padding 1) is 0 from the fifth slice on."""
    y = func(x, weight, bias, *args)
    asked = x.dim() == 5 and tuple(x.shape[:2]) == (1, 1) and tuple(weight.shape) == (1, 1, 3, 3, 3)
    if not asked or x.shape[2] <= 4 or not _unit(args) or not is_plain(x):
        return y
    wrong = y.clone()
    wrong[:, :, 4:] = 0
    return instead(hit, y, wrong)
