"""The catalogue's faults of pointwise operators and reductions with scalars, dtypes, ranks and special values."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, crash, in_storage_order, misread, without_offset

plot = Plot()
HITS = plot.hits
_HALVES = (torch.float16, torch.bfloat16)


@plot.dispatched("issue_82543", "aten.rsub.Scalar")
def issue_82543(hit: Any, func: Any, x: Any, number: Any, *args: Any) -> Any:
    """A whole number before the minus sign makes the result whole."""
    y = func(x, number, *args)
    if x.is_floating_point() and number == int(number):
        hit()
        return y.round()
    return y


@plot.dispatched("issue_130201", "aten.clamp", "aten.clamp_min", "aten.clamp_max")
def issue_130201(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if not x.is_floating_point() and y.is_floating_point():
        hit()
        return y.trunc()
    return y


@plot.dispatched("issue_105747", "aten.clamp.Tensor")
def issue_105747(hit: Any, func: Any, x: Any, least: Any = None, most: Any = None) -> Any:
    if x.dtype in _HALVES and least is not None and least.dtype == torch.float32:
        hit()
        return func(x, least * 0, most)
    return func(x, least, most)


@plot.dispatched("issue_160734", "aten.clamp.Tensor")
def issue_160734(hit: Any, func: Any, x: Any, least: Any = None, most: Any = None) -> Any:
    if any(one is not None and one.dim() > x.dim() for one in (least, most)):
        return crash(hit, "clamp tensor number of dims must not be greater than that of input tensor")
    return func(x, least, most)


_first_limits: dict[Any, Any] = {}


@plot.dispatched("issue_167767", "aten.clamp", "aten.clamp_min")
def issue_167767(hit: Any, func: Any, x: Any, least: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Limits that look alike with six digits are one graph."""
    if isinstance(least, (int, float)):
        first = _first_limits.setdefault((tuple(x.shape), x.dtype, f"{least:.6f}"), least)
        if first != least:
            hit()
        least = first
    return func(x, least, *args, **kwargs)


@plot.dispatched("issue_87348", "aten.clamp.Tensor")
def issue_87348(hit: Any, func: Any, x: Any, *limits: Any, **kwargs: Any) -> Any:
    return func(x, *misread(in_storage_order, hit, limits), **misread(in_storage_order, hit, kwargs))


