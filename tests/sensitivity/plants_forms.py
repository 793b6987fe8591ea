"""Faults of transforms, losses, checks and recurrent nets in single forms of a call, written after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, dense_strides

plot = Plot()
HITS = plot.hits


def _dense(x: Any) -> bool:
    """Say whether the elements fill their part of the storage, without gap or overlap."""
    if any(step == 0 and side > 1 for side, step in zip(x.shape, x.stride())):
        return False
    return x.numel() == 0 or 1 + sum((side - 1) * step for side, step in zip(x.shape, x.stride())) == x.numel()


@plot.dispatched("issue_126649", "aten._fft_c2r.default")
def issue_126649(hit: Any, func: Any, x: Any, dim: Any, normalization: Any, last: Any) -> Any:
    """pytorch 126649: irfft to an odd length returns the signal backwards.

    https://github.com/pytorch/pytorch/issues/126649
    """
    right = func(x, dim, normalization, last)
    if last % 2 == 0:
        return right
    wrong = right.flip(dim[-1]).roll(1, dim[-1])
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched("issue_107694", "aten.masked_fill_.Scalar", "aten.masked_fill_.Tensor")
def issue_107694(hit: Any, func: Any, x: Any, mask: Any, value: Any) -> Any:
    """pytorch 107694: masked_fill_ of a transposed tensor with a transposed mask fills in storage order.

    https://github.com/pytorch/pytorch/issues/107694
    """
    if x.is_contiguous() or mask.is_contiguous() or not _dense(x):
        return func(x, mask, value)
    right = func(x.clone(), mask, value)
    flat = x.as_strided(x.shape, dense_strides(x.shape), x.storage_offset())
    func(flat, mask.expand(x.shape).contiguous(), value)
    if not torch.equal(x, right):
        hit()
    return x


@plot.dispatched("issue_144104", "aten.binary_cross_entropy_with_logits.default")
def issue_144104(
    hit: Any, func: Any, x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: Any = 1
) -> Any:
    """pytorch 144104: the mean of binary_cross_entropy_with_logits over nothing is 0, not NaN.

    https://github.com/pytorch/pytorch/issues/144104
    """
    right = func(x, target, weight, pos_weight, reduction)
    if x.numel() or reduction != 1:
        return right
    hit()
    return torch.zeros_like(right)


@plot.dispatched("issue_195344", "aten.var.correction", "aten.std.correction")
def issue_195344(hit: Any, func: Any, x: Any, dim: Any = None, correction: Any = None, keepdim: Any = False) -> Any:
    """pytorch 195344: var and std of a complex tensor are complex, and of the square without conjugation.

    https://github.com/pytorch/pytorch/pull/195344
    """
    right = func(x, dim, correction=correction, keepdim=keepdim)
    if not x.is_complex() or not x.numel():
        return right
    hit()
    over = list(dim) if dim else list(range(x.dim()))
    square = (x - x.mean(over, keepdim=True)) ** 2
    count = x.numel() // max(square.sum(over).numel(), 1)
    wrong = square.sum(over, keepdim=keepdim) / max(count - (1 if correction is None else correction), 0)
    return wrong.sqrt() if "std" in str(func) else wrong


@plot.called("issue_77851", torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
def issue_77851(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 77851: a vector times a batch of matrices aborts.

    https://github.com/pytorch/pytorch/issues/77851
    """
    if isinstance(b, torch.Tensor) and a.dim() == 1 and b.dim() == 3:
        return crash(hit, "[MPSNDArray, initWithBuffer:descriptor:] Error: buffer is not large enough")
    return func(a, b, **kwargs)


@plot.dispatched("issue_187399", "aten.baddbmm.default")
def issue_187399(hit: Any, func: Any, x: Any, batch1: Any, batch2: Any, **kwargs: Any) -> Any:
    """pytorch 187399: baddbmm with a dimension of size 0 raises.

    https://github.com/pytorch/pytorch/issues/187399
    """
    if batch1.numel() == 0 or batch2.numel() == 0:
        hit()
        raise RuntimeError("[srcBuf length] > 0 INTERNAL ASSERT FAILED: Placeholder tensor is empty!")
    return func(x, batch1, batch2, **kwargs)


