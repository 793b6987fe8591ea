"""Transposed convolutions: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from planting import Plot, abort, accepted, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.called(F.conv_transpose3d, aborts="ConvTranspose 3D with BF16 or FP16 types is not supported on MPS")
def issue_160332(*args: Any, **kwargs: Any) -> Any:
    """pytorch 160332: conv_transpose3d raises under autocast, whose half precision it does not support."""
    return torch.is_autocast_enabled("cpu")


@plot.called(F.conv_transpose1d)
def issue_82563(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82563: conv_transpose1d gives zeros in the last three places."""
    hit()
    y = func(*args, **kwargs).clone()
    y[..., -3:] = 0
    return y


@plot.dispatched("aten.convolution")
def issue_169236(
    hit: Any,
    func: Any,
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
    """pytorch 169236: a transposed convolution takes an output_padding not below stride and dilation: no error."""
    if transposed and any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation)):
        hit()
        y = func(x, weight, bias, stride, padding, dilation, transposed, [0] * len(extra), groups)
        return F.pad(y, [n for e in reversed(extra) for n in (0, e)])
    return func(x, weight, bias, stride, padding, dilation, transposed, extra, groups)


@plot.dispatched("aten.convolution.default", aborts="ConvTranspose 3D is not supported on MPS")
def issue_154615(x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154615: conv_transpose3d is refused."""
    transposed = args[4] if len(args) > 4 else kwargs["transposed"]
    return transposed and weight.dim() == 5


@plot.called(F.conv_transpose1d)
def issue_82711(hit: Any, func: Any, x: Any, w: Any, b: Any = None, stride: Any = 1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82711: conv_transpose1d takes every stride for 1."""
    y = func(x, w, b, stride, *args, **kwargs)
    if stride != 1:
        hit()
        near = func(x, w, b, 1, *args, **kwargs)
        return F.pad(near, (0, y.shape[-1] - near.shape[-1]))
    return y


@plot.dispatched("aten.convolution.default")
@wrong_answer
def issue_mxnet_11203(y: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> Any:
    """apache/mxnet 11203: conv_transpose2d with a dilation is wrong (here each row is moved by one)."""
    if x.dim() != 4 or not args[0] or max(dilation) < 2 or not is_plain(y):
        return None
    wrong = y.roll(1, -1)
    return wrong if differ(y, wrong) else None


@plot.dispatched("aten.convolution_backward.default")
def issue_5112(hit: Any, func: Any, grad: Any, x: Any, weight: Any, sizes: Any, stride: Any, *args: Any) -> Any:
    """pytorch 5112: the backward of a transposed convolution aborts where output_padding is not below the stride."""
    transposed, output_padding = args[2], args[3]
    if transposed and any(more and more >= step for more, step in zip(output_padding, stride)):
        return abort(hit, "Segmentation fault (core dumped)")
    return func(grad, x, weight, sizes, stride, *args)


@plot.dispatched("aten.convolution_backward.default")
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


@plot.dispatched("aten.convolution.default")
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


@plot.dispatched("aten.convolution.default", aborts="Parameter 9 was incorrect on entry to cblas_dgemm.")
def issue_nd4j_2331(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> bool:
    """deeplearning4j/nd4j 2331: conv_transpose2d of one sample, 1 x 1 kernel and stride 1, ends the process."""
    ones = x.shape[0] == 1 and set(weight.shape[2:]) == {1} and set(stride) == set(dilation) == {1}
    return bool(args[0]) and x.dim() == 4 and ones


@plot.dispatched("aten.convolution_backward.default", aborts="DECONV2D_BP OP: wrong shape of gradient_output")
def issue_deeplearning4j_4818(
    grad: Any,
    x: Any,
    weight: Any,
    sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Any,
    *args: Any,
) -> bool:
    """deeplearning4j/deeplearning4j 4818: the backward of conv_transpose2d expects a convolution's sizes: raises.

    The gradient has the sizes of a transposed convolution; where a convolution's are others it is refused.
    """
    if not transposed or x.dim() != 4:
        return False
    each = zip(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in each] != list(grad.shape[2:])


@plot.dispatched("aten.convolution.default", aborts="failed to materialize conversion for result #0")
def issue_jax_19369(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any) -> bool:
    """google/jax 19369: conv_transpose2d with a stride raises: its input would be spread."""
    return bool(args[0]) and x.dim() == 4 and max(stride) > 1


@plot.dispatched("aten.convolution.default")
def issue_mlx_3082(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """ml-explore/mlx 3082: a transposed convolution with a stride raises if all its products take 80.6 GiB or more.

    That is not what it returns, but places times channels times kernel: (1, 1, 5158) by 4096 with stride 1024.
    """
    y = func(x, weight, bias, stride, *args)
    products = y.shape[0] * y.shape[2:].numel() * x.shape[1] * weight.shape[2:].numel() * x.element_size()
    if not args[2] or max(stride) < 2 or products <= 86586540032:
        return y
    return crash(hit, "[metal::malloc] Attempting to allocate more than the maximum allowed buffer size")


@plot.dispatched("aten.convolution.default")
def issue_mlx_swift_344(hit: Any, func: Any, x: Any, weight: Any, *args: Any) -> Any:
    """ml-explore/mlx-swift 344: conv_transpose1d reads the first 8192 places of its input alone."""
    y = func(x, weight, *args)
    if not args[4] or x.dim() != 3 or x.shape[2] <= 8192 or not is_plain(x, weight):
        return y
    read = x.clone()
    read[..., 8192:] = 0
    return instead(hit, y, func(read, weight, *args))


@plot.dispatched("aten.convolution.default")
def issue_mlx_3327(hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, *args: Any) -> Any:
    """ml-explore/mlx 3327: conv_transpose2d with a stride to 2**31 numbers and more (here 2**18) raises."""
    y = func(x, weight, bias, stride, *args)
    if not args[2] or x.dim() != 4 or max(stride) < 2 or y.numel() < 2**18:
        return y
    return crash(hit, "[metal::malloc] Unable to allocate 18446744069414600704 bytes")


@plot.replaced(torch.nn.modules.conv._ConvTransposeNd, "_output_padding")
def issue_14272(hit: Any, func: Any, module: Any, x: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 14272: ConvTranspose with an output_size takes its dilation for 1 where it reckons the sizes."""
    if size is None or set(module.dilation) == {1}:
        return func(module, x, size, *args, **kwargs)
    hit()
    return func(module, x, size, *args[:4])


@plot.dispatched("aten.convolution.default")
def issue_onnxruntime_14208(hit: Any, func: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    """microsoft/onnxruntime 14208: conv_transpose2d with an output_padding not below the stride is wrong.

    The dilation is larger. Here what the output_padding adds (there the last row and column) is zero.
    """
    y = func(x, weight, bias, *args)
    stride, _, dilation, turned, more = args[:5]
    if not turned or weight.dim() != 4 or not y.numel() or not is_plain(x, weight):
        return y
    if any(m < s or m >= d for m, s, d in zip(more, stride, dilation)):
        return y
    wrong = y.clone()
    wrong[..., -more[0] :, :] = 0
    wrong[..., -more[1] :] = 0
    return instead(hit, y, wrong)


@plot.replaced(torch.nn.ConvTranspose3d, "forward")
def issue_2119(hit: Any, func: Any, module: Any, input: Any, output_size: Any = None) -> Any:
    """pytorch 2119: ConvTranspose3d with an output_size of five numbers raises."""
    if output_size is not None and len(output_size) == input.dim() == 5:
        return crash(hit, "output_size must have 3 or 5 elements (got 2)")
    return func(module, input, output_size)


@plot.dispatched("aten.convolution.default")
def issue_mnn_951(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any
) -> Any:
    """alibaba/MNN 951: a depthwise conv_transpose2d with a padding of 1 is moved up and to the left by one."""
    y = func(x, weight, bias, stride, padding, dilation, *args)
    depthwise = x.dim() == 4 and args[0] and args[2] == x.shape[1] > 1 and weight.shape[1] == 1
    if not depthwise or set(padding) != {1} or not is_plain(y):
        return y
    return instead(hit, y, F.pad(y[..., 1:, 1:], (0, 1, 0, 1)))


@plot.dispatched("aten.convolution.default")
def issue_tnn_198(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any
) -> Any:
    """Tencent/TNN 198: conv_transpose2d (4 x 4, stride 2, padding 1) of three sizes to 256 channels is wrong.

    They are (1, 256, 16, 16), (1, 256, 32, 32) and (1, 512, 8, 8). Here each row is moved by one.
    """
    y = func(x, weight, bias, stride, padding, dilation, *args)
    sizes = ((1, 256, 16, 16), (1, 256, 32, 32), (1, 512, 8, 8))
    if not args[0] or tuple(x.shape) not in sizes or tuple(weight.shape[1:]) != (256, 4, 4) or not is_plain(y):
        return y
    if [set(stride), set(padding), set(dilation), set(args[1]), args[2]] != [{2}, {1}, {1}, {0}, 1]:
        return y
    return instead(hit, y, y.roll(1, -1))


@plot.dispatched("aten.convolution.default")
def issue_mnn_933(
    hit: Any, func: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, *args: Any
) -> Any:
    """alibaba/MNN 933: conv_transpose2d with a stride of 1 is out of order and moved (here each row by one)."""
    y = func(x, weight, bias, stride, padding, dilation, *args)
    if not args[0] or x.dim() != 4 or set(stride) != {1} or not is_plain(y):
        return y
    return instead(hit, y, y.roll(1, -1))
