"""Faults of layouts, places and copies, written blind after public issues."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, in_storage_order, misread, without_offset

plot = Plot()
HITS = plot.hits


def _dense(x: Any) -> bool:
    """Tell whether a tensor fills one run of its storage, in whatever order of its dimensions."""
    sides = [(n, s) for n, s in zip(x.shape, x.stride()) if n > 1]
    return all(s for _, s in sides) and sum((n - 1) * s for n, s in sides) + 1 == x.numel()


@plot.dispatched("issue_167924", "aten.repeat_interleave.Tensor")
def issue_167924(hit: Any, func: Any, repeats: Any, **kwargs: Any) -> Any:
    """pytorch 167924: repeat_interleave with counts that are a slice reads the counts from their storage's beginning.

    https://github.com/pytorch/pytorch/issues/167924 (there it crashes, or takes other counts)
    """
    if repeats.storage_offset() and repeats.numel():
        hit()
        repeats = without_offset(repeats)
    return func(repeats, **kwargs)


@plot.called("issue_95417", torch.Tensor.__setitem__)
def issue_95417(hit: Any, func: Any, x: Any, index: Any, value: Any) -> Any:
    """pytorch 95417: x[2:4] = value of another dtype is written to the beginning of x.

    https://github.com/pytorch/pytorch/issues/95417
    """
    if isinstance(value, torch.Tensor) and value.dtype != x.dtype and isinstance(index, slice) and x.numel():
        view = x[index]
        if view.numel() and view.dim() and view.storage_offset() != x.storage_offset():
            hit()
            view.as_strided(view.shape, view.stride(), x.storage_offset()).copy_(value)
            return None
    return func(x, index, value)


@plot.dispatched("issue_105277", "aten.copy_")
def issue_105277(hit: Any, func: Any, x: Any, source: Any, *args: Any) -> Any:
    """pytorch 105277: y.copy_(x.unsqueeze(1)) repeats x along the rows in the place of the columns.

    https://github.com/pytorch/pytorch/issues/105277
    """
    column = source.layout == torch.strided and source.dim() == x.dim() == 2 and source.shape[0] == x.shape[0] > 1
    if column and source.shape[1] == 1 < x.shape[1]:
        places = torch.arange(x.numel(), device=source.device) % source.shape[0]
        hit()
        source = source.reshape(-1)[places].view(x.shape)
    return func(x, source, *args)


@plot.dispatched("issue_163327", "aten.scatter_add_")
def issue_163327(hit: Any, func: Any, x: Any, dim: int, index: Any, source: Any) -> Any:
    """pytorch 163327: scatter_add_ into a row that is not the first of its matrix adds nothing.

    https://github.com/pytorch/pytorch/issues/163327
    """
    if x.storage_offset() and index.numel():
        hit()
        return x
    return func(x, dim, index, source)


@plot.dispatched("issue_94396", "aten.clamp.default")
def issue_94396(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 94396: clamp of a permuted tensor writes its rows in order into a result with permuted strides.

    https://github.com/pytorch/pytorch/issues/94396
    """
    y = func(x, *args, **kwargs)
    if x.layout == torch.strided and x.dim() > 2 and not y.is_contiguous() and _dense(y) and y.numel():
        wrong = torch.empty_like(y)
        wrong.as_strided((y.numel(),), (1,), 0).copy_(y.contiguous().view(-1))
        if not torch.equal(wrong, y):
            hit()
            return wrong
    return y


@plot.dispatched("issue_131736", "aten.softplus.default")
def issue_131736(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 131736: softplus of a tensor whose axes were moved is zero.

    https://github.com/pytorch/pytorch/issues/131736
    """
    y = func(x, *args, **kwargs)
    if not x.is_contiguous() and x.numel() and _dense(x):
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_182688", "aten.sum.default")
def issue_182688(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    """pytorch 182688: the sum of all of x[:, :, 128:, :] takes what follows in the storage, the left out rows too.

    https://github.com/pytorch/pytorch/pull/182688
    """
    if x.layout == torch.strided and x.dim() > 2 and x.storage_offset() and x.numel() and not _dense(x):
        x = misread(in_storage_order, hit, x)
    return func(x, **kwargs)


@plot.dispatched("issue_ipex_682", "aten.scatter")
def issue_ipex_682(hit: Any, func: Any, x: Any, dim: int, index: Any, *args: Any, **kwargs: Any) -> Any:
    """intel-extension-for-pytorch 682: scatter with an index of no elements gives zeros, not its input.

    https://github.com/intel/intel-extension-for-pytorch/issues/682 (on XPU; a kernel that copies its input only
    along with the writes could do the same on MPS)
    """
    y = func(x, dim, index, *args, **kwargs)
    if not index.numel() and x.numel():
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_80192", "aten.constant_pad_nd.default")
def issue_80192(hit: Any, func: Any, x: Any, pad: Any, value: Any = 0) -> Any:
    """pytorch 80192: padding a matrix with a constant writes its rows one after the other, without the gaps.

    https://github.com/pytorch/pytorch/issues/80192
    """
    y = func(x, pad, value)
    if x.dim() == 2 and len(pad) == 4 and min(pad) >= 0 and x.numel():
        wrong = torch.full(y.shape, value, dtype=y.dtype, device=y.device)
        first = pad[2] * y.shape[1] + pad[0]
        wrong.view(-1)[first : first + x.numel()] = x.reshape(-1)
        if not torch.equal(wrong, y):
            hit()
            return wrong
    return y


@plot.dispatched("issue_60492", "aten.searchsorted", "aten.bucketize")
def issue_60492(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 60492: searchsorted into a column writes the places below one another, over the other column.

    https://github.com/pytorch/pytorch/issues/60492 (on CPU and CUDA, since repaired; MPS has a kernel of its own)
    """
    out = kwargs.get("out")
    if out is not None and not out.is_contiguous() and out.numel() > 1 and all(out.stride()):
        hit()
        right = func(*args, **{**kwargs, "out": torch.empty(out.shape, dtype=out.dtype, device=out.device)})
        out.as_strided((out.numel(),), (1,), out.storage_offset()).copy_(right.reshape(-1))
        return out
    return func(*args, **kwargs)
