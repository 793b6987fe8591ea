"""Rule 2: lines of NaN alone, with NaN first, last and nearly everywhere, in what orders, chooses, scans and reduces.

Many lines, long lines, and both: blocks of threads and blocks of a line end at 512 and 1,024. An index of -1 for a line
of NaN: https://github.com/intel/torch-xpu-ops/issues/4839
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch

from device_suite import Cases
from device_suite.answers import attempt
from device_suite.limits import ONCE
from device_suite.ops import FLOATS

cases = Cases("conditions")


def _chosen(form: Callable[..., Any], *, order: bool = False) -> Callable[..., Any]:
    """Return a form that answers the values, what lies at the places that are named, and whether they are places.

    Which of several NaN is named is a back end's choice. `order`: each place is named once.
    """

    def act(x: torch.Tensor, dim: int) -> Any:
        values, places = form(x, dim)
        where = places if places.dim() == x.dim() else places.unsqueeze(dim)
        inside = (where >= 0) & (where < x.shape[dim])
        found = x.gather(dim, where.clamp(0, x.shape[dim] - 1))
        once = (where.sort(dim)[0] - _counted(x, dim)).abs().sum() if order else 0
        return [values, found.view_as(values), inside.all(), once]

    return act


def _counted(x: torch.Tensor, dim: int) -> torch.Tensor:
    places = torch.arange(x.shape[dim], device=x.device)
    return places[:, None] if dim == 0 else places


def _place_alone(name: str) -> Callable[..., Any]:
    def form(x: torch.Tensor, dim: int) -> Any:
        places = getattr(x, name)(dim, keepdim=True)
        return x.gather(dim, places.clamp(0, x.shape[dim] - 1)), places

    return form


_FORMS: dict[str, Callable[..., Any]] = {
    "sort": _chosen(lambda x, dim: x.sort(dim), order=True),
    "sort-descending": _chosen(lambda x, dim: x.sort(dim, descending=True), order=True),
    "sort-stable": lambda x, dim: [*x.sort(dim=dim, stable=True), *x.sort(dim=dim, stable=True, descending=True)],
    "topk": _chosen(lambda x, dim: x.topk(3, dim)),
    "topk-one": _chosen(lambda x, dim: x.topk(1, dim)),
    "topk-smallest": _chosen(lambda x, dim: x.topk(3, dim, largest=False)),
    "topk-all": _chosen(lambda x, dim: x.topk(x.shape[dim], dim), order=True),
    "kthvalue": _chosen(lambda x, dim: x.kthvalue(2, dim)),
    "kthvalue-last": _chosen(lambda x, dim: x.kthvalue(x.shape[dim], dim)),
    "median": _chosen(lambda x, dim: x.median(dim)),
    "nanmedian": _chosen(lambda x, dim: x.nanmedian(dim)),
    "max": _chosen(lambda x, dim: x.max(dim)),
    "min": _chosen(lambda x, dim: x.min(dim, keepdim=True)),
    "argmax": _chosen(_place_alone("argmax")),
    "argmin": _chosen(_place_alone("argmin")),
    "cummax": _chosen(lambda x, dim: x.cummax(dim)),
    "cummin": _chosen(lambda x, dim: x.cummin(dim)),
    "ends": lambda x, dim: [x.amax(dim), x.amin(dim), *x.aminmax(dim=dim), x.max(), x.min(), x.median(), x.nanmedian()],
    "summed": lambda x, dim: [x.sum(dim), x.mean(dim), x.nansum(dim), x.nanmean(dim), x.std(dim)],
    "normed": lambda x, dim: [torch.linalg.vector_norm(x, p, dim) for p in (0, 1, 2, math.inf, -math.inf)],
    "weighed": lambda x, dim: [x.softmax(dim), x.log_softmax(dim), x.logsumexp(dim)],
    "scanned": lambda x, dim: [x.cumsum(dim), x.logcumsumexp(dim)],
    "tested": lambda x, dim: [x.any(dim), x.all(dim), x.count_nonzero(dim), x.isnan().all(dim), (x == x).any(dim)],
    "compared": lambda x, dim: [torch.maximum(x, x.flip(0)), torch.fmin(x, x.flip(1)), x.clamp(-1, 1), x.nan_to_num()],
}
# What adds up as it goes is asked in float32: a back end may add in half precision.
_WIDE = ("scanned",)
# (lines, elements): many short ones, few long ones, past a block of each.
_SIZES = ((515, 7), (10, 513), (11, 1030))


def _lines(d: Any, lines: int, length: int, dtype: torch.dtype) -> torch.Tensor:
    """Return lines of which the first and the last five have NaN: everywhere, first, last, nearly everywhere."""
    x = d.integers(-250, 250, lines, length) / 8
    every = torch.arange(length)
    for first in (0, lines - 5):
        x[first] = math.nan
        x[first + 1, 0] = math.nan
        x[first + 2, -1] = math.nan
        x[first + 3, every != length // 2] = math.nan
        x[first + 4, 1:3] = math.nan
    return x.to(dtype)


for _dtype in FLOATS:
    for _name, _form in _FORMS.items():
        if _name in _WIDE and _dtype != torch.float32:
            continue
        cases.add(
            f"special-lines-{_name}-{str(_dtype)[6:]}",
            lambda *bases, form=_form: [
                [attempt(lambda x=x: form(x, 1)), attempt(lambda x=x: form(x.t().contiguous(), 0))] for x in bases
            ],
            make=lambda d, dtype=_dtype: tuple(
                _lines(d, *size, dtype) for size in (_SIZES if dtype == torch.float32 else _SIZES[:2])
            ),
            terms=1024 if _dtype == torch.float32 else 16,
            floor=1.0,
            states=ONCE,
            may_be_missing=True,
        )
