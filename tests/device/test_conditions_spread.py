"""Rules 1 and 3: variances of what lies far from zero or far apart, of complex numbers, of too few; order with NaN.

var said 0 of two numbers near 2281, https://github.com/pytorch/pytorch/issues/2470; of complex numbers it was
complex, https://github.com/pytorch/pytorch/issues/56627; a quantile beside infinity,
https://github.com/pytorch/pytorch/issues/133998
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table
from device_suite.near import add_beside

cases = Cases("conditions")
Form = Callable[..., Any]
_INF, _NAN = float("inf"), float("nan")

# x: (4, 6), each row for itself.
_ROWS: dict[str, Form] = {
    "var": lambda x: [x.var(1), torch.var(x, -1), x.var(1, correction=0), x.var(1, unbiased=False), x.var([1], True)],
    "std": lambda x: [x.std(1), torch.std(x, -1), x.std(1, correction=0), x.std(1, unbiased=False), x.std((1,))],
    "means": lambda x: [torch.var_mean(x, 1)[0], torch.std_mean(x, 1)[0], torch.var_mean(x, 1, correction=2)[0]],
    "columns": lambda x: [x.mT.var(0), x.mT.contiguous().std(0), x.mT.contiguous().var(0, correction=0)],
    "whole": lambda x: [torch.stack([row.var() for row in x]), torch.stack([row.std() for row in x])],
    "whole-means": lambda x: [
        torch.stack([torch.var_mean(row)[0] for row in x]),
        torch.stack([torch.std_mean(r)[0] for r in x]),
    ],
    "stepped": lambda x: [torch.stack([x, -x], -1)[..., 0].var(1), x.flip(1).std(1), x[:, ::2].var(1)],
    "cov": lambda x: torch.stack([torch.cov(row) for row in x]),
    "both": lambda x: x.view(4, 2, 3).var((1, 2)),
    "centred": lambda x: x - x.mean(1, keepdim=True),
    "normed": lambda x: [F.layer_norm(x, (6,)), F.instance_norm(x[None]), F.group_norm(x[None], 4)],
    "batch-normed": lambda x: F.batch_norm(x.mT.contiguous(), None, None, training=True),
    "ranges": lambda x: [x.amax(1) - x.amin(1), x.diff(dim=1), x.median(1)[0], x.sort(1)[0] - x[:, :1]],
    "scaled": lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True),
}


def _apart(form: Form, x: torch.Tensor) -> Any:
    found = form(x)
    return [list(one.unbind(-1 if one.dim() > 2 else 0)) for one in (found if isinstance(found, list) else [found])]


add_beside(
    cases,
    "spread-offset",
    {
        f"{name}-{offset}": lambda x, form=form, offset=offset: _apart(form, x + offset)
        for name, form in _ROWS.items()
        for offset in (0.0, 2281.0, -4096.0)
        if not (offset and name in ("normed", "batch-normed", "scaled", "cov"))
    },
    # Quarters: each sum and each deviation is exact.
    lambda d: ((d.permutation(24).view(4, 6).argsort(1) - 2).float() / 4,),
    share=2.0**-7,
    since="2.0",
)
# What is asked for is in range. Of the second table the sum of the squares is not: who adds up squares has none.
_SIGNS = lambda d: ((1 - 2 * (torch.arange(512) % 2)).float() * (1 + torch.arange(512) % 3 / 4),)  # noqa: E731
_VAST: dict[str, Form] = {
    "var": lambda x: [x.var(), x.var(0), x.var(correction=0), torch.var_mean(x)[0]],
    "std": lambda x: [x.std(), x.std(0), x.std(correction=0), torch.std_mean(x)[0], x.view(2, 256).std(1)],
    "mean": lambda x: [x.mean(), x.mean(0), torch.std_mean(x)[1]],
    "abs": lambda x: [x.abs().mean(), torch.linalg.vector_norm(x, 1) / x.numel(), x.amax() - x.amin()],
}
for _kind, _scales in (("vast", (2.0**50, 2.0**-50)), ("overflow", (2.0**60, 2.0**62))):
    add_beside(
        cases,
        f"spread-{_kind}",
        {
            f"{name}-{scale:.0e}": lambda x, form=form, scale=scale: form(x * scale)
            for name, form in _VAST.items()
            for scale in _scales
        },
        _SIGNS,
        share=2.0**-12,
        since="2.0",
    )

# Every way to ask for a variance, of real and of complex numbers: which sides, what is kept, what is taken off.
_SIDES = (None, 0, 1, -1, (0, 1), (1, 2), (0, 2), (0, 1, 2), ())
_TABLE: dict[str, Form] = {}
for _name, _dim, _keep, _less in itertools.product(
    ("var", "std", "var_mean", "std_mean"), _SIDES, (False, True), (0, 1, 2, 0.5, 30, None)
):
    _options = {"keepdim": _keep} | ({} if _less is None else {"correction": _less})
    _TABLE[f"{_name}-{_dim}-{_keep}-{_less}"] = lambda x, name=_name, dim=_dim, options=_options: getattr(torch, name)(
        x, dim=dim, **options
    )
_TABLE |= {
    f"{name}-{unbiased}": lambda x, name=name, unbiased=unbiased: [
        getattr(torch, name)(x, unbiased),
        getattr(torch, name)(x, 1, unbiased),
        getattr(torch, name)(x, (0, 2), unbiased, True),
    ]
    for name in ("var", "std", "var_mean", "std_mean")
    for unbiased in (False, True)
}
_TABLE |= {
    "out": lambda x: [torch.var(x, 1, out=x.real.new_empty(0)), torch.std(x, (0, 2), out=x.real.new_empty(0))],
    "method": lambda x: [x.var(1), x.std(), x.mT.var(-1), x[:, ::2].std(1), x.flip(0).var()],
    "derived": lambda x: [derived(lambda y: y.var(1), x), derived(lambda y: y.std(), x), derived(lambda y: y.var(), x)],
    "derived-less": lambda x: derived(lambda y: y.std((0, 2), correction=0, keepdim=True), x),
    "one": lambda x: [x[:1].var(0), x[:1, :1, :1].std(), x[:1].var(0, correction=0), x[:0].var(), x[:0].std(0)],
}
for _dtype in (torch.float32, *HALVES, torch.complex64):
    _step = 1 if _dtype in (torch.float32, torch.complex64) else 5
    add_table(
        cases,
        f"spread-{str(_dtype)[6:]}",
        dict(list(_TABLE.items())[::_step]),
        lambda d, dtype=_dtype: (
            torch.complex(d.normal(2, 3, 4), d.normal(2, 3, 4)) if dtype.is_complex else d.normal(2, 3, 4).to(dtype),
        ),
        terms=64,
        factor=16.0,
        since="2.1",
    )

# Order statistics beside NaN and infinity: which number stands where is certain.
_ORDERS: dict[str, Form] = {
    **{
        f"{name}-{how}-{dim}-{keep}": lambda x, q, name=name, how=how, dim=dim, keep=keep: [
            getattr(torch, name)(x, q, dim=dim, keepdim=keep, interpolation=how),
            getattr(x, name)(0.5, dim=dim, keepdim=keep, interpolation=how),
            getattr(torch, name)(x, q[:1], dim, keep, interpolation=how),
        ]
        for name in ("quantile", "nanquantile")
        for how in ("lower", "higher", "nearest", "midpoint", "linear")
        for dim in (None, 0, -1)
        for keep in (False, True)
    },
    **{
        f"{name}-{dim}": lambda x, q, name=name, dim=dim: [
            getattr(torch, name)(x, dim)[0],
            getattr(torch, name)(x, dim, True)[0],
            getattr(x, name)(dim).values,
        ]
        for name in ("median", "nanmedian")
        for dim in (0, 1, -1)
    },
    "medians": lambda x, q: [x.median(), x.nanmedian(), torch.median(x[:, 1]), x[0].nanmedian()],
    "extremes": lambda x, q: [x.amax(1), x.amin(0), x.max(1)[0], x.min(), torch.aminmax(x, dim=1)[1], x.max()],
    "ignoring": lambda x, q: [x.nansum(1), x.nansum(), torch.nan_to_num(x)],
    "ignoring-means": lambda x, q: [x.nanmean(1), x.nanmean((0, 1))],
    "fmax": lambda x, q: [torch.fmax(x, x.flip(0)), torch.fmin(x, x.flip(1)), torch.maximum(x, x.flip(0))],
    "sorted": lambda x, q: [x.sort(1)[0], x.sort(0, descending=True)[0], x.msort(), x.topk(2, 1)[0]],
    "kth": lambda x, q: [x.kthvalue(k, 1)[0] for k in (1, 2, 5)],
    "running": lambda x, q: [x.cummax(1)[0], x.cummin(0)[0], x.logcumsumexp(1), x.logsumexp(1)],
    "tests": lambda x, q: [x.isnan().sum(1), x.isinf().any(0), x.isfinite().all(1), (x == x).sum(), x.isposinf()],
    "means": lambda x, q: [x.mean(1), x.sum(0), x.var(1), x.prod(1), x.norm(dim=1), x.std(0)],
    "spread": lambda x, q: [x.softmax(1), x.log_softmax(1), x.amax(1) - x.amin(1)],
}


def _of_kind(form: Form, kind: str, x: torch.Tensor, q: torch.Tensor) -> Any:
    x = x.clone()
    if kind in ("nan", "both"):
        x[0, 1] = x[2, 4] = _NAN
    if kind in ("infinite", "both"):
        x[1, 2], x[3, 0] = _INF, -_INF
    if kind == "row":
        x[2] = _NAN
    return form(x, q)


for _dtype in (torch.float32, *HALVES):
    add_beside(
        cases,
        f"spread-orders-{str(_dtype)[6:]}",
        {
            f"{name}-{kind}": lambda x, q, form=form, kind=kind: _of_kind(form, kind, x, q)
            for name, form in _ORDERS.items()
            for kind in ("plain", "nan", "infinite", "both", "row")
            if not (kind in ("infinite", "both") and ("linear" in name or "midpoint" in name))
            and not (kind != "plain" and "-True" in name)
            and not (kind == "both" and "quantile" in name)
            and not (_dtype != torch.float32 and ("quantile" in name or kind in ("infinite", "row")))
            and not (_dtype == torch.bfloat16 and name == "ignoring-means")  # a sum and a quotient: rounded twice
        },
        lambda d, dtype=_dtype: (d.distinct(5, 6).to(dtype) / 8, torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]).to(dtype)),
        share=2.0**-6 if _dtype != torch.float32 else 2.0**-14,
        since="2.1",
    )

# Numbers at the edges of bins: on them, one step inside, one step outside; ranges and edges of every form.
_BINS: dict[str, Form] = {
    **{
        f"histc-{bins}-{low}-{high}": lambda x, w, row=(bins, low, high): torch.histc(x, *row)
        for bins in (1, 2, 4)
        for low, high in ((0, 2), (-2, 2), (1, 3), (0.5, 1.5))
    },
    **{
        f"histogram-{bins}-{low}-{high}-{dense}": lambda x, w, bins=bins, ends=(low, high), dense=dense: [
            *torch.histogram(x, bins, range=ends, density=dense),
            *torch.histogram(x, bins, range=ends, weight=w, density=dense),
        ]
        for bins in (1, 2, 4)
        for low, high in ((0.0, 2.0), (-2.0, 2.0), (1.0, 3.0))
        for dense in (False, True)
    },
    **{
        f"edges-{edges}-{dense}": lambda x, w, edges=edges, dense=dense: [
            *torch.histogram(x, x.new_tensor(edges), density=dense),
            *torch.histogram(x, x.new_tensor(edges), weight=w),
        ]
        for edges in ((0.0, 1.0, 2.0), (-4.0, -0.5, 0.0, 2.0, 3.0), (1.0, 3.0), (0.0, 0.5, 0.75, 1.0))
        for dense in (False, True)
    },
    "deep": lambda x, w: [
        torch.histogramdd(torch.stack([x, x.flip(0)], 1), [2, 4], range=[0.0, 2.0, -2.0, 2.0])[0],
        torch.histogramdd(torch.stack([x, x.flip(0)], 1), [x.new_tensor([0.0, 1, 2]), x.new_tensor([-1.0, 0, 3])])[0],
        torch.histogramdd(x[:, None], [4], range=[-2.0, 2.0], weight=w)[0],
    ],
    "bucketize": lambda x, w: [
        torch.bucketize(x, x.new_tensor([-2.0, -1, 0, 1, 2]), right=right, out_int32=short)
        for right in (False, True)
        for short in (False, True)
    ],
    "searchsorted": lambda x, w: [
        torch.searchsorted(x.new_tensor([[-2.0, -1, 0, 1, 2]]), x[None], side=side) for side in ("left", "right")
    ],
    "searchsorted-number": lambda x, w: [torch.searchsorted(x.sort()[0], one) for one in (-4.0, 0.0, 1.0, 9.0)],
    "range-of-all": lambda x, w: [torch.histc(w, 3), torch.histc(x, 4, 1, 1), *torch.histogram(w, 3)],
    "one-value": lambda x, w: [torch.histc(x[:1].expand(3), 4), torch.histc(x[:0], 3, 0, 1), torch.histc(x[:0], 3)],
    "counted": lambda x, w: [torch.bincount((x.abs() * 2).long(), minlength=m) for m in (0, 3, 12)],
    "counted-weights": lambda x, w: torch.bincount((x.abs() * 2).long(), w),
}
_EDGES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, -1.0, -2.0, -0.5, -4.0]


def _around(dtype: torch.dtype) -> torch.Tensor:
    on = torch.tensor(_EDGES, dtype=dtype)
    up, down = on * (1 + 2 * torch.finfo(dtype).eps), on * (1 - 2 * torch.finfo(dtype).eps)
    return torch.cat([on, up, down, torch.tensor([0.3, 1.2, -1.7, 2.6], dtype=dtype)])


add_beside(
    cases,
    "spread-bins",
    _BINS,
    lambda d: (_around(torch.float32), torch.arange(34.0) % 5 + 1),
    share=2.0**-16,
    since="2.1",
)
