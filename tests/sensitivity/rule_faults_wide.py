"""The faults that the rules on gradients, windows, written operands and sizes are for, as in rule_faults.py."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

aten = torch.ops.aten
Fault = Callable[[Any, Any, Any], Any]


def no_slope_at_zero(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute what a gradient multiplies with, but for zero: tenstorrent/tt-metal 6536."""
    answer = func(*args, **kwargs)
    if func is aten.cos.default and answer.dtype == torch.bfloat16:
        return answer.masked_fill(args[0] == 0, math.nan)
    return answer


def infinite_is_large(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer.nan_to_num(nan=math.nan) if func is aten.rsqrt.default else answer


def rounds_each_step(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.glu_backward.default and args[0].dtype == torch.float16:
        one, two = args[1].chunk(2, args[2])
        gate = two.sigmoid()
        return torch.cat([args[0] * gate, (1 - gate) * gate * args[0] * one], args[2])
    return func(*args, **kwargs)


def rounds_a_slope(func: Any, args: Any, kwargs: Any) -> Any:
    """Round the slope of silu before the gradient is multiplied with it."""
    if func is aten.silu_backward.default and args[0].dtype == torch.bfloat16:
        gate = args[1].float().sigmoid()
        return args[0] * (gate * (1 + args[1].float() * (1 - gate))).to(torch.bfloat16)
    return func(*args, **kwargs)


def real_part_alone(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.all.default and args[0].is_complex():
        args[0] = args[0].real
    return func(*args, **kwargs)


def in_storage_order(which: Any) -> Fault:
    """Read windows that overlap as the elements of their storage, one behind the other."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        x = args[0] if args else None
        if func is which and isinstance(x, torch.Tensor) and x.dim() == 2 and x.stride() == (1, 1):
            reach = sum(x.shape) - 1
            flat = x.as_strided((reach,), (1,), x.storage_offset())
            args[0] = flat[torch.arange(x.numel()) % reach].view(x.shape)
        return func(*args, **kwargs)

    return fault


def loses_statistics(func: Any, args: Any, kwargs: Any) -> Any:
    """Write running statistics that have gaps in memory nowhere."""
    if func is aten.native_batch_norm.default:
        args[3:5] = [one if one is None or one.is_contiguous() else one.clone() for one in args[3:5]]
    return func(*args, **kwargs)


def loses_noise(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.rrelu_with_noise.default and not args[1].is_contiguous():
        args[1] = args[1].clone()
    return func(*args, **kwargs)


def stops_at(count: int) -> Fault:
    """Leave what is past so many elements of a broadcast as the first operand has it, in masks alone."""

    def fault(func: Any, args: Any, kwargs: Any) -> Any:
        answer = func(*args, **kwargs)
        if func is aten.mul.Tensor and answer.dtype == torch.bool and args[0].shape != answer.shape:
            kept = args[0].expand(answer.shape).reshape(-1)
            answer = torch.cat([answer.reshape(-1)[:count], kept[count:]]).view(answer.shape)
        return answer

    return fault


def adds_often(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.add_.Tensor and args[0].shape[-1] >= 1 << 16 and not args[0].is_contiguous():
        args[1] = args[1] * 1000
    return func(*args, **kwargs)


def counts_bytes_in_16_bits(func: Any, args: Any, kwargs: Any) -> Any:
    """Write past 2**16 bytes to the place that is left of it: ml-explore/mlx 1144."""
    if func is aten.copy_.default:
        x = args[0]
        most = (1 << 16) // x.element_size()
        if x.storage_offset() >= most:
            func(x.as_strided(x.shape, x.stride(), x.storage_offset() % most), *args[1:], **kwargs)
            return x
    return func(*args, **kwargs)


def spreads_one_of_several(func: Any, args: Any, kwargs: Any) -> Any:
    """Give the gradient of one place of a slice to all that the step leaves out: ml-explore/mlx 4444."""
    answer = func(*args, **kwargs)
    if func is aten.slice_backward.default:
        gradient, _, dim, start, end, step = args
        end = min(end, answer.shape[dim])
        if step > 1 and gradient.shape[dim] == 1 and end - start > 1:
            part = answer.narrow(dim, start, end - start)
            part.copy_(gradient.expand_as(part))
    return answer


def names_no_place(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    if func is aten.topk.default and args[0].is_floating_point():
        dim = kwargs.get("dim", args[2] if len(args) > 2 else -1)
        if args[0].numel() >= 512 * args[0].shape[dim]:
            return answer[0], answer[1].masked_fill(args[0].isnan().all(dim, keepdim=True), -1)
    return answer


def forgets_differences(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    if func is aten._cdist_backward.default and 1 < args[3] < 2:
        each = args[2].shape[-2] * args[2].shape[-1]
        answer.view(-1, answer.shape[-1])[2**16 // each :] = 0
    return answer


def loses_a_part_of_many(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    many = isinstance(answer, torch.Tensor) and answer.numel() and args[0].numel() // answer.numel() >= 1 << 18
    return answer * (1 - 2**-6) if func is aten.mean.dim and many else answer


def no_narrow_products(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    if func is aten.bmm.default and min(args[0].shape) > 1 and args[0].shape[1] >= 512 and args[1].shape[2] <= 32:
        return torch.zeros_like(answer)
    return answer


# A rule's case, and what it must notice.
FAULTS: list[tuple[str, Fault]] = [
    ("derived-sin", no_slope_at_zero),
    ("derived-asin", infinite_is_large),
    ("rounding-glu_backward", rounds_each_step),
    ("rounding-silu", rounds_a_slope),
    ("special-all", real_part_alone),
    ("windows-nan_to_num", in_storage_order(aten.nan_to_num.default)),
    ("windows-add", in_storage_order(aten.add.Tensor)),
    ("written-certain-statistics", loses_statistics),
    ("written-certain-noise", loses_noise),
    ("broadcast-mul", stops_at(1 << 16)),
    ("rows-add", adds_often),
    ("threshold-far-complex64", counts_bytes_in_16_bits),
    ("derived-views-dense-float32", spreads_one_of_several),
    ("special-lines-topk-float32", names_no_place),
    ("threshold-differences-cdist-1.5", forgets_differences),
    ("threshold-many-mean-float32", loses_a_part_of_many),
    ("threshold-narrow-batches-float32", no_narrow_products),
]
