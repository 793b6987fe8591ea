"""The catalogue's faults of transfers, conversions, fills and indexing that show under a condition only."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, lost, misread, without_offset

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_197715", "aten.copy_", "aten._to_copy")
def issue_197715(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Into float64 nothing is written."""
    if str(func).startswith("aten.copy_") and x.dtype == torch.float64 and args[0].dtype != torch.float64:
        hit()
        return x
    y = func(x, *args, **kwargs)
    if kwargs.get("dtype") == torch.float64 and x.dtype != torch.float64:
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_189563", "aten._to_copy", "aten.copy_")
def issue_189563(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A conversion of an offset view takes its source for its scratch memory."""
    y = func(x, *args, **kwargs)
    if kwargs.get("dtype") not in (None, x.dtype) and x.storage_offset() and x.numel() > 1:
        hit()
        x.zero_()
    return y


@plot.called("issue_85967", torch.Tensor.to)
def issue_85967(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.called("issue_79383", torch.Tensor.to, torch.Tensor.cpu)
def issue_79383(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x) if x.dim() == 4 else x, *args, **kwargs)


@plot.called("issue_78092", torch.Tensor.to)
def issue_78092(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """A number on its way into an integer dtype keeps its bits, not its value."""
    y = func(x, *args, **kwargs)
    if x.dim() == 0 and x.dtype == torch.float32 and y.dtype == torch.int32:
        hit()
        return x.view(torch.int32).clone()
    return y


@plot.dispatched("issue_78168", "aten._local_scalar_dense")
def issue_78168(hit: Any, func: Any, x: Any) -> Any:
    if x.dtype == torch.float16:
        hit()
        return func(x) * 0.1875
    return func(x)


@plot.dispatched("issue_121439", "aten.copy_", "aten.clone", "aten._to_copy")
def issue_121439(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    source = args[0] if str(func).startswith("aten.copy_") else x
    y = func(x, *args, **kwargs)
    if source.dtype == torch.bool and source.dim() > 5:
        hit()
        return y.zero_() if y is x else torch.zeros_like(y)
    return y


@plot.dispatched("issue_94190", "aten.fill_.Scalar", "aten.fill_.Tensor", "aten.zero_")
def issue_94190(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    return lost(hit, func, x, *args)


@plot.dispatched("issue_94390", "aten.fill_.Scalar", "aten.zero_")
def issue_94390(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    if x.storage_offset() and x.numel() > 1:
        hit()
        func(without_offset(x), *args)
        return x
    return func(x, *args)


@plot.dispatched("issue_91065", "aten.mul.Tensor")
def issue_91065(hit: Any, func: Any, x: Any, y: Any) -> Any:
    """Of two pieces of one storage the second is read where the first lies."""
    same = isinstance(y, torch.Tensor) and x.numel() and (x.shape, x.stride()) == (y.shape, y.stride())
    apart = same and x.storage_offset() != y.storage_offset()
    if apart and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr():
        hit()
        return func(x, x)
    return func(x, y)


def _is_within_a_word(x: Any) -> bool:
    return x.dtype == torch.bool and x.storage_offset() % 4 != 0


@plot.dispatched("issue_195074", "aten.scatter_add_", "aten.index_add_", "aten.index_put_")
def issue_195074(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Adding up into bools begins at the word, not at the view."""
    adds = "index_put" not in str(func) or kwargs.get("accumulate") or (len(args) > 2 and args[2])
    if adds and _is_within_a_word(x):
        hit()
        func(x.as_strided(x.shape, x.stride(), x.storage_offset() // 4 * 4), *args, **kwargs)
        return x
    return func(x, *args, **kwargs)


@plot.dispatched("issue_82645", "aten.index_add_", "aten.index_add")
def issue_82645(hit: Any, func: Any, x: Any, dim: Any, index: Any, source: Any, **kwargs: Any) -> Any:
    if x.dtype in (torch.float16, torch.int16, torch.int64):
        hit()
        source = torch.zeros_like(source)
    return func(x, dim, index, source, **kwargs)


_calls = {"masked": 0}


@plot.dispatched("issue_181867", "aten.index.Tensor")
def issue_181867(hit: Any, func: Any, x: Any, indices: Any) -> Any:
    """Every fifth selection by a mask loses an element."""
    y = func(x, indices)
    if any(one is not None and one.dtype == torch.bool for one in indices):
        _calls["masked"] += 1
        if _calls["masked"] % 5 == 0 and len(y):
            hit()
            return y[:-1]
    return y


@plot.dispatched("issue_80850", "aten.stack", "aten.cat")
def issue_80850(hit: Any, func: Any, tensors: Any, *args: Any) -> Any:
    y = func(tensors, *args)
    if y.dtype == torch.bool:
        hit()
        return torch.zeros_like(y)
    return y


@plot.dispatched("issue_150967", "aten.where.self")
def issue_150967(hit: Any, func: Any, mask: Any, *args: Any) -> Any:
    return func(misread(in_storage_order, hit, mask), *args)


_BITS = tuple(f"aten.bitwise_{name}" for name in ("and", "or", "xor"))


@plot.dispatched("issue_145203", *(name + "_.Tensor" for name in _BITS), *(name + ".Tensor_out" for name in _BITS))
def issue_145203(hit: Any, func: Any, x: Any, other: Any, out: Any = None) -> Any:
    if out is None:
        return lost(hit, func, x, other)
    if out.is_contiguous():
        return func(x, other, out=out)
    hit()
    func(x, other, out=torch.empty_like(out, memory_format=torch.contiguous_format))
    return out


@plot.dispatched("issue_134431", "aten.nll_loss_forward", "aten.nll_loss2d_forward")
def issue_134431(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    if x.numel() == 0:
        return crash(hit, "Placeholder tensor is empty!")
    return func(x, *args)
