"""Rule 2: NaN whose sign bit is set is NaN: it is as large as the other in every order, and no number.

A sort that compares bits puts it before all numbers: nanquantile, https://github.com/pytorch/pytorch/issues/190781
"""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
Form = Callable[..., Any]

# x of (n, 9): rows with no NaN, one, several of either sign, nothing else.
_FORMS: dict[str, Form] = {
    "sort": lambda x: [x.sort(-1)[0], x.sort(-1, descending=True)[0], x.flatten().sort()[0]],
    "stable": lambda x: [*torch.sort(x, dim=-1, stable=True), torch.argsort(x, dim=-1, stable=True)],
    "topk": lambda x: [x.topk(3)[0], x.topk(3, largest=False)[0], x.kthvalue(4, -1)[0]],
    "median": lambda x: [x.median(), x.median(-1)[0], x.nanmedian(), x.nanmedian(-1)[0], x.mode(-1)[0].isnan().sum()],
    "quantile": lambda x: [x.float().quantile(0.5, -1), x.float().nanquantile(0.25, -1), x.float().nanquantile(0.5)],
    "unique": lambda x: [x[0].unique(return_counts=True), x[:, 0].unique(), torch.unique_consecutive(x[2])],
    "ends": lambda x: [x.amax(-1), x.amin(-1), x.max(), x.min(), *x.aminmax(dim=-1), x.max(-1)[0], x.min(-1)[0]],
    "places": lambda x: [x[1:3].argmax(-1), x[1:3].argmin(-1), x[1:3].max(-1)[1]],
    "scans": lambda x: [x.cummax(-1)[0], x.cummin(-1)[0], x.cumsum(-1), x.logcumsumexp(-1)],
    "sums": lambda x: [x.sum(-1), x.nansum(-1), x.nanmean(-1), x.prod(-1), x.norm(dim=-1), x.logsumexp(-1)],
    "found": lambda x: [x.isnan(), x.isfinite(), x != x, x == x, x > 0, x.nonzero(), x.bool(), x.count_nonzero(-1)],
    "replaced": lambda x: [x.nan_to_num(7.0), torch.where(x.isnan(), 3.0, x), x.masked_fill(x != x, 2)],
    "larger": lambda x: [
        torch.maximum(x, x.flip(0)),
        torch.minimum(x, -x),
        torch.fmax(x, x.flip(0)),
        torch.fmin(x, x.flip(0)),
    ],
    "clamped": lambda x: [
        x.clamp(-1, 1),
        x.clamp_min(0),
        x.relu(),
        F.hardtanh(x),
        F.leaky_relu(x),
        F.threshold(x, 0.5, 2),
    ],
    "pointwise": lambda x: [
        x.abs(),
        x + 1,
        x * 0,
        x.sign(),
        x.round(),
        x.exp(),
        x.sqrt(),
        x.pow(2),
        x.sigmoid(),
        x.tanh(),
    ],
    "close": lambda x: [x.isclose(x, equal_nan=True), x.isclose(-x, equal_nan=True), x.eq(-x)],
    "shares": lambda x: [x.softmax(-1), x.log_softmax(-1), F.layer_norm(x, (9,)), F.normalize(x, dim=-1)],
    "pooled": lambda x: [F.max_pool1d(x, 3), F.adaptive_max_pool1d(x, 2), F.avg_pool1d(x, 3)],
    "searched": lambda x: [
        torch.searchsorted(x[0].nan_to_num().sort()[0], x),
        torch.bucketize(x, x[0].nan_to_num().sort()[0]),
    ],
    "isin": lambda x: torch.isin(x, x[1]),
    "converted": lambda x: [x.to(torch.float32), x.to(torch.float16), x.to(torch.bfloat16)],
}


def _rows(d: Any, dtype: torch.dtype) -> tuple[torch.Tensor]:
    x = d.distinct(6, 9) / 16
    for row, columns in ((1, {3: -1}), (2, {0: -1, 1: 1, 7: -1}), (3, {8: 1}), (4, {2: -1, 5: -1})):
        for column, sign in columns.items():
            x[row, column] = math.copysign(math.nan, sign)
    x[5] = torch.tensor([math.nan, -math.nan] * 5)[:9]
    return (x.to(dtype),)


for _name, _form in _FORMS.items():
    for _dtype in (torch.float32, *HALVES):
        add_table(
            cases,
            f"negative-nan-{_name}-{str(_dtype)[6:]}",
            {_name: _form},
            lambda d, dtype=_dtype: _rows(d, dtype),
            terms=16 if _dtype == torch.float32 else 4,
            deterministic=False,
        )
