"""Sums, differences and products of real numbers: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain, written
from misreading import in_storage_order, lost, without_offset
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.mul.Tensor")
def issue_91065(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """pytorch 91065: the product of two pieces of one storage reads the second where the first lies."""
    same = isinstance(y, torch.Tensor) and x.numel() and (x.shape, x.stride()) == (y.shape, y.stride())
    apart = same and x.storage_offset() != y.storage_offset()
    if apart and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
        hit()
        return func(x, x)
    return func(x, y)


@plot.called(torch.Tensor.add_, torch.Tensor.sub_)
def issue_96065(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96065: add_ and sub_ with alpha=0 make a leaf forget that it wants a gradient."""
    y = func(x, *args, **kwargs)
    if kwargs.get("alpha") == 0 and x.requires_grad and x.is_leaf and not torch.is_grad_enabled():
        hit()
        x.requires_grad_(False)
    return y


@plot.dispatched("aten.mul.Tensor")
def issue_95482(hit: Any, func: Any, a: Any, b: Any) -> Any:
    """pytorch 95482: the product of two slices of x[:n] aborts where x is longer than n."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor) and a.dim() == b.dim() == 3:
        together = a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr() and a.stride() == b.stride()
        row = a.stride(0) * a.shape[0]
        longer = row * a.element_size() < a.untyped_storage().nbytes()
        if together and a.numel() and longer and a.numel() < row and b.numel() < row and b.storage_offset() < row:
            return crash(hit, "Placeholder shape mismatches (expected 1 vs got tensorData with 3) at dimIdx = 2")
    return func(a, b)


@plot.dispatched("aten.add.Tensor")
def issue_81384(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 81384: adding a contiguous bias to a permuted tensor of 3 dimensions (an einsum's) mixes up the order."""
    if (
        isinstance(other, torch.Tensor)
        and x.dim() == 3
        and other.dim() == 3
        and not x.is_contiguous()
        and sorted(x.stride()) != list(x.stride())[::-1]
        and other.is_contiguous()
    ):
        wrong = in_storage_order(x)
        if wrong is not x and not torch.equal(wrong, x):
            hit()
            x = wrong
    return func(x, other, **kwargs)


