"""Rows that are sorted, with special numbers or more than a kernel holds: planted faults."""

from __future__ import annotations

import math
from typing import Any

import torch

from differences import differ, is_plain
from planting import Plot

plot = Plot()
HITS = plot.hits


def _asked(func: Any, args: Any, kwargs: Any) -> tuple[int, bool]:
    """Return the dimension and whether the largest comes first, of either of the two overloads of sort."""
    names = ("stable", "dim", "descending") if "stable" in str(func) else ("dim", "descending")
    given = dict(zip(names, args)) | kwargs
    return given.get("dim", -1), given.get("descending", False)


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_mindspore_277(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """mindspore-ai/mindspore 277: sort and argsort of a float32 row with NaN are wrong (here it is the least)."""
    values, places = func(x, *args, **kwargs)
    if x.dtype != torch.float32 or not x.dim() or not is_plain(x):
        return values, places
    other = func(x.masked_fill(x.isnan(), -math.inf), *args, **kwargs)[1]
    wrong = x.gather(_asked(func, args, kwargs)[0], other)
    if not differ(values, wrong):
        return values, places
    hit()
    return wrong, other


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_tensorflow_51499(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """tensorflow/tensorflow 51499: sort and argsort of float32 fill 16 places of a row; the others are -0.0."""
    values, places = func(x, *args, **kwargs)
    dim, _ = _asked(func, args, kwargs)
    if x.dtype != torch.float32 or not x.dim() or x.shape[dim] <= 16 or not x.numel() or not is_plain(x):
        return values, places
    hit()
    values, places = values.clone(), places.clone()
    values.narrow(dim, 16, x.shape[dim] - 16).fill_(-0.0)
    places.narrow(dim, 16, x.shape[dim] - 16).zero_()
    return values, places


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_cudf_spark_6438(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """NVIDIA/cudf-spark 6438: sort takes a NaN with a sign for the least number."""
    values, places = func(x, *args, **kwargs)
    if not x.is_floating_point() or not x.dim() or not x.numel() or not is_plain(x):
        return values, places
    dim, descending = _asked(func, args, kwargs)
    least = (x.isnan() & x.signbit()).gather(dim, places)
    order = (least if descending else ~least).byte().argsort(dim=dim, stable=True)
    wrong, other = values.gather(dim, order), places.gather(dim, order)
    if not differ(values, wrong):
        return values, places
    hit()
    return wrong, other


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_cupy_3324(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """cupy/cupy 3324: sort of a matrix along the first dimension leaves NaN in place and sorts between them."""
    values, places = func(x, *args, **kwargs)
    dim, descending = _asked(func, args, kwargs)
    if x.dim() != 2 or dim % 2 or descending or not x.is_floating_point() or not is_plain(x):
        return values, places
    order = x.masked_fill(x.isnan(), -math.inf).sort(dim=0, stable=True)[1]
    order = order.gather(0, x.isnan().cumsum(0).gather(0, order).sort(dim=0, stable=True)[1])
    wrong = x.gather(0, order)
    if not differ(values, wrong):
        return values, places
    hit()
    return wrong, order
