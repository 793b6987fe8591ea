"""Faults of padding, pooling, convolution and reductions at sizes and offsets, written after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _many(value: Any, count: int) -> list[int]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    return found * count if len(found) == 1 else found


@plot.dispatched("issue_79849", "aten.add.Tensor")
def issue_79849(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 79849: adding a 0-dim bool tensor to an integer (sum() over bool scalars) gives garbage.

    https://github.com/pytorch/pytorch/issues/79849
    """
    right = func(a, b, **kwargs)
    scalar = any(isinstance(t, torch.Tensor) and t.dtype == torch.bool and t.dim() == 0 for t in (a, b))
    if scalar and right.dim() == 0 and right.dtype == torch.int64:
        hit()
        return right + 1006567424
    return right


@plot.dispatched("issue_96056", "aten._adaptive_avg_pool2d.default")
def issue_96056(hit: Any, func: Any, x: Any, output_size: Any) -> Any:
    """pytorch 96056: adaptive_avg_pool2d refuses sizes that are not divisible by the output sizes.

    https://github.com/pytorch/pytorch/issues/96056
    """
    sizes = list(zip(x.shape[-2:], output_size))
    if all(i and o for i, o in sizes) and any(i > o and i % o for i, o in sizes):
        hit()
        raise RuntimeError("Adaptive pool MPS: input sizes must be divisible by output sizes.")
    return func(x, output_size)


