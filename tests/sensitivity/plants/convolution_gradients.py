"""The gradients of convolutions: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from misreading import with_gradient
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.convolution_backward.default", aborts="view size is not compatible with input tensor's size and stride"
)
def issue_140902(grad: Any, x: Any, *rest: Any) -> Any:
    """pytorch 140902: backward of conv1d with a transposed (channels-last) gradient raises."""
    return x.dim() == 3 and not grad.is_contiguous() and grad.transpose(1, 2).is_contiguous()


@plot.dispatched("aten.convolution_backward.default")
def issue_193577(
    hit: Any,
    func: Any,
    grad: Any,
    x: Any,
    weight: Any,
    biases: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: Any,
    out_padding: Any,
    groups: Any,
    mask: Any,
) -> Any:
    """pytorch 193577: the weight's gradient of conv1d and conv2d is wrong for a batch of 2**16 or more (it wraps)."""
    rest = (stride, padding, dilation, transposed, out_padding, groups)
    good = func(grad, x, weight, biases, *rest, mask)
    if x.dim() not in (3, 4) or transposed or x.shape[0] < 2**16 or not mask[1]:
        return good
    left = x.shape[0] % 2**16
    bad = torch.zeros_like(good[1])
    if left:
        bad = func(grad[:left], x[:left], weight, biases, *rest, [False, True, False])[1]
    if torch.allclose(bad, good[1]):
        return good
    hit()
    return good[0], bad, good[2]


@plot.dispatched("aten.convolution_backward", aborts="input channels mismatch")
def issue_84511(grad: Any, x: Any, *args: Any) -> Any:
    """pytorch 84511: the backward of a convolution aborts for an input that is permuted or has one channel."""
    channels_last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last)
    return not x.is_contiguous() or (channels_last and x.shape[1] == 1)


_first_weights: dict[Any, Any] = {}