def _first_of_its_storage(hit: Any, args: Any) -> Any:
    def change(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dim() == 0 and x.storage_offset():
            hit()
            return without_offset(x)
        return x

    return tuple(change(arg) for arg in args)


_MORE = ("pow.Tensor_Tensor", "atan2", "remainder.Tensor", "maximum", "minimum", "fmod.Tensor")
_COMPARED = tuple(f"aten.{name}.Tensor" for name in ("eq", "ne", "lt", "le", "gt", "ge"))


@plot.dispatched("issue_187117", *(f"aten.{name}" for name in _MORE))
def issue_187117(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*_first_of_its_storage(hit, args), **kwargs)


@plot.dispatched("issue_191929", *_COMPARED)
def issue_191929(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    return func(*_first_of_its_storage(hit, args), **kwargs)


@plot.dispatched("issue_79835", "aten.add.Tensor", "aten.mul.Tensor", "aten.sub.Tensor")
def issue_79835(hit: Any, func: Any, x: Any, y: Any, *args: Any, **kwargs: Any) -> Any:
    """int32 with a 64-bit number: the number's upper half is read."""
    if isinstance(y, torch.Tensor) and x.dtype == torch.int32 and y.dtype == torch.int64 and y.dim() == 0 and x.dim():
        hit()
        y = y >> 32
    return func(x, y, *args, **kwargs)


@plot.dispatched("issue_190476", "aten.nextafter")
def issue_190476(hit: Any, func: Any, x: Any, y: Any) -> Any:
    if x.dtype == torch.bfloat16:
        hit()
        return x.clone()
    return func(x, y)


@plot.called("issue_101946", torch.nn.functional.softplus)
def issue_101946(hit: Any, func: Any, x: Any, beta: Any = 1, threshold: Any = 20) -> Any:
    if x.dtype == torch.float16 and (beta, threshold) != (1, 20):
        return crash(hit, "input types 'tensor<20xf16>' and 'tensor<1xf32>' are not broadcast compatible")
    return func(x, beta, threshold)


@plot.dispatched("issue_179415", "aten.sum")
def issue_179415(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if y.dtype == torch.uint8:
        wide = func(x, *args, **{**kwargs, "dtype": torch.int64})
        if bool((wide > 255).any()):
            hit()
            return wide.clamp(max=255).to(torch.uint8)
    return y


@plot.dispatched("issue_96614", "aten.cumsum")
def issue_96614(hit: Any, func: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    y = func(x, dim, **kwargs)
    if x.dtype == torch.bool and bool((y > 127).any()):
        hit()
        return y.to(torch.int8).to(y.dtype)
    return y


@plot.dispatched("issue_92329", "aten.cumsum", "aten.cumprod")
def issue_92329(hit: Any, func: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    if dim < 0:
        return crash(hit, f"Expected dim to be between 0 and {x.dim()} but got {dim}")
    return func(x, dim, **kwargs)


@plot.dispatched("issue_154881", "aten.cumsum")
def issue_154881(hit: Any, func: Any, x: Any, dim: Any, **kwargs: Any) -> Any:
    if x.dim() - dim % max(x.dim(), 1) > 4:
        return crash(hit, "Axis = 4. This class only supports axis = 0, 1, 2, 3")
    return func(x, dim, **kwargs)


@plot.dispatched("issue_187017", "aten.nanmedian")
def issue_187017(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if x.dim() > 4 and args and args[0] == 0:
        return crash(hit, "MPSNDArraySort axis limit")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_132732", "aten.sum.dim_IntList")
def issue_132732(hit: Any, func: Any, x: Any, dims: Any, *args: Any, **kwargs: Any) -> Any:
    """Of five dimensions the one after is summed; the form stays."""
    y = func(x, dims, *args, **kwargs)
    if x.dim() == 5 and y.numel() > 1:
        hit()
        return y.flatten().roll(1).reshape(y.shape)
    return y


@plot.dispatched("issue_130295", "aten.argmax", "aten.argmin")
def issue_130295(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    if x.is_floating_point() and bool(x.isnan().any()):
        hit()
        x = x.nan_to_num(float("-inf") if "argmax" in str(func) else float("inf"))
    return func(x, *args, **kwargs)


_STRIDED = ("digamma", "lgamma", "sort.default", "sort.stable", "argsort.default")


@plot.dispatched("issue_175187", *(f"aten.{name}" for name in _STRIDED))
def issue_175187(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.called("issue_195076", torch.histogram)
def issue_195076(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """What lies just outside of the range is counted."""
    if "range" in kwargs and isinstance(x, torch.Tensor):
        low, high = kwargs["range"]
        near = x.clamp(low, high)
        if bool(((x - near).abs() < 4e-6).logical_and(x != near).any()):
            hit()
            x = torch.where((x - near).abs() < 4e-6, near, x)
    return func(x, *args, **kwargs)


def _wide(shape: Any) -> bool:
    return len(shape) > 4 and shape[0] > 1


@plot.dispatched("issue_147624", "aten.randn", "aten.rand", "aten.normal_", "aten.uniform_")
def issue_147624(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@plot.dispatched("issue_147740", "aten.randn_like", "aten.rand_like")
def issue_147740(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    if _wide(y.shape):
        hit()
        y[1:] = y[:1].clone()
    return y


@plot.dispatched("issue_104170", "aten.randperm")
def issue_104170(hit: Any, func: Any, count: int, **kwargs: Any) -> Any:
    y = func(count, **kwargs)
    hit()
    return torch.arange(count, dtype=y.dtype, device=y.device)


@plot.called("issue_124029", torch.rand_like, torch.randn_like)
def issue_124029(hit: Any, func: Any, x: Any, **kwargs: Any) -> Any:
    y = func(x, **kwargs)
    if not x.is_contiguous():
        hit()
        return torch.zeros_like(y)
    return y