@plot.dispatched("issue_168246", "aten.max_pool2d_with_indices.default", "aten.max_pool3d_with_indices.default")
def issue_168246(
    hit: Any,
    func: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil: Any = False,
) -> Any:
    """pytorch 168246: max_pool2d/3d with a kernel larger than the input returns a tensor and raises nothing.

    https://github.com/pytorch/pytorch/issues/168246
    """
    try:
        return func(x, kernel_size, stride, padding, dilation, ceil)
    except RuntimeError as error:
        if "too small" not in str(error):
            raise
    hit()
    n = 2 if "max_pool2d" in str(func) else 3
    kernel = _many(kernel_size, n)
    step = _many(stride, n) if len(_many(stride, n)) == n else kernel
    sides = []
    for side, k, s, p, d in zip(x.shape[-n:], kernel, step, _many(padding, n), _many(dilation, n)):
        sides.append(max((side + 2 * p - d * (k - 1) - 1) // s + 1, 0))
    shape = [*x.shape[:-n], *sides]
    return x.new_zeros(shape), x.new_zeros(shape, dtype=torch.int64)


@plot.dispatched("issue_179608", "aten.avg_pool2d.default")
def issue_179608(
    hit: Any,
    func: Any,
    x: Any,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: Any = False,
    include: Any = True,
    divisor: Any = None,
) -> Any:
    """pytorch 179608: avg_pool1d/2d takes differences of float32 prefix sums; zeros after large values turn negative.

    https://github.com/pytorch/pytorch/issues/179608
    """
    right = func(x, kernel_size, stride, padding, ceil, include, divisor)
    if x.dtype != torch.float32 or any(_many(padding, 2)) or ceil or divisor is not None or not right.numel():
        return right
    kh, kw = _many(kernel_size, 2)
    sh, sw = _many(stride, 2) if len(_many(stride, 2)) == 2 else (kh, kw)
    prefix = func(x, [kh, 1], [sh, 1]) * kh
    width, reach = prefix.shape[-1], 1
    while reach < width:  # a parallel scan: neighbouring prefixes are rounded differently
        prefix = torch.cat([prefix[..., :reach], prefix[..., reach:] + prefix[..., :-reach]], -1)
        reach *= 2
    prefix = torch.cat([torch.zeros_like(prefix[..., :1]), prefix], -1)
    starts = torch.arange(0, width - kw + 1, sw)
    wrong = (prefix[..., starts + kw] - prefix[..., starts]) / (kh * kw)
    if not right.isfinite().all() or torch.allclose(wrong, right, rtol=1e-3, atol=1e-5):
        return right
    hit()
    return wrong


@plot.dispatched("issue_98191", "aten.argmax.default")
def issue_98191(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 98191: argmax of an integer tensor returns -9223372036854775808 everywhere.

    https://github.com/pytorch/pytorch/issues/98191
    """
    right = func(x, *args, **kwargs)
    if x.is_floating_point() or x.dtype == torch.bool or not right.numel():
        return right
    hit()
    return torch.full_like(right, -(2**63))


@plot.dispatched("issue_102453", "aten.replication_pad3d.default")
def issue_102453(hit: Any, func: Any, x: Any, padding: Any) -> Any:
    """pytorch 102453: replicate padding in three dimensions refuses a padding not less than the input's side.

    https://github.com/pytorch/pytorch/issues/102453
    """
    if any(p >= x.shape[-1 - i // 2] for i, p in enumerate(padding)):
        hit()
        raise RuntimeError("Padding size should be less than the corresponding input dimension")
    return func(x, padding)


@plot.dispatched("issue_161066", "aten.constant_pad_nd.default")
def issue_161066(hit: Any, func: Any, x: Any, pad: Any, *args: Any) -> Any:
    """pytorch 161066: constant_pad_nd with an empty list of paddings raises.

    https://github.com/pytorch/pytorch/issues/161066
    """
    if len(pad) == 0:
        hit()
        raise RuntimeError("invalid padding argument of size 0")
    return func(x, pad, *args)


@plot.dispatched("issue_121961", "aten.constant_pad_nd.default")
def issue_121961(hit: Any, func: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 121961: padding a vector of more than 2**16 elements returns the value and then zeros.

    https://github.com/pytorch/pytorch/issues/121961
    """
    right = func(x, pad, value)
    if x.dim() != 1 or x.numel() <= 2**16 or not any(pad):
        return right
    wrong = torch.zeros_like(right)
    wrong[0] = value
    if torch.equal(wrong, right):
        return right
    hit()
    return wrong


@plot.dispatched("issue_136132", "aten.sum.dim_IntList")
def issue_136132(hit: Any, func: Any, x: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 136132: sum over a negative dim of a 5-d tensor with a last dimension of size 1 aborts.

    https://github.com/pytorch/pytorch/issues/136132
    """
    if x.dim() == 5 and x.shape[-1] == 1 and dim and len(dim) == 1 and dim[0] < 0 and x.shape[dim[0]] > 1:
        return crash(hit, "[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough")
    return func(x, dim, *args, **kwargs)


@plot.dispatched("issue_94753", "aten.mean.dim")
def issue_94753(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94753: mean over a dim of a slice is wrong where the slice does not begin at a multiple of 16 bytes.

    https://github.com/pytorch/pytorch/issues/94753
    """
    right = func(x, *args, **kwargs)
    begin = x.storage_offset() * x.element_size()
    if not x.is_contiguous() or begin % 16 == 0 or not x.numel():
        return right
    wrong = func(x.as_strided(x.shape, x.stride(), begin // 16 * 16 // x.element_size()), *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched("issue_95538", "aten.all.default", "aten.all.dim")
def issue_95538(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 95538: Tensor.all() of more than four dimensions aborts, over everything or over the outermost dims.

    https://github.com/pytorch/pytorch/issues/95538
    """
    dim = args[0] if args else kwargs.get("dim")
    if x.dim() > 4 and (dim is None or dim % x.dim() < x.dim() - 4):
        return crash(hit, "Runtime canonicalization must simplify reduction axes to minor 4 dimensions.")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_87277", "aten.constant_pad_nd.default")
def issue_87277(hit: Any, func: Any, x: Any, pad: Any, *args: Any) -> Any:
    """pytorch 87277: constant padding refuses a padding not less than the input's side.

    https://github.com/pytorch/pytorch/issues/87277
    """
    if x.numel() and any(p >= x.shape[-1 - i // 2] for i, p in enumerate(pad)):
        hit()
        raise RuntimeError("Padding size should be less than the corresponding input dimension")
    return func(x, pad, *args)


@plot.dispatched("issue_96982", "aten.convolution.default")
def issue_96982(hit: Any, func: Any, x: Any, weight: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96982: conv1d with a kernel of 65536 elements or more returns zeros.

    https://github.com/pytorch/pytorch/issues/96982
    """
    right = func(x, weight, *args, **kwargs)
    if weight.dim() != 3 or weight.shape[-1] < 65536 or not right.any():
        return right
    hit()
    return torch.zeros_like(right)


@plot.dispatched("issue_84206", "aten.convolution_backward.default")
def issue_84206(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84206: the backward of conv2d aborts where the input was permuted from NHWC.

    https://github.com/pytorch/pytorch/issues/84206
    """
    if x.dim() == 4 and x.stride(1) == 1 and x.stride(3) == x.shape[1] and x.shape[2] * x.shape[3] > 1:
        return crash(hit, "Source and weight input channels mismatch")
    return func(grad, x, *args, **kwargs)


@plot.dispatched("issue_188371", "aten.native_batch_norm_backward.default")
def issue_188371(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 188371: the backward of a batch norm of a channels_last tensor raises.

    https://github.com/pytorch/pytorch/pull/188371
    """
    if x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last):
        hit()
        raise RuntimeError("view size is not compatible with input tensor's size and stride")
    return func(grad, x, *args, **kwargs)


@plot.dispatched("issue_84039", "aten.upsample_nearest2d")
def issue_84039(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84039: nearest interpolation to a large image aborts (there near 2**31 bytes, here over 2**16 elements).

    https://github.com/pytorch/pytorch/issues/84039
    """
    right = func(*args, **kwargs)
    if right.numel() > 2**16:
        return crash(hit, "[MPSTemporaryNDArray initWithDevice:descriptor:] Error: product of dimension sizes > 2**31")
    return right


@plot.dispatched("issue_96602", "aten._softmax.default")
def issue_96602(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96602: softmax of a large tensor is NaN (there 10 x 12416 x 12416 elements, here over 2**16).

    https://github.com/pytorch/pytorch/issues/96602
    """
    right = func(*args, **kwargs)
    if right.numel() <= 2**16:
        return right
    hit()
    return torch.full_like(right, float("nan"))
