"""Limits of numbers: counts of none, rows of one value, the ends of each integer dtype, quotients."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.limits import ENDS, HALVES, ONCE, add_table, assigned, each

cases = Cases("conditions")


# A count, a length or a size of 0, where the operand itself is not empty; and the largest that there may be.
_COUNTS = {
    "topk": lambda x: [torch.topk(x, k, dim) for dim in (0, -1) for k in (0, 1, x.shape[dim])],
    "narrow": lambda x: [x.narrow(1, 3, 0) + 1, x.narrow(1, 0, x.shape[1]).sum(0), x[:, 3:3].sum(1)],
    "split": lambda x: [*x.split([0, x.shape[0]]), *x.split(99), *x.chunk(99, 1), *x.tensor_split([0, 2, 99])],
    "repeat": lambda x: [x.repeat(0, 2), x.repeat(1, 1), x.tile(0), x.repeat_interleave(0, 0), x.repeat_interleave(1)],
    "expand": lambda x: [x[:1].expand(0, -1) * 2, x[:, :1].expand(-1, 1) * 2, x.expand(1, *x.shape) * 2],
    "roll": lambda x: [x.roll(0), x.roll(0, 1), x.roll(99, 0), x.roll(-99, 1), x.flip(()), x.rot90(0), x.rot90(4)],
    "pad": lambda x: [F.pad(x, (0, 0)), F.pad(x, (0, 0, 0, 1)), F.pad(x, (-2, 0)), F.pad(x[:, :0], (1, 1))],
    "diff": lambda x: [x.diff(n=n) for n in (0, 1, x.shape[1] - 1, x.shape[1])],
    "tril": lambda x: [form(x, k) for form in (torch.tril, torch.triu, torch.diagonal) for k in (-4, 0, 6)],
    "choose": lambda x: [x.kthvalue(k, 1) for k in (1, x.shape[1])] + [x.quantile(q, 0) for q in (0.0, 1.0)],
    "index": lambda x: [
        x[[]],
        x[:, []],
        x[x > 99],
        x.index_select(0, torch.zeros(0, dtype=torch.int64, device=x.device)),
    ],
    "taken": lambda x: [x.take(torch.zeros(0, 3, dtype=torch.int64, device=x.device)), x.masked_select(x > 99)],
    "gathered": lambda x: x.gather(1, torch.zeros(x.shape[0], 0, dtype=torch.int64, device=x.device)),
    "counted": lambda x: [
        torch.bincount(torch.zeros(0, dtype=torch.int64, device=x.device), minlength=m) for m in (0, 3)
    ],
    "combined": lambda x: [torch.combinations(x[0], r) for r in (1, 2)] + [torch.cartesian_prod(x[0], x[0][:0])],
    "windows": lambda x: [x.unfold(1, x.shape[1], 1), x.unfold(1, 1, 2), x.unfold(0, 2, 99)],
    "powers": lambda x: [torch.linalg.matrix_power(x[:4, :4] / 4, n) for n in (0, 1)] + [x**0, x**1],
    "dropped": lambda x: [F.dropout(x, 0.0), F.dropout(x, 1.0), F.dropout(x[:0], 0.5), F.alpha_dropout(x, 0.0)],
    "resized": lambda x: [F.interpolate(x[None, None], (1, 1)), F.interpolate(x[None, None], tuple(x.shape))],
}
add_table(cases, "counts", _COUNTS, lambda d: (d.distinct(5 + d.k, 7) / 8,))


def _made(run: Any, n: int) -> Any:
    at = {"device": run.device}
    makers = {
        "linspace": lambda: [torch.linspace(0, 3, steps, **at) for steps in (0, 1, n)],
        "logspace": lambda: [torch.logspace(0, 1, steps, **at) for steps in (0, 1, n)],
        "arange": lambda: [torch.arange(3, 3, **at), torch.arange(3, 3 + n, n, **at), torch.arange(0, -1, -1, **at)],
        "eye": lambda: [torch.eye(0, **at), torch.eye(3, 0, **at), torch.eye(n, 1, **at)],
        "randperm": lambda: [torch.randperm(0, **at), torch.randperm(1, **at)],
        "corners": lambda: [torch.tril_indices(0, 3, **at), torch.triu_indices(3, n, 2, **at)],
        "windows": lambda: [torch.hann_window(m, **at) for m in (0, 1, n)],
    }
    return each({name: lambda form=form: form() for name, form in makers.items()})


cases.add("condition-limit-made", _made, make=lambda d: (7 + d.k,), states=ONCE, may_be_missing=True)

# Rows of one value: nothing stands out in them, or nothing is left.
_ROWS = (-math.inf, math.inf, math.nan, 0.0, -0.0, 2.5, -120.0)
_REDUCED = {
    "extremes": lambda x, dim: [x.amax(dim), x.amin(dim), x.aminmax(dim=dim)],
    "first": lambda x, dim: [x.argmax(dim).clamp(-1, 0), x.argmin(dim).clamp(-1, 0)],  # of equal ones any: 0 and up
    "values": lambda x, dim: [x.max(dim)[0], x.min(dim)[0], x.median(dim)[0], x.sort(dim)[0], x.topk(2, dim)[0]],
    "scans": lambda x, dim: [x.cummax(dim)[0], x.cummin(dim)[0], x.cumsum(dim), x.cumprod(dim), x.logcumsumexp(dim)],
    "sums": lambda x, dim: [x.sum(dim), x.nansum(dim), x.prod(dim), x.mean(dim), x.nanmean(dim), x.count_nonzero(dim)],
    "tests": lambda x, dim: [x.any(dim), x.all(dim), x.isfinite().all(dim), (x == x).any(dim)],
    "soft": lambda x, dim: [x.softmax(dim), x.log_softmax(dim), x.logsumexp(dim), x.sigmoid(), F.logsigmoid(x)],
    "norms": lambda x, dim: [torch.linalg.vector_norm(x, p, dim) for p in (0, 1, 2, math.inf, -math.inf)],
}
for _dtype in (torch.float32, *HALVES):
    add_table(
        cases,
        f"rows-{str(_dtype)[6:]}",
        {name: lambda x, form=form: [form(x, 1), form(x.mT, 0)] for name, form in _REDUCED.items()},
        lambda d, dtype=_dtype: (torch.tensor(_ROWS).to(dtype)[:, None].repeat(1, 5 + d.k),),
    )
# One score far above the others, by more than the exponential of each dtype holds.
add_table(
    cases,
    "steep",
    {
        "soft": lambda x: [x.softmax(-1), x.log_softmax(-1), x.mT.log_softmax(0), x.logsumexp(-1), F.softmin(x, -1)],
        "losses": lambda x: [
            F.cross_entropy(x, torch.full((x.shape[0],), i, device=x.device), reduction="none") for i in range(3)
        ],
        "squashed": lambda x: [x.sigmoid(), F.logsigmoid(x), F.softplus(x), x.tanh(), F.silu(x), F.gelu(x), F.mish(x)],
        "binary": lambda x: F.binary_cross_entropy_with_logits(x, (x > 0).to(x.dtype), reduction="none"),
        "gradient": lambda x: backward(F.log_softmax(start := leaf(x), -1), start, grad=torch.ones_like(x)),
    },
    lambda d: (torch.tensor([[0.0, step, -step] for step in (5, 20, 50, 87, 90, 110, 250, 1e4)]) + d.normal(8, 3) / 8,),
)

# The ends of each integer dtype, as numbers that a call gets.
_FILLED = {
    "made": lambda x, n: [torch.full((2, 3), n, dtype=x.dtype, device=x.device), x.new_full((2,), n)],
    "like": lambda x, n: [torch.full_like(x, n), torch.zeros_like(x).fill_(n), torch.empty_like(x[:, ::2]).fill_(n)],
    "tensor": lambda x, n: [torch.tensor([n, 0], dtype=x.dtype, device=x.device), x.new_tensor(n)],
    "masked": lambda x, n: [x.masked_fill(x > 0, n), torch.where(x > 0, x, n), x.clone().masked_fill_(x > 0, n)],
    "written": lambda x, n: [x.index_fill(0, torch.tensor([1], device=x.device), n), assigned(x, slice(1, 3), n)],
    "scattered": lambda x, n: x.scatter(1, torch.ones_like(x, dtype=torch.int64)[:, :1], n),
    "padded": lambda x, n: [F.pad(x, (1, 1), value=n), torch.constant_pad_nd(x, (0, 1), n)],
    "compared": lambda x, n: [x == n, x < n, x > n, x.clamp(max=n), x.clamp(min=n), torch.full_like(x, n) == n],
    "ranged": lambda x, n: torch.arange(n - 3, n, dtype=x.dtype, device=x.device),
    "converted": lambda x, n: (
        [torch.full_like(x, n).to(other) for other in (torch.float32, torch.int64, torch.int32, torch.bool)]
        if x.dtype != torch.int64
        else torch.full_like(x, n).to(torch.float32)
    ),
}


for _dtype, _ends in ENDS.items():
    add_table(
        cases,
        f"ends-{str(_dtype)[6:]}",
        {
            f"{name}-{n}": lambda x, form=form, n=n: form(x, n)
            for name, form in _FILLED.items()
            for n in sorted({_ends.min, _ends.max, _ends.max // 2 + 1})
        },
        lambda d, dtype=_dtype: (d.of(dtype, 4 + d.k, 5),),
    )

# Quotients of whole numbers that come out even, and all beside them: a float between is one off at such places.
_DIVIDED = {
    "floor": lambda a, b: [torch.floor_divide(a, b), a // b, torch.div(a, b, rounding_mode="floor")],
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "rest": lambda a, b: [torch.remainder(a, b), torch.fmod(a, b), a % b],
    "numbers": lambda a, b: [[a // n, a % n, torch.fmod(a, n)] for n in (3, 7, 28, 49, 100)],
    "written": lambda a, b: [a.clone().floor_divide_(b), a.clone().remainder_(b), a.clone().fmod_(b)],
    "exact": lambda a, b: [a / b, a.true_divide(b), torch.gcd(a, b)],
}
for _dtype in (torch.int64, torch.int32, torch.int16):
    add_table(
        cases,
        f"quotients-{str(_dtype)[6:]}",
        _DIVIDED,
        lambda d, dtype=_dtype: (
            (torch.arange(-24, 25)[:, None] * torch.arange(1, 80)).to(dtype) + d.k,
            torch.arange(1, 80).to(dtype).expand(49, 79).clone(),
        ),
    )
# Whole numbers with a float beside them: the float decides the dtype, and stays itself.
_BESIDE = {
    "clamp": lambda x, s: [x.clamp(min=s), x.clamp(max=s), x.clamp_min(s), x.clamp_max(s), x.clamp(s, s + 2)],
    "arithmetic": lambda x, s: [x + s, x - s, s - x, x * s, x / s, x // s, x % s, torch.fmod(x, s), x**s],
    "compared": lambda x, s: [x > s, x <= s, x == s, x != s, s < x],
    "chosen": lambda x, s: [torch.where(x > 0, x, s), torch.maximum(x, torch.tensor(s, device=x.device))],
    "weighted": lambda x, s: [torch.add(x, x.float(), alpha=s), torch.rsub(x.float(), x, alpha=s)],
    "functions": lambda x, s: [x.abs().pow(s), torch.hypot(x.float(), x * s), torch.xlogy(x.abs(), x.abs() + s)],
}
for _dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool):
    add_table(
        cases,
        f"floats-beside-{str(_dtype)[6:]}",
        {f"{n}-{s}": lambda x, f=f, s=s: f(x, s) for n, f in _BESIDE.items() for s in (0.5, 1.0, 2.75)},
        lambda d, dtype=_dtype: (d.of(dtype, 4, 5 + d.k),),
        factor=16.0,
    )