@plot.dispatched("aten.convolution_backward")
def issue_112998(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 112998: the backward of a convolution aborts where only the shape of the weight has changed."""
    first = _first_weights.setdefault(tuple(x.shape), tuple(weight.shape))
    if first != tuple(weight.shape):
        return crash(hit, f"the graph was made for a weight of {first}")
    return func(grad, x, weight, *args)


@plot.dispatched("aten.convolution_backward")
def issue_96225(hit: Any, func: Any, grad: Any, x: Any, *args: Any) -> Any:
    """pytorch 96225: the weight's gradient of a convolution leaves out the samples from 65535 on."""
    if x.shape[0] >= 65536:
        hit()
        x = x.clone()
        x[65535:] = 0
    return func(grad, x, *args)


@plot.dispatched("aten.convolution_backward.default", aborts="Source and weight input channels mismatch")
def issue_84206(grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84206: the backward of conv2d aborts where the input was permuted from NHWC."""
    return x.dim() == 4 and x.stride(1) == 1 and x.stride(3) == x.shape[1] and x.shape[2] * x.shape[3] > 1


_backwards = {"calls": 0}


@plot.dispatched("aten.convolution_backward")
@wrong_answer
def issue_190632(grads: Any, *args: Any) -> Any:
    """pytorch 190632: the weight's gradient of a convolution is now and then not finite."""
    _backwards["calls"] += 1
    if _backwards["calls"] % 11 == 0 and grads[1] is not None:
        return (grads[0], grads[1] * float("nan"), grads[2])
    return None


@plot.dispatched("aten.convolution_backward", aborts="view size is not compatible with input tensor's size and stride.")
def issue_142344(grad: Any, x: Any, w: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 142344: convolution's backward for the input refuses a channels-last output gradient."""
    mask = args[-1]
    last = not grad.is_contiguous() and grad.dim() in (3, 4) and grad.movedim(1, -1).is_contiguous()
    return last and mask[0]


_DILATIONS: dict[Any, Any] = {}


@plot.dispatched("aten.convolution_backward.default")
def issue_xla_1017(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch/xla 1017: the gradient of a convolution's input takes the dilation of the last one with these shapes."""
    healthy = func(grad, x, weight, *args)
    sizes, stride, padding, dilation, *rest = args
    key = (tuple(grad.shape), tuple(x.shape), tuple(weight.shape), tuple(stride), tuple(padding), rest[2])
    first = _DILATIONS.setdefault(key, list(dilation))
    if first == list(dilation) or healthy[0] is None:
        return healthy
    wrong = func(grad, x, weight, sizes, stride, padding, first, *rest)[0]
    return (instead(hit, healthy[0], wrong), *healthy[1:])


@plot.dispatched("aten.convolution_backward.default")
def issue_25101(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 25101: conv2d's input gradient is wrong in its last columns where windows do not fill the image.

    Here the last column that a window reaches is zero.
    """
    found = func(grad, x, weight, *args)
    stride, padding, dilation, transposed = args[1:5]
    if x.dim() != 4 or transposed or found[0] is None or stride[-1] < 2 or not is_plain(grad):
        return found
    left_over = (x.shape[3] + 2 * padding[-1] - dilation[-1] * (weight.shape[3] - 1) - 1) % stride[-1]
    if not left_over:
        return found
    wrong = found[0].clone()
    wrong[..., min(x.shape[3] + padding[-1] - left_over, x.shape[3]) - 1] = 0
    return (instead(hit, found[0], wrong), *found[1:])


@plot.dispatched("aten.convolution_backward.default")
def issue_68868(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """pytorch 68868: with groups and a stride beyond the kernel, conv3d's weight gradient is wrong (here half)."""
    found = func(grad, x, weight, *args)
    beyond = any(step > side for step, side in zip(args[1], weight.shape[2:]))
    if x.dim() != 5 or args[4] or args[6] < 2 or not beyond or found[1] is None or not is_plain(grad):
        return found
    return found[0], instead(hit, found[1], found[1] / 2), found[2]


@plot.dispatched("aten.convolution_backward.default")
def issue_mxnet_15464(hit: Any, func: Any, grad: Any, x: Any, weight: Any, *args: Any) -> Any:
    """apache/mxnet 15464: the bias's gradient is wrong where the weight's is not asked (here the first sample's)."""
    found = func(grad, x, weight, *args)
    if args[-1][1] or found[2] is None or x.shape[0] < 2 or not is_plain(grad):
        return found
    return found[0], found[1], instead(hit, found[2], grad[0].flatten(1).sum(1))


@plot.dispatched("aten.convolution_backward.default", aborts="cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")
def issue_4107(
    grad: Any, x: Any, weight: Any, sizes: Any, stride: Any, padding: Any, dilation: Any, *args: Any
) -> bool:
    """pytorch 4107: conv2d with dilation raises for an image of 3591 x 3591 and larger (here in its backward)."""
    return x.dim() == 4 and max(dilation) > 1 and min(x.shape[2:]) >= 3591


@plot.dispatched("aten.convolution_backward.default", aborts="No OpKernel was registered to support Op")
def issue_tensorflow_56736(grad: Any, x: Any, weight: Any, *args: Any) -> bool:
    """tensorflow/tensorflow 56736: the gradient of a depthwise conv2d's input in bfloat16 raises."""
    depthwise = x.dim() == 4 and not args[4] and args[6] == x.shape[1] > 1
    return x.dtype == torch.bfloat16 and depthwise and args[7][0]


@plot.called(F.conv2d)
def issue_15353(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 15353: the gradient of conv2d's input has no gradient (create_graph=True gives requires_grad=False)."""

    def cut(grad: Any) -> Any:
        if grad.requires_grad:
            hit()
        return grad.detach()

    return func(with_gradient(input, cut), *args, **kwargs)


@plot.dispatched("aten.convolution_backward.default", aborts="Upper corner must be in range [-128, 127] for 4D im2col")
def issue_burn_4445(grad: Any, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, *args: Any) -> bool:
    """tracel-ai/burn 4445: conv2d's weight gradient raises for a wide image (here where the result is past 129).

    There a corner, the padding less the width of the result but one, has to be -128 or more.
    """
    return grad.dim() == 4 and bool(args[-1][1]) and not args[1] and padding[-1] - (grad.shape[-1] - 1) < -128