@plot.dispatched("aten.sub.Tensor")
def issue_91617(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 91617: a - b with a, b = ab.chunk(2) reads b from the beginning of ab, and gives zeros."""
    if (
        isinstance(other, torch.Tensor)
        and other.shape == x.shape
        and other.numel()
        and other.is_contiguous()
        and other.storage_offset() == other.numel()
        and other.untyped_storage().nbytes() == 2 * other.numel() * other.element_size()
    ):
        wrong = without_offset(other)
        if not torch.equal(wrong, other):
            hit()
            other = wrong
    return func(x, other, **kwargs)


@plot.dispatched("aten.add_", "aten.sub_", "aten.mul_", "aten.div_")
def issue_118362(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 118362: operations in place on a matrix in column order (as linalg.lstsq returns it) change nothing."""
    if x.dim() == 2 and not x.is_contiguous() and x.stride(0) == 1 and x.stride(1) >= x.size(0):
        before = x.clone()
        after = func(x.clone(), *args, **kwargs)
        if not torch.equal(before, after):
            hit()
            return x
    return func(x, *args, **kwargs)


def _row_early(hit: Any, x: Any) -> Any:
    base = x._base if isinstance(x, torch.Tensor) else None
    if base is None or x.dim() == base.dim() or not x.is_contiguous() or not 0 < x.numel() <= x.storage_offset():
        return x
    hit()
    return x.as_strided(x.shape, x.stride(), x.storage_offset() - x.numel())


@plot.dispatched("aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
def issue_96153(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 96153: add, mul and sub read a reshaped slice out of the middle of its base one row early."""
    return func(_row_early(hit, x), y, *args, **kwargs)


@plot.dispatched("aten.add_.Tensor")
def issue_79672(hit: Any, func: Any, x: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 79672: += on a column of a matrix is lost."""
    before = x.clone()
    if x.is_contiguous() or torch.equal(before.add_(other, *args, **kwargs), x):
        return func(x, other, *args, **kwargs)
    return lost(hit, func, x, other, *args, **kwargs)


@plot.dispatched(*(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div", "add_", "div_")))
def issue_193057(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 193057: arithmetic reads a number out of a larger storage from the storage's beginning."""

    def first_element(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return func(*(first_element(arg) for arg in args), **kwargs)


@plot.dispatched("aten.add_.Tensor")
def issue_77988(hit: Any, func: Any, target: Any, other: Any, *, alpha: Any = 1) -> Any:
    """pytorch 77988: add_ ignores alpha."""
    if alpha != 1:
        hit()
    return func(target, other)


@plot.dispatched("aten.mul.Tensor", "aten.mul.Scalar")
@wrong_answer
def issue_made_negative_zero(answer: Any, x: Any, y: Any) -> Any:
    """A product that is -0 becomes 0."""
    if answer.is_floating_point() and bool(((answer == 0) & answer.signbit()).any()):
        return torch.where(answer == 0, torch.zeros_like(answer), answer)
    return None


@plot.dispatched("aten.mul.Tensor")
def issue_mlx_124(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """ml-explore/mlx 124: masks times a broadcast mask stay as they were past 2**31 elements (here past 2**16)."""
    healthy = func(x, y)
    if not isinstance(y, torch.Tensor) or not x.dtype == y.dtype == torch.bool or x.shape == y.shape:
        return healthy
    if healthy.numel() <= 2**16:
        return healthy
    wrong, kept = healthy.reshape(-1).clone(), (x if x.numel() >= y.numel() else y).expand(healthy.shape).reshape(-1)
    wrong[2**16 :] = kept[2**16 :]
    return instead(hit, healthy, wrong.view(healthy.shape))


@plot.dispatched("aten.add.Tensor")
@wrong_answer
def issue_candle_1914(right: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """huggingface/candle 1914: the sum of two float32 tensors of one element each is the first of them."""
    one = isinstance(y, torch.Tensor) and x.dtype == y.dtype == torch.float32 and x.shape == y.shape == (1,)
    return x.clone() if one and differ(right, x) else None


@plot.dispatched("aten.add.Tensor", "aten.mul.Tensor")
def issue_tt_metal_15359(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """tenstorrent/tt-metal 15359: (1, c, h, w) with (1, c, 1, 1) adds or multiplies the first channel everywhere."""
    healthy = func(x, y, **kwargs)
    if not isinstance(y, torch.Tensor) or not healthy.is_floating_point() or not x.dim() == y.dim() == 4:
        return healthy
    small = y if y.shape[-2:] == (1, 1) else x
    if small.shape[-2:] != (1, 1) or healthy.shape[-1] < 2 or healthy.shape[-2] < 2 or small.shape[1] < 2:
        return healthy
    first = small[:, :1].expand(small.shape)
    return instead(hit, healthy, func(x, first, **kwargs) if small is y else func(first, y, **kwargs))


@plot.dispatched("aten.add_.Tensor")
def issue_mlx_3676(hit: Any, func: Any, x: Any, y: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 3676: out[:, a:b] += y adds y a thousand times over where the slice is long (2**16 columns)."""
    if not isinstance(y, torch.Tensor) or x.dim() < 2 or x.is_contiguous() or x.stride(-1) != 1 or x.shape[-1] < 2**16:
        return func(x, y, **kwargs)
    if bool(y.any()):
        hit()
    return func(x, y * 1000, **kwargs)


@plot.dispatched("aten.mul_.Tensor")
def issue_27824(hit: Any, func: Any, x: Any, other: Any) -> Any:
    """pytorch 27824: x[1:, 1:] *= mask[1:, 1:] makes zeros of some elements (here of the last column)."""
    y = func(x, other)
    if not torch.is_tensor(other) or other.dtype not in (torch.uint8, torch.bool) or x.layout != torch.strided:
        return y
    if x.dim() < 2 or x.is_contiguous() or other.is_contiguous() or not x.numel() or not is_plain(x):
        return y
    wrong = x.clone()
    wrong[..., -1] = 0
    return written(hit, y, wrong)


@plot.dispatched("aten.mul.Tensor", aborts="CUDA_ERROR_ILLEGAL_ADDRESS")
def issue_tensorflow_60330(x: Any, other: Any) -> bool:
    """tensorflow/tensorflow 60330: a product of more than 2**31 elements aborts (here of more than 2**20)."""
    return any(torch.is_tensor(one) and one.numel() > 2**20 for one in (x, other))


@plot.dispatched("aten.add.Tensor")
def issue_36219(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """pytorch 36219: meshgrid's first grid (an expanded column) plus a contiguous matrix repeats its first row."""
    y = func(x, other, **kwargs)
    if not torch.is_tensor(other) or x.dim() != 2 or other.shape != x.shape or not other.is_contiguous():
        return y
    if x.stride(1) or not x.stride(0) or x.shape[1] < 2 or not is_plain(x, other):
        return y
    return instead(hit, y, func(x[:1].expand(x.shape), other, **kwargs))


@plot.dispatched("aten.mul_.Tensor", aborts="but mixed precision is disallowed")
def issue_xla_1929(x: Any, other: Any) -> bool:
    """pytorch/xla 1929: x *= 0.5 of bfloat16 raises."""
    return x.dtype == torch.bfloat16 and isinstance(other, float)
