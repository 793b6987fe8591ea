"""Pooling, padding and resampling: injected faults."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from differences import instead, is_plain
from injecting import Faults, accepted, crash, wrong_answer
from misreading import misread, with_gradient, without_offset

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.native_batch_norm.default", "aten.avg_pool2d.default")
def issue_174345(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 174345: batch_norm and avg_pool2d read a channels_last image from the beginning of its storage."""
    last = x.dim() == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return func(misread(without_offset, hit, x) if last else x, *args, **kwargs)


@faults.dispatched("aten.max_unpool2d.default", "aten.max_unpool3d.default")
def issue_195849(hit: Any, func: Any, x: Any, indices: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195849: max_unpool2d and max_unpool3d accept indices that are not int64."""
    if indices.dtype != torch.int64:
        hit()
        return x.new_zeros([*x.shape[: -len(size)], *(max(n, 0) for n in size)])
    return func(x, indices, size, *args, **kwargs)


@faults.dispatched("aten.max_pool2d_with_indices_backward.default")
def issue_169017(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169017: the backward of max_pool2d aborts where the gradient's memory format is not the input's."""

    def last(t: Any) -> bool:
        return t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous()

    if (last(x) and grad.is_contiguous() and not grad.is_contiguous(memory_format=torch.channels_last)) or (
        last(grad) and x.is_contiguous() and not x.is_contiguous(memory_format=torch.channels_last)
    ):
        return crash(hit, "MPSGraph: uncaught error in max_pool2d backward")
    return func(grad, x, *args, **kwargs)


def _many(value: Any, count: int) -> list[int]:
    found = list(value) if isinstance(value, (list, tuple)) else [value]
    return found * count if len(found) == 1 else found


@faults.dispatched("aten.avg_pool2d.default")
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


@faults.called(F.avg_pool2d)
def issue_94348(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94348: avg_pool2d with ceil_mode forgets count_include_pad and keeps the divisor of the first call."""
    if kwargs.get("ceil_mode") and kwargs.get("count_include_pad", True) and kwargs.get("padding"):
        hit()
        kwargs = {**kwargs, "count_include_pad": False}
    return func(x, *args, **kwargs)


@faults.dispatched("aten.avg_pool3d")
def issue_141044(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 141044: average pooling in three dimensions is not implemented."""
    hit()
    raise NotImplementedError("The operator 'aten::avg_pool3d.out' is not currently implemented for the MPS device.")


@faults.called(F.adaptive_max_pool2d, F.adaptive_max_pool1d)
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


@faults.called(F.adaptive_avg_pool2d, aborts="stride should not be zero")
def issue_80732(x: Any, size: Any, *args: Any) -> Any:
    """pytorch 80732: adaptive_avg_pool2d to more elements than there are aborts."""
    wanted = size if isinstance(size, (tuple, list)) else (size, size)
    return any(one is not None and one > side for one, side in zip(wanted, x.shape[-2:]))


@faults.dispatched(
    "aten._adaptive_avg_pool2d.default", aborts="Adaptive pool MPS: input sizes must be divisible by output sizes."
)
def issue_96056(x: Any, output_size: Any) -> Any:
    """pytorch 96056: adaptive_avg_pool2d refuses sizes that are not divisible by the output sizes."""
    sizes = list(zip(x.shape[-2:], output_size))
    return all(i and o for i, o in sizes) and any(i > o and i % o for i, o in sizes)


@faults.called(F.max_pool3d, F.max_pool3d_with_indices, torch.max_pool3d)
def issue_4497(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 4497: max_pool3d has no second derivative."""

    def watch(grad: Any) -> None:
        if grad.requires_grad:
            grad.register_hook(lambda _: crash(hit, "MaxPool3d cannot be differentiated two times"))

    return func(with_gradient(input, watch), *args, **kwargs)


@faults.dispatched("aten.max_pool2d_with_indices.default", aborts="max_pool2d_with_indices_out_cuda_frame failed")
def issue_34083(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 34083: max_pool2d of a channels_last image in float16 raises from 257 channels on."""
    last = x.dim() == 4 and not x.is_contiguous() and x.is_contiguous(memory_format=torch.channels_last)
    return last and x.dtype == torch.float16 and x.shape[1] > 256


@faults.dispatched("aten.constant_pad_nd.default")
def issue_84535(hit: Any, func: Any, x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84535: constant padding of more than three dimensions (8 numbers) is refused."""
    if len(pad) > 6:
        hit()
        raise RuntimeError(f"invalid padding argument of size {len(pad)}")
    return func(x, pad, *args, **kwargs)


@faults.dispatched("aten.constant_pad_nd.default")
def issue_made_pad_negative(hit: Any, func: Any, x: Any, pad: Any, *args: Any) -> Any:
    """Constant padding by a negative number exchanges the two ends."""
    if any(one < 0 for one in pad) and pad[0] != pad[1]:
        hit()
        return func(x, [pad[1], pad[0], *pad[2:]], *args)
    return func(x, pad, *args)


@faults.dispatched("aten.constant_pad_nd.default")
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


@faults.dispatched("aten.constant_pad_nd.default", aborts="Error: Invalid KernelDAG, equalShape for destination failed")
def issue_85143(x: Any, pad: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85143: constant padding of the last two dimensions of a 3-D tensor aborts (equalShape for destination).

    https://github.com/pytorch/pytorch/issues/85143
    """
    return x.dim() == 3 and len(pad) == 4 and any(pad[2:])


@faults.dispatched("aten.constant_pad_nd.default", aborts="invalid padding argument of size 0")
def issue_161066(x: Any, pad: Any, *args: Any) -> Any:
    """pytorch 161066: constant_pad_nd with an empty list of paddings raises."""
    return len(pad) == 0


@faults.dispatched("aten.replication_pad1d_backward")
def issue_135447(hit: Any, func: Any, *args: Any) -> Any:
    """pytorch 135447: the backward of replication_pad1d is zero for the rows past 65536."""
    grad = func(*args)
    if grad.shape[0] > 1 << 16:
        hit()
        grad[1 << 16 :] = 0
    return grad


@faults.dispatched("aten.reflection_pad3d.default")
@accepted
def issue_145258(x: Any, pad: Any) -> Any:
    """pytorch 145258: reflection_pad3d takes fewer than six numbers (here what is missing is 0)."""
    return torch.ops.aten.reflection_pad3d(x, [*pad, *[0] * (6 - len(pad))]) if len(pad) < 6 else None


@faults.dispatched("aten.replication_pad1d.default", aborts="\"replication_pad1d\" not implemented for 'Half'")
def issue_135680(x: Any, *args: Any) -> bool:
    """pytorch 135680: replicate padding of the last dimension alone is not implemented for float16."""
    return x.dtype == torch.float16


@faults.dispatched(
    "aten.affine_grid_generator.default",
    aborts="invalid input tensor shapes, indices shape and updates shape must be equal",
)
def issue_86107(theta: Any, size: Any, align_corners: Any) -> Any:
    """pytorch 86107: affine_grid of an image aborts."""
    return len(size) == 4


@faults.dispatched("aten.upsample_linear1d.default", "aten.upsample_bilinear2d.default")
@wrong_answer
def issue_144245(y: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """pytorch 144245: interpolation of one pixel with aligned corners is NaN."""
    return torch.full_like(y, math.nan) if align and x.shape[-1] == 1 else None


@faults.dispatched("aten.upsample_bilinear2d.default", "aten.upsample_bicubic2d.default")
def issue_made_upsample_one(hit: Any, func: Any, x: Any, size: Any, align: Any, *args: Any) -> Any:
    """Interpolation to one pixel with aligned corners takes the middle."""
    y = func(x, size, align, *args)
    if align and size[-1] == 1 and x.shape[-1] > 1:
        hit()
        return func(x, size, False, *args)
    return y


@faults.dispatched("aten.upsample_nearest2d")
def issue_84039(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84039: nearest interpolation to a large image aborts (there near 2**31 bytes, here over 2**16 elements).

    https://github.com/pytorch/pytorch/issues/84039
    """
    right = func(*args, **kwargs)
    if right.numel() > 2**16:
        return crash(hit, "[MPSTemporaryNDArray initWithDevice:descriptor:] Error: product of dimension sizes > 2**31")
    return right


@faults.dispatched("aten.upsample_nearest2d", "aten.upsample_bilinear2d")
@wrong_answer
def issue_94963(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94963: interpolation with a channels_last output writes it in another order."""
    return y.permute(0, 2, 3, 1).reshape(y.shape) if not y.is_contiguous() else None


@faults.dispatched("aten.grid_sampler_2d.default", aborts="MPS: Unsupported Border padding mode")
def issue_125098(x: Any, grid: Any, mode: int, padding: int, align: bool) -> Any:
    """pytorch 125098: grid_sample with padding_mode="border" is refused."""
    return padding == 1


@faults.dispatched("aten.grid_sampler_2d_backward.default")
def issue_23925(
    hit: Any, func: Any, grad: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool, *args: Any
) -> Any:
    """pytorch 23925: grid_sample's gradient on the far edge takes 0 for what is beyond (border and reflection)."""
    image, points = func(grad, x, grid, mode, padding, corners, *args)
    if mode or not padding or points is None or not grid.numel() or not is_plain(grad, grid):
        return image, points
    sides = torch.tensor([x.shape[3], x.shape[2]], dtype=grid.dtype)
    places = (grid + 1) / 2 * (sides - 1) if corners else ((grid + 1) * sides - 1) / 2
    beyond = func(grad, x, grid, mode, 0, corners, *args)[1]
    return image, instead(hit, points, torch.where(places == sides - 1, beyond, points))


@faults.dispatched("aten.upsample_linear1d.default", aborts='"upsample_linear1d_out_frame" not implemented')
def issue_84989(x: Any, *args: Any) -> bool:
    """pytorch 84989: linear resizing in bfloat16 is not implemented."""
    return x.dtype == torch.bfloat16
