"""Sort, topk and searches: injected faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from injecting import Faults, wrong_answer
from misreading import in_storage_order, misread

faults = Faults()
HITS = faults.hits


@faults.dispatched("aten.sort", aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
def issue_107284(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 107284: sort of an empty tensor raises."""
    return x.numel() == 0


@faults.dispatched("aten.topk", aborts="topk of nothing")
def issue_91878(x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91878: topk with k=0 aborts."""
    return k == 0


@faults.dispatched("aten.sort")
def issue_116567(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 116567: sort takes NaN with the sign bit for the least value."""
    found = func(x, *args, **kwargs)
    if not x.is_floating_point() or x.dim() == 0:
        return found
    negative = x.isnan() & x.signbit()
    if not negative.any():
        return found
    values, indices = func(torch.where(negative, torch.full_like(x, -torch.inf), x), *args, **kwargs)
    names = [a.name for a in func._schema.arguments]
    given = dict(zip(names, (x, *args))) | kwargs
    dim = given.get("dim", -1)
    values = x.gather(dim, indices)
    if torch.equal(indices, found[1]):
        return found
    hit()
    found[0].copy_(values)
    found[1].copy_(indices)
    return found


@faults.dispatched("aten.topk.default", aborts="failed assertion: Axis = 4")
def issue_154890(x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154890: topk of five dimensions along the first aborts."""
    return x.dim() > 4 and dim % x.dim() == 0


@faults.dispatched("aten.sort.default", "aten.sort.stable")
def issue_155560(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 155560: sort of int64 gives the first element in all places past 256."""
    values, places = func(x, *args, **kwargs)
    if x.dtype == torch.int64 and x.dim() == 1 and x.numel() > 256:
        hit()
        values[256:] = x[0]
        places[256:] = 0
    return values, places


@faults.called(torch.quantile, torch.Tensor.quantile)
def issue_101878(hit: Any, func: Any, x: Any, q: Any, dim: Any = None, *args: Any, **kwargs: Any) -> Any:
    """pytorch 101878: quantile along a dimension does not sort."""
    if dim is None:
        return func(x, q, *args, **kwargs)
    hit()
    share = float(q if not isinstance(q, torch.Tensor) else q.reshape(-1)[0])
    place = int(share * (x.shape[dim] - 1))
    keep = kwargs.get("keepdim", bool(args and args[0]))
    found = x.narrow(dim, place, 1) if keep else x.select(dim, place)
    many = isinstance(q, torch.Tensor) and q.dim() > 0
    return found.expand(len(q), *found.shape) if many else found


@faults.dispatched("aten.sort.default", "aten.sort.stable", "aten.argsort.default", "aten.argsort.stable")
def issue_made_argsort_wide(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Sort along the first dimension orders the columns past 2**10 as column 0."""
    answer = func(x, *args, **kwargs)
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    if x.dim() == 2 and dim in (0, -2) and x.shape[1] > 1024 and isinstance(answer, tuple):
        hit()
        places = answer[1].clone()
        places[:, 1024:] = places[:, :1]
        return answer[0], places
    return answer


@faults.dispatched("aten.kthvalue.default")
def issue_45721(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 45721: kthvalue reads a tensor with strides in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


def _requested(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, bool, bool]:
    """Return along which dimension sort was requested, whether the largest comes first, and whether it is stable."""
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    largest = kwargs.get("descending", len(args) > 1 and args[1])
    return dim, bool(largest), bool(kwargs.get("stable"))


@faults.dispatched("aten.sort.default", "aten.sort.stable")
def issue_139972(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 139972: sort of bools that are stored as other numbers than 1 goes by the last bit of each."""
    y, places = func(x, *args, **kwargs)
    if x.dtype != torch.bool or not x.dim() or not is_plain(x):
        return y, places
    stored = x.view(torch.uint8)
    if bool((stored <= 1).all()):
        return y, places
    wrong = func((stored & 1).bool(), *args, **kwargs)[1]
    if not differ(places, wrong):
        return y, places
    hit()
    return (stored != 0).gather(_requested(args, kwargs)[0], wrong), wrong


@faults.dispatched(
    "aten.isin.Tensor_Tensor", aborts="Expected elements.dtype() == test_elements.dtype() to be true, but got false."
)
def issue_151443(x: Any, among: Any, **kwargs: Any) -> Any:
    """pytorch 151443: isin of two tensors with unlike dtypes raises."""
    return x.dtype != among.dtype


@faults.dispatched("aten.searchsorted", "aten.bucketize")
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


@faults.dispatched("aten._unique2.default")
def issue_104879(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 104879: unique of more than one dimension looks at the first element only."""
    if x.dim() > 2:
        hit()
        return func(x.reshape(-1)[:1], *args, **kwargs)
    return func(x, *args, **kwargs)


@faults.called(torch.histogram)
def issue_195076(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 195076: histogram counts what lies just outside of the range."""
    if "range" in kwargs and isinstance(x, torch.Tensor):
        low, high = kwargs["range"]
        near = x.clamp(low, high)
        if bool(((x - near).abs() < 4e-6).logical_and(x != near).any()):
            hit()
            x = torch.where((x - near).abs() < 4e-6, near, x)
    return func(x, *args, **kwargs)


@faults.dispatched("aten.unique_dim.default")
def issue_64593(hit: Any, func: Any, x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 64593: unique(dim=0, return_inverse=True) gives the places of the sorted rows, not of the rows."""
    values, places, counts = func(x, dim, *args, **kwargs)
    if dim != 0 or not places.numel() or not is_plain(x):
        return values, places, counts
    return values, instead(hit, places, places.sort().values), counts


@faults.dispatched("aten.histc.default")
@wrong_answer
def issue_20208(y: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 20208: histc of float32 returns int64."""
    return y.long() if y.dtype == torch.float32 else None


@faults.dispatched("aten.topk.values")
def issue_62940(hit: Any, func: Any, x: Any, *args: Any, values: Any, indices: Any) -> Any:
    """pytorch 62940: topk of a vector into outputs with strides writes them as if they were contiguous."""
    before = values.clone(), indices.clone()
    found = func(x, *args, values=values, indices=indices)
    for one, old in zip((values, indices), before):
        if x.dim() == 1 and not one.is_contiguous() and one.shape == old.shape and is_plain(one):
            right = one.clone()
            one.copy_(old)
            one.as_strided(one.shape, (1,), one.storage_offset()).copy_(right)
            if differ(one, right):
                hit()
    return found
