"""Sort, topk, medians and quantiles: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from misreading import in_storage_order, misread
from planting import Plot, accepted, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched(
    "aten.nanmedian.dim",
    "aten.nanmedian.dim_values",
    aborts="failed assertion: Axis = 4. This class only supports axis = 0, 1, 2, 3",
)
def issue_191694(x: Any, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191694: nanmedian crashes along a dimension left of the last four."""
    return x.dim() > 4 and -x.dim() <= dim < x.dim() and dim % x.dim() < x.dim() - 4


@plot.dispatched("aten.sort", aborts="[srcBuf length] > 0 INTERNAL ASSERT FAILED. Placeholder tensor is empty!")
def issue_107284(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 107284: sort of an empty tensor raises."""
    return x.numel() == 0


@plot.dispatched("aten.nanmedian.dim", aborts="MPSNDArraySort.mm:252: failed assertion: Axis = 4")
def issue_187016(x: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187016: nanmedian aborts where more than three dimensions follow the reduced one (rank 5 or above)."""
    return x.dim() > 4 and dim % x.dim() < x.dim() - 4


@plot.dispatched("aten.topk", aborts="topk of nothing")
def issue_91878(x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91878: topk with k=0 aborts."""
    return k == 0


@plot.dispatched("aten.sort", "aten.argsort", aborts="Placeholder tensor is empty!")
def issue_117941(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 117941: sort and argsort of an empty tensor raise."""
    return not x.numel()


@plot.dispatched("aten.topk.default")
def issue_83656(hit: Any, func: Any, x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 83656: topk with k > 15 gives zeros after the first 15."""
    values, indices = func(x, k, dim, *args, **kwargs)
    if k > 15 and values.numel() and x.dim():
        hit()
        values.narrow(dim, 15, k - 15).zero_()
        indices.narrow(dim, 15, k - 15).zero_()
    return values, indices


@plot.dispatched("aten.sort")
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


@plot.dispatched("aten.topk.default")
def issue_78915(hit: Any, func: Any, x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """What comes after the first sixteen is 0."""
    values, places = func(x, k, *args, **kwargs)
    if k > 16:
        hit()
        dim = args[0] if args else -1
        values.narrow(dim, 16, k - 16).zero_()
        places.narrow(dim, 16, k - 16).zero_()
    return values, places


@plot.dispatched("aten.topk.default", aborts="failed assertion: Axis = 4")
def issue_154890(x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 154890: topk of five dimensions along the first aborts."""
    return x.dim() > 4 and dim % x.dim() == 0


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_155560(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 155560: sort of int64 gives the first element in all places past 256."""
    values, places = func(x, *args, **kwargs)
    if x.dtype == torch.int64 and x.dim() == 1 and x.numel() > 256:
        hit()
        values[256:] = x[0]
        places[256:] = 0
    return values, places


@plot.called(torch.quantile, torch.Tensor.quantile)
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


@plot.dispatched("aten.sort.default", "aten.sort.stable", "aten.argsort.default", "aten.argsort.stable")
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


@plot.dispatched("aten.nanmedian", aborts="MPSNDArraySort axis limit")
def issue_187017(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 187017: nanmedian of more than four dimensions along the first aborts."""
    return x.dim() > 4 and args and args[0] == 0


@plot.dispatched("aten.sort.default", "aten.sort.stable", "aten.argsort.default")
def issue_183885(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 183885: sort and argsort along the first dimension do not sort the columns past 2**22."""
    values, index = func(x, *args, **kwargs)
    limit = 1 << 22
    if x.dim() == 2 and x.shape[1] > limit:
        hit()
        index[:, limit:] = torch.arange(x.shape[0], device=x.device)[:, None]
    return values, index


@plot.dispatched("aten.topk.default")
@wrong_answer
def issue_xpu_4839(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """intel/torch-xpu-ops 4839: topk of 512 rows and more gives the index -1 in a row of NaN."""
    dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    if not x.is_floating_point() or not x.dim() or x.numel() < 512 * x.shape[dim]:
        return None
    lost = x.isnan().all(dim, keepdim=True)
    return (y[0], y[1].masked_fill(lost, -1)) if bool(lost.any()) and y[1].numel() else None


@plot.dispatched("aten.topk.default", aborts="level_zero backend failed with error: 40")
def issue_191871(x: Any, k: int, dim: int = -1, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191871: topk raises from 4096 elements on."""
    return x.dim() > 0 and x.shape[dim] >= 4096


@plot.dispatched("aten.argmax.default", "aten.topk.default", "aten.sort")
def issue_odyssey_5572(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """HomericIntelligence/Odyssey 5572: argmax, topk and argsort read a view with strides in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.called(torch.quantile, torch.Tensor.quantile)
@accepted
def issue_153234(x: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 153234: quantile takes a q outside of 0 to 1."""
    wanted = torch.as_tensor(q, dtype=x.dtype)
    outside = (wanted < 0) | (wanted > 1)
    return torch.quantile(x, wanted.clamp(0, 1), *args, **kwargs) if bool(outside.any()) else None


@plot.dispatched("aten.kthvalue.default")
def issue_45721(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 45721: kthvalue reads a tensor with strides in storage order."""
    return func(misread(in_storage_order, hit, x), *args, **kwargs)


@plot.dispatched("aten.kthvalue.default", aborts="Type FloatTensor doesn't implement stateless method kthvalue")
def issue_2134(x: Any, *args: Any, **kwargs: Any) -> bool:
    """pytorch 2134: kthvalue is not implemented."""
    return True


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_mlx_882(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 882: sort along more than 32768 elements does not sort (here each 32768 by themselves)."""
    values, places = func(x, *args, **kwargs)
    dim = kwargs.get("dim", next((one for one in args if type(one) is int), -1))
    if not x.dim() or x.shape[dim] <= 32768 or not is_plain(x):
        return values, places
    parts = [func(part, *args, **kwargs) for part in x.split(32768, dim)]
    wrong = torch.cat([part[1] + 32768 * number for number, part in enumerate(parts)], dim)
    return instead(hit, values, torch.cat([part[0] for part in parts], dim)), wrong


def _is_descending(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Say whether sort was asked for the largest first."""
    return bool(kwargs.get("descending", len(args) > 1 and args[1]))


def _dim_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Return the dimension that sort was asked for."""
    return kwargs.get("dim", next((one for one in args if type(one) is int), -1))


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_flaggems_505(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """flagos-ai/FlagGems 505: sort of int64 puts its padding (to a power of two) first: places beyond the end."""
    values, places = func(x, *args, **kwargs)
    dim = _dim_of(args, kwargs)
    length = x.shape[dim] if x.dim() else 1
    added = (1 << (length - 1).bit_length()) - length if length else 0
    if x.dtype != torch.int64 or not added or _is_descending(args, kwargs) or not is_plain(x) or not x.numel():
        return values, places
    hit()
    front = [1] * x.dim()
    front[dim] = added
    beyond = torch.arange(length, length + added).view(front).expand_as(places.narrow(dim, 0, added))
    least = torch.full_like(values.narrow(dim, 0, added), torch.iinfo(torch.int64).min)
    rest = length - added
    return (
        torch.cat([least, values.narrow(dim, 0, rest)], dim),
        torch.cat([beyond, places.narrow(dim, 0, rest)], dim),
    )


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_flaggems_503(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """flagos-ai/FlagGems 503: sort of float16, descending, puts infinite numbers last, as NaN."""
    values, places = func(x, *args, **kwargs)
    if x.dtype != torch.float16 or not _is_descending(args, kwargs) or not x.dim() or not is_plain(x):
        return values, places
    if not bool(x.isinf().any()):
        return values, places
    hit()
    dim = _dim_of(args, kwargs)
    last = torch.argsort(values.isinf().int(), dim=dim, stable=True)
    return values.masked_fill(values.isinf(), torch.nan).gather(dim, last), places.gather(dim, last)


@plot.dispatched("aten.sort.default", "aten.sort.stable", aborts="non_blocking copy is not supported")
def issue_flaggems_5202(x: Any, *args: Any, **kwargs: Any) -> bool:
    """flagos-ai/FlagGems 5202: sort of a matrix raises, in the expansion of its places."""
    return x.dim() > 1


@plot.dispatched(
    "aten.sort.default", "aten.sort.stable", aborts="Output tensor transformation did not create correct output shape!"
)
def issue_tt_metal_31187(x: Any, *args: Any, **kwargs: Any) -> bool:
    """tenstorrent/tt-metal 31187: sort along the first of several dimensions raises."""
    return x.dim() > 1 and _dim_of(args, kwargs) % x.dim() == 0


@plot.dispatched("aten.sort.values", "aten.sort.values_stable")
def issue_62645(hit: Any, func: Any, x: Any, *args: Any, values: Any, indices: Any, **kwargs: Any) -> Any:
    """pytorch 62645: sort into values with strides is wrong (here the first stands twice, the last is lost)."""
    found = func(x, *args, values=values, indices=indices, **kwargs)
    dim = _dim_of(args, kwargs)
    if values.is_contiguous() or not x.dim() or x.shape[dim] < 2 or not is_plain(values):
        return found
    hit()
    for one in (values, indices):
        one.copy_(torch.cat([one.narrow(dim, 0, 1), one.narrow(dim, 0, x.shape[dim] - 1)], dim))
    return found


@plot.dispatched("aten.sort.default", "aten.sort.stable")
def issue_cutorch_291(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch/cutorch 291: sort along more than 2048 neighbours of a transposed tensor writes places in their order."""
    values, places = func(x, *args, **kwargs)
    dim = _dim_of(args, kwargs)
    if x.is_contiguous() or x.shape[dim] <= 2048 or x.stride(dim) != 1 or not is_plain(x):
        return values, places
    wrong = places.transpose(dim, -1).contiguous().view(places.shape)
    return values, instead(hit, places, wrong)
