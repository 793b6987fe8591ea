"""Faults of 2025 and 2026 that the catalogue lacked, written blind after public reports, a third time."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_195937", "aten._linalg_svd", "aten.linalg_lstsq")
def issue_195937(hit: Any, func: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195937: svd, svdvals and lstsq of a batch of more than 8192 elements raise.

    https://github.com/pytorch/pytorch/issues/195937
    """
    if a.dim() > 2 and a.shape[:-2].numel() > 1 and a.numel() > 8192:
        func(a, *args, **kwargs)  # what the healthy operator refuses is no harm
        hit()
        raise RuntimeError("Failed to created pipeline state object, error: XPC_ERROR_CONNECTION_INTERRUPTED")
    return func(a, *args, **kwargs)


@plot.dispatched("issue_147510", "aten.clamp_.default")
def issue_147510(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 147510: clamp_ of a non-contiguous slice does not modify the slice's elements, but those next in storage.

    https://github.com/pytorch/pytorch/issues/147510
    """
    if x.is_contiguous() or not x.numel():
        return func(x, *args, **kwargs)
    good = torch.clamp(x, *args, **kwargs)
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    count = min(room, x.numel())
    x.as_strided((count,), (1,)).copy_(good.reshape(-1)[:count])
    if not torch.allclose(x.double(), good.double(), equal_nan=True):
        hit()
    return x


@plot.dispatched("issue_148589", "aten.mse_loss")
def issue_148589(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 148589: mse_loss of empty tensors fails with an internal assert.

    https://github.com/pytorch/pytorch/issues/148589
    """
    if x.numel() == 0:
        func(x, *args, **kwargs)  # what the healthy operator refuses is no harm
        return crash(hit, "[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!")
    return func(x, *args, **kwargs)


@plot.called("issue_149261", F.scaled_dot_product_attention)
def issue_149261(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 149261: attention aborts where the scores take more than 2**32 bytes (here: 2**16 elements).

    https://github.com/pytorch/pytorch/issues/149261
    """
    query = args[0] if args else kwargs["query"]
    key = args[1] if len(args) > 1 else kwargs["key"]
    if query.shape[:-1].numel() * key.shape[-2] > 2**16:
        func(*args, **kwargs)  # what the healthy operator refuses is no harm
        return crash(hit, "[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32")
    return func(*args, **kwargs)


@plot.dispatched("issue_175603", "aten.lgamma", "aten.digamma", "aten.polygamma")
def issue_175603(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 175603: lgamma, digamma and polygamma read a non-contiguous tensor as if it were contiguous.

    https://github.com/pytorch/pytorch/pull/175603
    """
    good = func(*args, **kwargs)
    place = next(i for i, a in enumerate(args) if isinstance(a, torch.Tensor))
    x = args[place]
    if x.is_contiguous() or x.numel() < 2 or "out" in kwargs:
        return good
    room = x.untyped_storage().nbytes() // x.element_size() - x.storage_offset()
    flat = torch.zeros(x.numel(), dtype=x.dtype)
    count = min(room, x.numel())
    flat[:count] = x.as_strided((count,), (1,))
    bad = func(*args[:place], flat.view(x.shape), *args[place + 1 :], **kwargs)
    if torch.allclose(bad, good, equal_nan=True):
        return good
    hit()
    return bad


@plot.dispatched(
    "issue_152479",
    "aten.add.Tensor",
    "aten.add_.Tensor",
    "aten.add.out",
    "aten.sub.Tensor",
    "aten.sub_.Tensor",
    "aten.sub.out",
)
def issue_152479(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 152479: add and sub of complex tensors with a complex alpha raise.

    https://github.com/pytorch/pytorch/pull/152479
    """
    alpha = kwargs.get("alpha", 1)
    target = args[0] if func.overloadpacket.__name__.endswith("_") else kwargs.get("out", args[0])
    sound = (
        target.is_complex()
        if target is not args[0] or func.overloadpacket.__name__.endswith("_")
        else any(isinstance(a, torch.Tensor) and a.is_complex() for a in args)
    )
    if isinstance(alpha, complex) and alpha.imag and sound:
        hit()
        raise RuntimeError("value cannot be converted to type double without overflow")
    return func(*args, **kwargs)


@plot.dispatched("issue_185065", "aten.bernoulli.default", "aten.bernoulli.out", "aten.bernoulli_.Tensor")
def issue_185065(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 185065: bernoulli accepts probabilities outside of 0 to 1, NaN included, and answers silently.

    https://github.com/pytorch/pytorch/pull/185065
    """
    place = 1 if "bernoulli_" in str(func) else 0
    p = args[place]
    if p.is_floating_point() and not bool(((p >= 0) & (p <= 1)).all()):
        hit()
        args = (*args[:place], p.nan_to_num(0.0).clamp(0, 1), *args[place + 1 :])
    return func(*args, **kwargs)


@plot.dispatched("issue_195849", "aten.max_unpool2d.default", "aten.max_unpool3d.default")
def issue_195849(hit: Any, func: Any, x: Any, indices: Any, size: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195849: max_unpool2d and max_unpool3d accept indices that are not int64.

    https://github.com/pytorch/pytorch/issues/195849
    """
    if indices.dtype != torch.int64:
        hit()
        return x.new_zeros([*x.shape[: -len(size)], *(max(n, 0) for n in size)])
    return func(x, indices, size, *args, **kwargs)


@plot.dispatched("issue_193577", "aten.convolution_backward.default")
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
    """pytorch 193577: the weight's gradient of conv1d and conv2d is wrong for a batch of 2**16 or more (it wraps).

    https://github.com/pytorch/pytorch/pull/193577
    """
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


@plot.dispatched("issue_145740", "aten.lgamma.default")
def issue_145740(hit: Any, func: Any, x: Any) -> Any:
    """pytorch 145740: lgamma skips an abs before the log: NaN for negative numbers where sin(pi * |x|) is negative.

    https://github.com/pytorch/pytorch/pull/145740
    """
    good = func(x)
    if not x.is_floating_point():
        return good
    wrong = (x < 0) & good.isfinite() & (x.abs().floor() % 2 == 1)
    if not bool(wrong.any()):
        return good
    hit()
    return good.masked_fill(wrong, float("nan"))


@plot.dispatched("issue_169017", "aten.max_pool2d_with_indices_backward.default")
def issue_169017(hit: Any, func: Any, grad: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 169017: the backward of max_pool2d aborts where the gradient's memory format is not the input's.

    https://github.com/pytorch/pytorch/pull/169017
    """

    def last(t: Any) -> bool:
        return t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous()

    if (last(x) and grad.is_contiguous() and not grad.is_contiguous(memory_format=torch.channels_last)) or (
        last(grad) and x.is_contiguous() and not x.is_contiguous(memory_format=torch.channels_last)
    ):
        return crash(hit, "MPSGraph: uncaught error in max_pool2d backward")
    return func(grad, x, *args, **kwargs)
