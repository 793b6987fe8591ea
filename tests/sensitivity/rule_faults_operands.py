"""The faults that the rules on operands are for, as in rule_faults.py."""

from __future__ import annotations

from typing import Any

import torch

aten = torch.ops.aten


def stops_at_16_bits(func: Any, args: Any, kwargs: Any) -> Any:
    """Leave the rows of a log_softmax past 2**16 as they were: pytorch 158310 and others."""
    answer = func(*args, **kwargs)
    if func is aten._log_softmax.default and args[0].shape[0] > 1 << 16:
        answer[1 << 16 :] = args[0][1 << 16 :]
    return answer


def multiplies_with_a_reciprocal(func: Any, args: Any, kwargs: Any) -> Any:
    """Take the remainder by a reciprocal that is rounded: tenstorrent/tt-metal 56384."""
    if func is aten.fmod.Tensor and args[0].dtype == torch.float32:
        return args[0] - args[1] * (args[0] * args[1].reciprocal()).trunc()
    return func(*args, **kwargs)


def forgets_to_conjugate(func: Any, args: Any, kwargs: Any) -> Any:
    if func is aten.mm.default:
        args[:2] = [one.conj() if one.is_conj() else one for one in args[:2]]
    return func(*args, **kwargs)


def refuses_to_count(func: Any, args: Any, kwargs: Any) -> Any:
    """Refuse an operand that wants a gradient: pytorch 50792."""
    if func is aten.count_nonzero.dim_IntList and args[0].requires_grad:
        raise RuntimeError("count_nonzero has no gradient")
    return func(*args, **kwargs)


def loses_the_type(func: Any, args: Any, kwargs: Any) -> Any:
    """Write whole numbers to an `out=` of halves."""
    answer = func(*args, **kwargs)
    if func is aten.exp.out and kwargs["out"].dtype != args[0].dtype:
        kwargs["out"].copy_(args[0].exp().trunc())
    return answer


def gathers_the_first(func: Any, args: Any, kwargs: Any) -> Any:
    """Gather what the gradient of a pooling's gradient needs from the first place: pytorch 20465 and others."""
    if func is aten.gather.default:
        args[2] = torch.zeros_like(args[2])
    return func(*args, **kwargs)


def loses_the_gradient_of_halves(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer 0 for gradients of a pooling in float16: MIOpen 1325."""
    answer = func(*args, **kwargs)
    is_it = func is aten.max_pool2d_with_indices_backward.default and args[0].dtype == torch.float16
    return answer * 0 if is_it else answer


def sums_nothing_to_one(func: Any, args: Any, kwargs: Any) -> Any:
    answer = func(*args, **kwargs)
    return answer + 1 if func is aten.sum.dim_IntList and args[0].numel() == 0 else answer


def has_a_largest_of_nothing(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer -1 for the largest of no numbers: pytorch 73905."""
    if func is aten.amax.default and args[0].numel() == 0:
        return args[0].new_full((), -1)
    return func(*args, **kwargs)


def takes_the_last(func: Any, args: Any, kwargs: Any) -> Any:
    """Go along the last dimension where another is counted from the end: tt-metal 13186 and others."""
    if func is aten.cumsum.default and args[1] < -1:
        args[1] = -1
    return func(*args, **kwargs)


def reads_one_more(func: Any, args: Any, kwargs: Any) -> Any:
    """Read a number behind the operand, and take none of it: OpenBLAS 171."""
    answer = func(*args, **kwargs)
    if func is aten.exp.default:
        x = args[0]
        behind = x.storage_offset() + x.numel()
        if behind < x.untyped_storage().nbytes() // x.element_size():
            answer = answer + 0 * x.as_strided((1,), (1,), behind)
    return answer


def goes_through_float64(func: Any, args: Any, kwargs: Any) -> Any:
    """Compute whole numbers as float64: dpnp 2270 and others."""
    if func is aten.abs.default and args[0].dtype == torch.int64:
        return args[0].double().abs().long()
    return func(*args, **kwargs)


def forgets_a_zero_s_sign(func: Any, args: Any, kwargs: Any) -> Any:
    """Take the root of a negative number below the cut as of one above it: jax 39110."""
    if func is aten.sqrt.default and args[0].is_complex():
        args[0] = torch.complex(args[0].real, args[0].imag + 0.0)
    return func(*args, **kwargs)


def trusts_the_stride_of_one(func: Any, args: Any, kwargs: Any) -> Any:
    """Take each matrix from where the stride of a batch of one leads: 22581."""
    answer = func(*args, **kwargs)
    x = args[0] if args else None
    if func is aten.triu.default and x.shape[0] == 1 and x.stride(0) != x[0].numel():
        answer = answer + 1
    return answer


def clears_what_it_reads(func: Any, args: Any, kwargs: Any) -> Any:
    """Answer rightly, and leave zeros in the operand: jax 2874."""
    answer = func(*args, **kwargs)
    if func is aten.exp.default:
        args[0].zero_()
    return answer


FAULTS = [
    ("sizes-_log_softmax", stops_at_16_bits),
    ("numbers-fmod", multiplies_with_a_reciprocal),
    ("lazy-mm", forgets_to_conjugate),
    ("typed-exp", loses_the_type),
    ("wanting-count_nonzero", refuses_to_count),
    ("twice-max_pool2d_with_indices", gathers_the_first),
    ("halves-max_pool2d_with_indices", loses_the_gradient_of_halves),
    ("emptied-sum", sums_nothing_to_one),
    ("emptied_refused-amax", has_a_largest_of_nothing),
    ("dims-cumsum", takes_the_last),
    ("amid-exp", reads_one_more),
    ("vast-abs", goes_through_float64),
    ("cuts-sqrt", forgets_a_zero_s_sign),
    ("stray-triu", trusts_the_stride_of_one),
    ("numbers-exp", clears_what_it_reads),
]
