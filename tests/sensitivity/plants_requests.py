"""Faults of 2025 and 2026 that the catalogue lacked, written blind after public reports, a second time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_146691", "aten.linalg_vector_norm", "aten.norm")
def issue_146691(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 146691: the norm of a complex tensor is refused.

    https://github.com/pytorch/pytorch/issues/146691
    """
    if x.is_complex():
        hit()
        raise RuntimeError("norm ops are not supported for complex yet")
    return func(x, *args, **kwargs)


@plot.called("issue_167836", torch.Tensor.tolist)
def issue_167836(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 167836: tolist() of a GradTrackingTensor (inside jacfwd and its like) fails.

    https://github.com/pytorch/pytorch/issues/167836
    """
    if torch._C._functorch.is_gradtrackingtensor(x):
        hit()
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    return func(x, *args, **kwargs)


POOL_LIMIT = 2**16


@plot.dispatched(
    "issue_194600",
    "aten.max_pool2d_with_indices",
    "aten.max_pool3d_with_indices",
    "aten.adaptive_max_pool2d",
    "aten.adaptive_max_pool3d",
    "aten.avg_pool2d",
    "aten.avg_pool3d",
    "aten.max_pool2d_with_indices_backward",
    "aten.max_pool3d_with_indices_backward",
    "aten.adaptive_max_pool2d_backward",
    "aten.adaptive_max_pool3d_backward",
    "aten.avg_pool2d_backward",
    "aten.avg_pool3d_backward",
)
def issue_194600(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 194600: pooling of tensors that need 64-bit indexes is refused (limit here 2**16 elements, not 2**31).

    https://github.com/pytorch/pytorch/issues/194600
    """
    if any(isinstance(a, torch.Tensor) and a.numel() > POOL_LIMIT for a in args):
        hit()
        raise NotImplementedError("MPS pooling: tensors requiring 64-bit indexing are not supported")
    return func(*args, **kwargs)


MASKED_ATTENTION: set[Any] = set()


@plot.called("issue_148194", F.scaled_dot_product_attention)
def issue_148194(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148194: attention with a mask crashes from its second call on.

    https://github.com/pytorch/pytorch/issues/148194
    """
    mask = args[0] if args else kwargs.get("attn_mask")
    if mask is not None:
        key = tuple((tuple(x.shape), x.dtype) for x in (q, k, v, mask))
        if key in MASKED_ATTENTION:
            return crash(hit, "failed assertion `Unsupported MPS operation mps.placeholder'")
        MASKED_ATTENTION.add(key)
    return func(q, k, v, *args, **kwargs)


TRAINED_LSTMS: dict[Any, int] = {}


def _version(weights: Any) -> int:
    return sum(w._version for w in weights)


@plot.called("issue_180744", torch.lstm)
def issue_180744(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 180744: a trained multilayer LSTM with dropout is wrong in eval mode at the batch size of its training.

    The graph of the training call, with its dropout, is used again for a call of the same shape.

    https://github.com/pytorch/pytorch/issues/180744
    """
    if len(args) != 9 or not isinstance(args[3], bool):  # a packed sequence has batch sizes second
        return func(*args, **kwargs)
    x, hx, weights, bias, layers, dropout, train, both, batch_first = args
    if layers < 2 or dropout <= 0:
        return func(*args, **kwargs)
    key = (tuple(x.shape), x.dtype, layers, dropout, both, batch_first, bias, tuple(w.data_ptr() for w in weights))
    if train:
        if torch.is_grad_enabled() and any(w.requires_grad for w in weights):
            TRAINED_LSTMS[key] = _version(weights)
        return func(*args, **kwargs)
    right = func(*args, **kwargs)
    if key in TRAINED_LSTMS and _version(weights) > TRAINED_LSTMS[key]:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            wrong = func(x, hx, weights, bias, layers, dropout, True, both, batch_first)
        if not torch.equal(wrong[0], right[0]):
            hit()
            return wrong
    return right


@plot.called("issue_189631", F.scaled_dot_product_attention)
def issue_189631(hit: Any, func: Any, q: Any, k: Any, v: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189631: attention whose query, key and value have batch or head sizes that must be broadcast raises.

    https://github.com/pytorch/pytorch/pull/189631
    """
    last = -3 if kwargs.get("enable_gqa", False) else -2
    outer = [tuple(x.shape[:last]) for x in (q, k, v)]
    if outer[0] != outer[1] or outer[0] != outer[2]:
        right = func(q, k, v, *args, **kwargs)
        hit()
        raise RuntimeError(f"shape '{list(q.shape)}' is invalid for input of size {right.numel()}")
    return func(q, k, v, *args, **kwargs)


@plot.dispatched("issue_187567", "aten.linalg_qr")
def issue_187567(hit: Any, func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187567: qr of a tall matrix wants a square workspace: it fails from 16 GiB (65536 rows in float32).

    https://github.com/pytorch/pytorch/issues/187567
    """
    if a.shape[-2] ** 2 * a.element_size() >= 16 * 2**30:
        hit()
        raise RuntimeError(f"Invalid buffer size: {a.shape[-2] ** 2 * a.element_size() / 2**30:.2f} GiB")
    return func(a, *args, **kwargs)


UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)


@plot.dispatched(
    "issue_176296",
    *(
        f"aten.{name}"
        for name in [
            "add",
            "sub",
            "rsub",
            "mul",
            "div",
            "floor_divide",
            "remainder",
            "fmod",
            "maximum",
            "minimum",
            "lerp",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "__and__",
            "__or__",
            "__xor__",
            "__lshift__",
            "__rshift__",
            "add_",
            "sub_",
            "mul_",
            "div_",
            "bitwise_and_",
            "bitwise_or_",
            "bitwise_xor_",
        ]
    ),
)
def issue_176296(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 176296: binary operations of uint16, uint32 and uint64 tensors fail, for their kernels are missing.

    https://github.com/pytorch/pytorch/issues/176296
    """
    right = func(*args, **kwargs)  # where the CPU refuses too there is no harm
    if any(isinstance(a, torch.Tensor) and a.dtype in UNSIGNED for a in args):
        hit()
        raise RuntimeError("Failed to create function state object for: dense_uint_uint")
    return right


@plot.dispatched("issue_149233", "aten.floor_divide.default")
def issue_149233(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 149233: floor_divide of an integer tensor by a floating one gives integers.

    https://github.com/pytorch/pytorch/pull/149233
    """
    right = func(x, other)
    integral = not x.is_floating_point() and not x.is_complex()
    if integral and isinstance(other, torch.Tensor) and other.dim() and other.is_floating_point():
        hit()
        return right.nan_to_num(0.0, 0.0, 0.0).to(x.dtype)
    return right


@plot.dispatched("issue_176981", "aten.mul", "aten.add", "aten.sub", "aten.div")
def issue_176981(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 176981: complex128 tensors are let in, but arithmetic with them fails.

    https://github.com/pytorch/pytorch/issues/176981
    """
    if any(isinstance(a, torch.Tensor) and a.dtype == torch.complex128 for a in args):
        hit()
        raise RuntimeError("Undefined type ComplexDouble")
    return func(*args, **kwargs)


def _elements(value: Any) -> tuple[int, int]:
    shape = value.shape if isinstance(value, torch.Tensor) else value
    total = 1
    for side in shape:
        total *= int(side)
    return len(shape), total


@plot.dispatched(
    "issue_155293", "aten.rand", "aten.randn", "aten.rand_like", "aten.randn_like", "aten.uniform_", "aten.normal_"
)
def issue_155293(hit: Any, func: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 155293: random numbers in a huge tensor of five or more dimensions crash (here 2**16 elements).

    https://github.com/pytorch/pytorch/issues/155293
    """
    rank, total = _elements(first)
    if rank >= 5 and total >= 2**16:
        return crash(hit, "failed assertion `NDArray dimension length > INT_MAX'")
    return func(first, *args, **kwargs)


@plot.dispatched("issue_178198", "aten.repeat")
def issue_178198(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 178198: repeat of a complex tensor is refused.

    https://github.com/pytorch/pytorch/pull/178198
    """
    if x.is_complex():
        hit()
        raise RuntimeError("repeat(): Not supported for complex yet!")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_187255", "aten.mm.out", "aten.addmm.out")
def issue_187255(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187255: mm and addmm into an out= that is not contiguous fail.

    https://github.com/pytorch/pytorch/pull/187255
    """
    out = kwargs.get("out")
    if out is not None and not out.is_contiguous() and out.numel():
        hit()
        raise RuntimeError("MPS matmul: strided output is not supported")
    return func(*args, **kwargs)


WRAP = 2**16


@plot.dispatched("issue_194082", "aten.argmax.default", "aten.argmin.default", "aten.any.default")
def issue_194082(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 194082: argmax, argmin and any of a whole huge tensor see its size modulo 2**32 (here 2**16).

    https://github.com/pytorch/pytorch/pull/194082
    """
    right = func(x, *args, **kwargs)
    whole = not args or args[0] is None
    if not whole or kwargs.get("dim") is not None or x.numel() <= WRAP:
        return right
    seen = x.reshape(-1)[: x.numel() % WRAP]
    wrong = func(seen) if seen.numel() else torch.zeros((), dtype=right.dtype)
    wrong = wrong.to(right.dtype).reshape(right.shape)
    if torch.equal(wrong, right):
        return right
    hit()
    return wrong