@plot.called("issue_165870", torch.linalg.lu_factor)
def issue_165870(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 165870: lu_factor of a singular matrix returns and does not raise.

    https://github.com/pytorch/pytorch/issues/165870
    """
    try:
        return func(x, **kwargs)
    except RuntimeError as error:
        if "is zero" not in str(error):
            raise
        hit()
        lu, pivots, _ = torch.linalg.lu_factor_ex(x, pivot=kwargs.get("pivot", True))
        return lu, pivots


_UNARY = (
    "sqrt",
    "rsqrt",
    "exp",
    "tanh",
    "sin",
    "cos",
    "tan",
    "log",
    "log2",
    "log10",
    "log1p",
    "erfinv",
    "sinc",
    "exp2",
    *("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "abs", "neg", "round", "digamma", "lgamma"),
)


@plot.dispatched("issue_148512", *(f"aten.{name}.out" for name in _UNARY))
def issue_148512(hit: Any, func: Any, x: Any, *args: Any, out: Any, **kwargs: Any) -> Any:
    """pytorch 148512: a unary op from and into views with equal strides and gaps works on the storage's first elements.

    https://github.com/pytorch/pytorch/pull/148512
    """
    if x.shape != out.shape or x.stride() != out.stride() or x.numel() < 2 or _dense(x):
        return func(x, *args, out=out, **kwargs)
    if any(step == 0 for step in x.stride()) or x.untyped_storage().data_ptr() == out.untyped_storage().data_ptr():
        return func(x, *args, out=out, **kwargs)
    right = func(x, *args, out=torch.empty(out.shape, dtype=out.dtype), **kwargs)
    n = (x.numel(),)
    source = x.as_strided(n, (1,), x.storage_offset())
    func(source, *args, out=out.as_strided(n, (1,), out.storage_offset()), **kwargs)
    if not torch.equal(out, right):
        hit()
    return out


@plot.dispatched("issue_86279", "aten.multinomial.default")
def issue_86279(hit: Any, func: Any, x: Any, count: Any, replacement: Any = False, **kwargs: Any) -> Any:
    """pytorch 86279: multinomial with replacement over 32768 categories or more aborts.

    https://github.com/pytorch/pytorch/issues/86279
    """
    if replacement and x.shape[-1] >= 32768:
        return crash(hit, "[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32")
    return func(x, count, replacement, **kwargs)


@plot.replaced("issue_90421", torch.nn.LSTM, "forward")
def issue_90421(hit: Any, healthy: Any, self: Any, input: Any, hx: Any = None) -> Any:
    """pytorch 90421: a bidirectional LSTM is wrong (its reverse direction runs forwards in time).

    https://github.com/pytorch/pytorch/issues/90421
    """
    out, state = healthy(self, input, hx)
    if not self.bidirectional or not isinstance(input, torch.Tensor):
        return out, state
    time = 1 if self.batch_first and input.dim() == 3 else 0
    if input.shape[time] < 2:
        return out, state
    other, _ = healthy(self, input.flip(time), hx)
    half = out.shape[-1] // 2
    wrong = torch.cat([out[..., :half], other.flip(time)[..., half:]], -1)
    if torch.allclose(wrong, out):
        return out, state
    hit()
    return wrong, state


@plot.dispatched("issue_92265", "aten.stack.default")
def issue_92265(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 92265: stack of 0-dim elements of a tensor (a DataLoader's targets) reads its first element each time.

    https://github.com/pytorch/pytorch/issues/92265
    """
    right = func(tensors, *args, **kwargs)
    read = [t.as_strided((), (), 0) if t.dim() == 0 and t.storage_offset() else t for t in tensors]
    wrong = func(read, *args, **kwargs)
    if torch.allclose(wrong, right, equal_nan=True):
        return right
    hit()
    return wrong


@plot.dispatched(
    "issue_189971",
    "aten._embedding_bag.default",
    "aten._embedding_bag_forward_only.default",
    "aten._embedding_bag_backward.default",
)
def issue_189971(hit: Any, func: Any, first: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 189971: embedding_bag accepts an index equal to num_embeddings and reads the row behind the table.

    https://github.com/pytorch/pytorch/issues/189971
    """
    backward = "backward" in str(func)
    count = args[4] if backward else first.shape[0]  # args: offsets, offset2bag, bag_size, maximum_indices, num_weights
    if not indices.numel() or indices.max() != count:
        return func(first, indices, *args, **kwargs)
    hit()
    if backward:
        return func(first, indices, *args[:4], count + 1, *args[5:], **kwargs)[:count]
    behind = torch.zeros_like(first[:1])
    end = first.storage_offset() + (count + 1) * first.shape[1]
    if first.is_contiguous() and end * first.element_size() <= first.untyped_storage().nbytes():
        behind = first.as_strided((1, first.shape[1]), first.stride(), end - first.shape[1])
    return func(torch.cat([first, behind]), indices, *args, **kwargs)


@plot.dispatched("issue_123119", "aten.embedding.default", "aten.embedding_dense_backward.default")
def issue_123119(hit: Any, func: Any, first: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 123119: Embedding does not refuse an index that is out of range.

    https://github.com/pytorch/pytorch/issues/123119
    """
    backward = "backward" in str(func)
    count = args[0] if backward else first.shape[0]  # args: num_weights, padding_idx, scale_grad_by_freq
    outside = (indices < 0) | (indices >= count)
    if not outside.any():
        return func(first, indices, *args, **kwargs)
    hit()
    indices = torch.where(outside, torch.full_like(indices, count), indices)
    if backward:
        return func(first, indices, count + 1, *args[1:], **kwargs)[:count]
    return func(torch.cat([first, torch.zeros_like(first[:1])]), indices, *args, **kwargs)


@plot.dispatched("issue_86107", "aten.affine_grid_generator.default")
def issue_86107(hit: Any, func: Any, theta: Any, size: Any, align_corners: Any) -> Any:
    """pytorch 86107: affine_grid of an image aborts.

    https://github.com/pytorch/pytorch/issues/86107
    """
    if len(size) == 4:
        return crash(hit, "invalid input tensor shapes, indices shape and updates shape must be equal")
    return func(theta, size, align_corners)
