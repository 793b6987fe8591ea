"""Rule 3: many numbers that are alike, and two counts whose product is past 2**31.

How many share the largest is counted in the dtype of the numbers, https://github.com/tinygrad/tinygrad/issues/12296;
a place times a count in 32 bits, https://github.com/cupy/cupy/issues/7698
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import HALVES, add_table, each_shown

cases = Cases("conditions")
Form = Callable[..., Any]


# x: as many ones; i: as many zeros, which are places.
_ALIKE: dict[str, Form] = {
    "summed": lambda x, i: [x.sum(), x.mean(), x.norm(), x.sum(0, keepdim=True), x.nansum()],
    "spread": lambda x, i: [x.var(), x.std(), *torch.var_mean(x)],
    "products": lambda x, i: [x @ x, x[None] @ x[:, None], F.linear(x, x[None]), torch.einsum("i,i->", x, x)],
    "windows": lambda x, i: [
        F.conv1d(x[None, None], x[None, None]),
        F.avg_pool1d(x[None, None], len(x)),
        F.adaptive_avg_pool1d(x[None, None], 1),
        F.max_pool1d(x[None, None], len(x)),
    ],
    "scanned": lambda x, i: [i.cumsum(0), x.cumprod(0), x.cummax(0)[0], (i + 1).cumsum(0), (i < 1).cumsum(0)],
    "ordered": lambda x, i: [x.sort()[0], torch.sort(x, stable=True)[1], x.topk(9)[0], x.kthvalue(2)[0], x.median()],
    "counted": lambda x, i: [
        torch.bincount(i),
        torch.histc(x.float(), 3, 0, 2),
        x.unique(return_counts=True, return_inverse=True),
        x.unique_consecutive(return_counts=True),
        x.count_nonzero(),
        x.nonzero(),
        (x == 1).sum(),
        (x > 1).any(),
        (x == 1).all(),
        torch.searchsorted(x, x[:2]),
        torch.searchsorted(x, x[:2], right=True),
        x[x == 1],
    ],
    "added": lambda x, i: [
        x.new_zeros(2).index_add(0, i, x),
        x.new_zeros(2).scatter_add(0, i, x),
        x.new_zeros(2).index_put((i,), x, accumulate=True),
        x.new_zeros(2).scatter_reduce(0, i, x, "mean", include_self=False),
        x.new_zeros(2).scatter_reduce(0, i, x, "amax"),
    ],
    "normed": lambda x, i: [
        F.batch_norm(x[:, None], None, None, training=True),
        F.layer_norm(x, x.shape),
        F.group_norm(x[None, None], 1),
        F.normalize(x, dim=0),
    ],
    "lost": lambda x, i: [
        F.mse_loss(x, x + 1),
        F.l1_loss(x, x - 1),
        F.cross_entropy(torch.stack([x, x], 1), i),
        F.binary_cross_entropy_with_logits(x - 1, x),
    ],
}
# Gradients: evenly to all that share an end. 8192 shared by so many is far from nothing.
_SHARED: dict[str, Form] = {
    "ends": lambda x, i: [
        derived(lambda a: a.max() * 8192, x),
        derived(lambda a: torch.min(a) * 8192, x),
        derived(lambda a: a.amax(0) * 8192, x),
        derived(lambda a: torch.amin(a) * 8192, x),
        derived(lambda a: a.aminmax()[0] * 8192, x),
    ],
    "mean": lambda x, i: derived(lambda a: a.mean() * 8192, x),
    "normed": lambda x, i: derived(lambda a: F.batch_norm(a[:, None], None, None, training=True, eps=0.5), x),
}
# What half precision may add up number by number. Every sum is a whole number, in whatever order it is taken.
_ADDED: dict[str, Form] = {
    "added": _ALIKE.pop("added"),
    "looked_up": lambda x, i: derived(lambda a: F.embedding(i, a).sum(0), x[:8].view(4, 2)),
    "picked": lambda x, i: [
        derived(lambda a: a[i].sum(), x[:3]),
        derived(lambda a: a.index_select(0, i).sum(), x[:3]),
        derived(lambda a: (a.expand(len(x)) * 2).sum(), x[:1]),
    ],
    "lost_rows": lambda x, i: F.nll_loss(x[:, None] * -2, i),
    "exponents": lambda x, i: [x.logsumexp(0), (x - 1).softmax(0), x.log_softmax(0), x.nanmean()],
}
for _count in (2049, 65_505, 70_001):
    for _dtype in (torch.float32, *HALVES):
        add_table(
            cases,
            f"counts-alike-{_count}-{str(_dtype)[6:]}",
            {
                name: lambda x, i, act=act, count=_count: each_shown(
                    act(x.expand(count).contiguous(), i.expand(count).contiguous())
                )
                for name, act in {
                    **_ALIKE,
                    **{f"{one}-derived": act for one, act in _SHARED.items()},
                    **(_ADDED if _dtype == torch.float32 else {}),
                }.items()
            },
            lambda d, dtype=_dtype: (torch.ones(1, dtype=dtype), torch.zeros(1, dtype=torch.int64)),
            terms=_count if _dtype == torch.float32 else 4,
            deterministic=False,
        )

_NUMBERS, _PLACES = 70_001, 50_021
# x: 70,001 numbers; i: as many places in the table t of 50,021 rows of two numbers.
_CROSSED: dict[str, Form] = {
    "counted": lambda x, i, t: [
        torch.bincount(i),
        torch.bincount(i, x),
        torch.bincount(i.to(torch.int32)),
        torch.bincount(i, minlength=90_001),
        torch.histc(i + 0.5, len(t), 0, len(t)),
        i.unique(return_inverse=True, return_counts=True),
    ],
    "picked": lambda x, i, t: [
        t[i],
        t.index_select(0, i),
        t[:, 0].gather(0, i),
        t.take(i * 2 + 1),
        F.embedding(i, t),
        t.index_select(0, i.to(torch.int32)),
    ],
    "added": lambda x, i, t: [
        t[:, 0].index_add(0, i, x),
        t[:, 1].scatter_add(0, i, x),
        t.index_put((i, i % 2), x, accumulate=True),
        t[:, 0].contiguous().put(i, x, accumulate=True),
        t[:, 0].scatter_reduce(0, i, x, "amax"),
        t[:, 0].index_reduce(0, i, x, "amin"),
        derived(lambda a: F.embedding(i, a), t),
    ],
    "bags": lambda x, i, t: [
        F.embedding_bag(i, t, torch.arange(0, len(i), 7, device=i.device), mode="sum"),
        F.embedding_bag(i, t, torch.arange(0, len(i), 35_000, device=i.device), mode="max"),
    ],
    "found": lambda x, i, t: [
        torch.searchsorted(t[:, 0].sort()[0], x),
        torch.bucketize(x, t[:, 1].sort()[0], right=True),
        torch.isin(i, i[:30_011] * 2),
    ],
    "repeated": lambda x, i, t: [
        t.repeat_interleave(torch.arange(len(t), device=t.device) % 3, 0),
        x[torch.argsort(i, stable=True)],
    ],
    "written": lambda x, i, t: [t.index_fill(0, i[:40_000], 3), t.scatter(0, i[:, None], 5), t[:, 0].put(i, x * 0 + 2)],
}
add_table(
    cases,
    "counts-crossed",
    {name: lambda x, i, t, act=act: each_shown(act(x, i, t)) for name, act in _CROSSED.items()},
    lambda d: (d.distinct(_NUMBERS) / 1024, d.permutation(_NUMBERS) * 7 % _PLACES, d.distinct(_PLACES, 2) / 512),
    terms=64,
    deterministic=False,
)
