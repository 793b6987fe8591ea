"""The catalogue's faults of pointwise operators, views, copies and indexing."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, dense_strides, in_storage_order, lost, misread, without_offset

plot = Plot()
HITS = plot.hits


def _storage_order(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


issue_98212 = plot.dispatched("issue_98212", "aten.gelu", "aten.leaky_relu", "aten.mish")(_storage_order)


@plot.dispatched("issue_139006", "aten.silu")
def issue_139006(hit: Any, func: Any, x: Any) -> Any:
    y = func(x)
    if not x.is_contiguous():
        hit()
        y.reshape(-1)[: y.numel() // 2] = float("nan")
        return y * float("nan")
    return y


_BACKWARDS = tuple(f"aten.{name}_backward" for name in ("tanh", "sigmoid", "silu", "threshold", "mish", "logit"))


@plot.dispatched("issue_175188", *_BACKWARDS)
def issue_175188(hit: Any, func: Any, grad: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*misread(in_storage_order, hit, (grad, *args)), **kwargs)


@plot.dispatched("issue_100764", *(f"aten.{name}.out" for name in ("neg", "abs", "exp", "sin", "cos", "sqrt", "log")))
def issue_100764(hit: Any, func: Any, x: Any, *, out: Any) -> Any:
    if not out.is_contiguous():
        target = in_storage_order(out)
        if target is not out:
            hit()
            target.copy_(func(x, out=torch.empty_like(x)))
            return out
    return func(x, out=out)


@plot.dispatched("issue_105801", "aten.erfinv")
def issue_105801(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    return func(misread(without_offset, hit, x), *args)


@plot.dispatched("issue_114692", "aten.zero_", "aten.fill_.Scalar")
def issue_114692(hit: Any, func: Any, x: Any, *args: Any) -> Any:
    """One element more than asked for."""
    beyond = x.storage_offset() + x.numel()
    if x.numel() and x.is_contiguous() and beyond < x.untyped_storage().nbytes() // x.element_size():
        hit()
        func(x.as_strided((1,), (1,), beyond), *args)
    return func(x, *args)


_pending: list[Any] = []


@plot.dispatched("issue_122016", "aten.fill_.Scalar", "aten.fill_.Tensor", "aten.copy_")
def issue_122016(hit: Any, func: Any, x: Any, value: Any, *args: Any) -> Any:
    """The last value lands in the slot before, too."""
    if x.dim() == 0 and x._is_view():
        if _pending and _pending[0].untyped_storage().data_ptr() == x.untyped_storage().data_ptr():
            hit()
            func(_pending[0], value, *args)
        _pending[:] = [x]
    return func(x, value, *args)


@plot.dispatched("issue_183631", "aten.fill_.Scalar")
def issue_183631(hit: Any, func: Any, x: Any, value: Any) -> Any:
    if x.element_size() == 1 and x.storage_offset() % 4:
        hit()
        func(x.as_strided(x.shape, x.stride(), x.storage_offset() // 4 * 4), value)
        return x
    return func(x, value)


@plot.dispatched("issue_95323", "aten.add.Tensor", "aten.clone", "aten.fill_.Scalar", "aten.sum")
def issue_95323(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if x.dtype == torch.uint8:
        x = misread(without_offset, hit, x)
    return func(x, *args, **kwargs)


@plot.dispatched("issue_193057", *(f"aten.{name}.Tensor" for name in ("add", "sub", "mul", "div", "add_", "div_")))
def issue_193057(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    def first_element(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return func(*(first_element(arg) for arg in args), **kwargs)


@plot.dispatched("issue_189961", "aten.copy_")
def issue_189961(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    if not target.is_contiguous() and target.stride() == source.stride() and target.numel() > 1:
        hit()
        row = (target.numel(),), (1,)
        func(target.as_strided(*row, target.storage_offset()), source.as_strided(*row, source.storage_offset()), *args)
        return target
    return func(target, source, *args)


@plot.dispatched("issue_108978", "aten.copy_")
def issue_108978(hit: Any, func: Any, target: Any, source: Any, *args: Any) -> Any:
    if target.dim() == 1 and target.storage_offset() and target.is_contiguous():
        hit()
        func(without_offset(target), source, *args)
        return target
    return func(target, source, *args)


@plot.called("issue_83015", torch.Tensor.to)
def issue_83015(hit: Any, func: Any, x: Any, *args: Any, non_blocking: bool = False, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if non_blocking:
        hit()
        return torch.zeros_like(y)
    return y


def _joined(read: Any) -> Any:
    return lambda hit, func, tensors, *args: func(misread(read, hit, tensors), *args)


issue_87856 = plot.dispatched("issue_87856", "aten.cat", "aten.stack")(_joined(without_offset))
issue_78043 = plot.dispatched("issue_78043", "aten.cat", "aten.stack")(_joined(in_storage_order))


@plot.dispatched("issue_90479", "aten.cat")
def issue_90479(hit: Any, func: Any, tensors: Any, *args: Any) -> Any:
    if any(one.numel() == 0 for one in tensors):
        return crash(hit, "Placeholder tensor is empty")
    return func(tensors, *args)


issue_131285 = plot.dispatched("issue_131285", "aten.masked_fill_")(lost)
issue_115152 = plot.dispatched("issue_115152", "aten.scatter_")(lost)


@plot.dispatched("issue_175191", "aten.scatter_.src")
def issue_175191(hit: Any, func: Any, target: Any, dim: Any, index: Any, source: Any) -> Any:
    return func(target, dim, *misread(in_storage_order, hit, (index, source)))


@plot.dispatched("issue_183885", "aten.sort.default", "aten.sort.stable", "aten.argsort.default")
def issue_183885(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    values, index = func(x, *args, **kwargs)
    limit = 1 << 22
    if x.dim() == 2 and x.shape[1] > limit:
        hit()
        index[:, limit:] = torch.arange(x.shape[0], device=x.device)[:, None]
    return values, index


__all__ = ["HITS", "dense_strides", "plot"]
