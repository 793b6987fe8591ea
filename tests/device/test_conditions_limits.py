"""Limits: counts of none, sides of one, rows of one value, the ends of each integer dtype, what is assigned to what."""

from __future__ import annotations

import itertools
import math
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.answers import attempt

cases = Cases("conditions")
ONCE = ("fresh",)
HALVES = (torch.float16, torch.bfloat16)
ENDS = {dtype: torch.iinfo(dtype) for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)}


def test_case(case: Any, ask: Any) -> None:
    ask(case)


def _each(forms: dict[str, Any], *operands: Any) -> Any:
    return {name: attempt(lambda form=form: form(*operands)) for name, form in forms.items()}


def _table(name: str, forms: dict[str, Any], make: Any, **fields: Any) -> None:
    options = {"terms": 64, "floor": 1.0, "states": ONCE, "may_be_missing": True, **fields}
    cases.add(f"condition-limit-{name}", lambda *operands: _each(forms, *operands), make=make, **options)


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
_table("counts", _COUNTS, lambda d: (d.distinct(5 + d.k, 7) / 8,))


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
    return _each({name: lambda form=form: form() for name, form in makers.items()})


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
    _table(
        f"rows-{str(_dtype)[6:]}",
        {name: lambda x, form=form: [form(x, 1), form(x.mT, 0)] for name, form in _REDUCED.items()},
        lambda d, dtype=_dtype: (torch.tensor(_ROWS).to(dtype)[:, None].repeat(1, 5 + d.k),),
    )
# One score far above the others, by more than the exponential of each dtype holds.
_table(
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
    "written": lambda x, n: [x.index_fill(0, torch.tensor([1], device=x.device), n), _assigned(x, slice(1, 3), n)],
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


def _assigned(x: torch.Tensor, index: Any, value: Any) -> torch.Tensor:
    target = x.clone()
    target[index] = value
    return target


for _dtype, _ends in ENDS.items():
    _table(
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
    _table(
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
    _table(
        f"floats-beside-{str(_dtype)[6:]}",
        {f"{n}-{s}": lambda x, f=f, s=s: f(x, s) for n, f in _BESIDE.items() for s in (0.5, 1.0, 2.75)},
        lambda d, dtype=_dtype: (d.of(dtype, 4, 5 + d.k),),
        factor=16.0,
    )

# What is assigned to what: every kind of value into every kind of place.
_VALUES = {
    "number": lambda v: 3,
    "element": lambda v: v[0, 1],
    "scalar": lambda v: v.new_tensor(2),
    "one": lambda v: v[:1, 2],
    "square": lambda v: v[:1, :1],
    "strided": lambda v: v[::2, 1].reshape(-1)[1],
    "other": lambda v: v[1, 1].to(torch.int64),
    "host": lambda v: v[2, 1].cpu(),
}
_PLACES: dict[str, Any] = {
    "all": slice(None),
    "some": slice(1, 3),
    "stepped": slice(None, None, 2),
    "dots": ...,
    "row": 1,
    "element": (2, 3),
    "column": (slice(None), 2),
    "block": (slice(1, None, 2), slice(2, 4)),
    "list": [0, 2],
    "pairs": ([0, 2], [1, 1]),
    "new": (None, 1),
}


def _assignments(base: torch.Tensor, v: torch.Tensor) -> Any:
    answers = {}
    for name, value in _VALUES.items():
        for place, index in _PLACES.items():
            answers[f"{place}-{name}"] = attempt(lambda index=index, value=value: _assigned(base, index, value(v)))
        # By a mask, another dtype is the CPU's alone: it fills (aten/src/ATen/native/TensorAdvancedIndexing.cpp,
        # `canDispatchToMaskedFill`), and CUDA refuses.
        for how, mask in () if name == "other" else (("mask", base > 0), ("rows", base[:, 0] > 0)):
            answers[f"{how}-{name}"] = attempt(lambda mask=mask, value=value: _assigned(base, mask, value(v)))
        answers[f"view-{name}"] = attempt(lambda value=value: _assigned(base.t(), slice(1, 4), value(v)))
        answers[f"line-{name}"] = attempt(lambda value=value: _assigned(base[1], slice(None), value(v)))
    return answers


for _dtype in (torch.float32, torch.float16, torch.int64, torch.uint8, torch.bool):
    cases.add(
        f"condition-limit-assigned-{str(_dtype)[6:]}",
        _assignments,
        make=lambda d, dtype=_dtype: (d.of(dtype, 4 + d.k, 5), d.of(dtype, 4, 5)),
        states=ONCE,
    )

# Sides of 1: their strides say nothing, and a permute leaves others than a fresh tensor has.
_THIN = ((1, 2, 1, 1), (2, 1, 1, 1), (1, 3, 1, 4), (1, 3, 4, 1), (2, 3, 1, 1), (1, 1, 3, 4), (2, 1, 4, 3))
# No nearest pixel of these sizes lies on a border that float32 cannot hold.
_IMAGES = {
    **{
        f"interpolate-{mode}": lambda x, mode=mode: [
            F.interpolate(x, size, mode=mode) for size in ((2, 2), (1, 8), (8, 2), (1, 1))
        ]
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    },
    "corners": lambda x: [F.interpolate(x, (2, 3), mode=m, align_corners=True) for m in ("bilinear", "bicubic")],
    "pools": lambda x: [
        F.avg_pool2d(x, 1),
        F.max_pool2d(x, 1),
        F.adaptive_avg_pool2d(x, 1),
        F.adaptive_max_pool2d(x, 1),
    ],
    "padded-pools": lambda x: [F.avg_pool2d(x, 3, 1, 1), F.max_pool2d(x, 3, 2, 1), F.lp_pool2d(x.abs(), 2, 1)],
    "pads": lambda x: [F.pad(x, (1, 1, 1, 1)), F.pad(x, (1, 1, 1, 1), "replicate"), F.pad(x, (1, 0, 0, 1), "circular")],
    "convolutions": lambda x: [
        F.conv2d(x, x.new_ones(2, x.shape[1], 1, 1)),
        F.conv2d(x, x.new_ones(2, x.shape[1], 3, 3), padding=1),
        F.conv_transpose2d(x, x.new_ones(x.shape[1], 2, 2, 2), stride=2),
        F.conv2d(x, x.new_ones(x.shape[1], 1, 3, 3), padding=1, groups=x.shape[1]),
    ],
    "norms": lambda x: [
        F.batch_norm(x, x.mean((0, 2, 3)), x.abs().mean((0, 2, 3))),
        F.group_norm(x, 1),
        F.layer_norm(x, x.shape[1:]),
        F.local_response_norm(x, 2),
    ],
    "sampled": lambda x: F.grid_sample(x, x.new_full((x.shape[0], 2, 1, 2), 0.25), align_corners=False),
    "moved": lambda x: [F.pixel_shuffle(x.repeat(1, 4, 1, 1), 2), F.unfold(x, 1), x.flip(3), x.roll(1, 3), x.mT @ x],
    "sums": lambda x: [x.sum((2, 3)), x.mean(1), x.amax((0, 3)), x.softmax(1), x.cumsum(3), x.var((0, 1, 2, 3))],
    "joined": lambda x: [torch.cat([x, x], 1), torch.stack([x, x]), x.expand(2, *x.shape[1:]) if len(x) == 1 else x],
    "read": lambda x: [x + 1, x.contiguous(), x.reshape(-1), x.to(torch.float16), x.clone(), x.permute(1, 3, 0, 2) * 2],
}


def _turned(x: torch.Tensor) -> list[torch.Tensor]:
    """Return one tensor with the strides that a permute of each kind leaves where sides are 1."""
    views = [x, x.contiguous(memory_format=torch.channels_last)]
    for order in ((0, 2, 3, 1), (3, 0, 2, 1), (1, 0, 3, 2), (2, 3, 0, 1)):
        back = [order.index(place) for place in range(4)]
        views.append(x.permute(*order).contiguous().permute(*back))
    return views


for _name, _form in _IMAGES.items():
    cases.add(
        f"condition-limit-thin-{_name}",
        lambda *images, form=_form: [[attempt(lambda one=one: form(one)) for one in _turned(x)] for x in images],
        make=lambda d: tuple(d.normal(*shape) for shape in _THIN),
        terms=64,
        floor=1.0,
        states=ONCE,
        may_be_missing=True,
    )

# One operand of several without elements, of the same dtype and of another.
_EMPTY = {
    "cat": lambda x, e: [torch.cat(one) for one in ([e, x], [x, e], [e, e], [x, e, x], [e.to(torch.int64), x])],
    "cat-flat": lambda x, e: [torch.cat([x, x.new_zeros(0)], d) for d in (0, 1)] + [torch.hstack([x[0], x[0, :0]])],
    "cat-mixed": lambda x, e: [torch.cat([e.half(), x]), torch.cat([e, x.int()]), torch.cat([e.bool(), x > 0])],
    "stacked": lambda x, e: [torch.vstack([e, x]), torch.block_diag(x, e), torch.column_stack([x, x[:, :0]])],
    "matrix-vector": lambda x, e: [
        e @ x[0],
        torch.mv(e, x[0]),
        x[:, :0] @ x[0, :0],
        torch.addmv(x[:, 0], x[:, :0], e[:, 0]),
    ],
    "vector-matrix": lambda x, e: [x[:, 0] @ x[:, :0], e[:, 0] @ e, torch.outer(x[0], x[0, :0]), torch.inner(x, e)],
    "batches": lambda x, e: [x[None, :, :0] @ x[None, :0], torch.baddbmm(e[None], e[None, :, :0], x[None, :0])],
    "linear": lambda x, e: [F.linear(e, x), F.linear(x, e), F.linear(x, e, x[:0, 0]), F.linear(e, x, x[:, 0])],
    "products": lambda x, e: [
        torch.cdist(x, e),
        torch.kron(x, e),
        torch.einsum("ij,kj->ik", x, e),
        torch.dot(e[:, 0], e[:, 1]),
    ],
    "spread": lambda x, e: [x[:1] + e, e * x[0], torch.where(e > 0, e, x[:1]), torch.lerp(e, x[:1], 0.5), e / x[:1]],
    "compared": lambda x, e: [torch.equal(e, x), torch.equal(e, e), torch.isin(x, e), torch.isin(e, x), e == x[:1]],
    "searched": lambda x, e: [torch.searchsorted(e[:, 0], x[0]), torch.bucketize(e, x[0].sort()[0])],
    "indexed": lambda x, e: [
        x.index_add(0, i := torch.zeros(0, dtype=torch.int64, device=x.device), e),
        x.index_copy(0, i, e),
    ],
    "scattered": lambda x, e: [
        x.scatter(0, e.long(), e),
        x.scatter_add(1, x[:, :0].long(), x),
        x.masked_scatter(x > 99, e),
    ],
    "embedded": lambda x, e: [F.embedding(e.long(), x), F.embedding_bag(e.long()[:, 0], x, e.long()[:, 0])],
    "tests": lambda x, e: [form(e) for form in (torch.isposinf, torch.isneginf, torch.isnan, torch.signbit, torch.all)],
    "sorted": lambda x, e: [e.sort(), e.argsort(), e.topk(0, 0), e.unique(), torch.unique_consecutive(e), e.msort()],
    "sampled": lambda x, e: [F.grid_sample(x[None, None], e.reshape(1, 0, 2, 2), align_corners=False)],
    "images": lambda x, e: [
        F.interpolate(e[:, None], 3),
        F.conv1d(e[:, None], x[:1, None, :3]),
        F.max_pool1d(e[:, None], 2),
    ],
    "attention": lambda x, e: [F.scaled_dot_product_attention(e[None], x[None], x[None]), F.softmax(e, 0), F.gelu(e)],
    "losses": lambda x, e: (
        [F.mse_loss(e, e, reduction=how) for how in ("none", "sum", "mean")] + [F.nll_loss(e, e[:, 0].long())]
    ),
    "gradient": lambda x, e: [
        backward(form(start := leaf(e)), start, grad=torch.ones_like(e))
        for form in (
            *(lambda y: y / (y + 1), lambda y: y * y, lambda y: y.exp(), lambda y: y.softmax(0), lambda y: y.pow(2)),
            *(lambda y: F.layer_norm(y, y.shape[1:]), lambda y: y.cumsum(0), lambda y: y.sort(0)[0], torch.sigmoid),
        )
    ],
}
_table("nothing", _EMPTY, lambda d: (d.distinct(5 + d.k, 4) / 8, d.normal(0, 4)))

# One dimension, two and more, transformed along each.
_table(
    "transformed",
    {
        name: lambda x, name=name: [getattr(torch.fft, name)(one) for one in (x[0], x, x[None], x[:, 0], x[:, ::2])]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    lambda d: (torch.complex(d.normal(6, 9 + d.k), d.normal(6, 9 + d.k)).real.contiguous(),),
)
# Numbers of places past 2**15 and 2**16, and draws among as many.
_table(
    "places",
    {
        "nonzero": lambda x: [x.nonzero(), torch.where(x > 0)[0], (x > 0).nonzero()[-5:], x.reshape(1, -1).nonzero()],
        "extremes": lambda x: [x.argmax(), x.argmin(), x.max(0)[1], x.topk(5)[1], x.argsort()[-9:]],
        "masked": lambda x: [x[x > 0], x.masked_select(x < 0), torch.unique(x, return_inverse=True)[1]],
        "found": lambda x: [torch.searchsorted(x.sort()[0], x[::997]), torch.bincount((x + 40_000).long())[-9:]],
    },
    lambda d: (d.distinct(70_001 + d.k),),
)

# Draws whose result is certain: one category alone has a weight, among few and among more than 2**16.
_PLACES_OF_WEIGHT = ((1, 0), (7, 3), (1031, 1030), (40_000, 33_333), (70_001, 65_600))
_table(
    "certain-draws",
    {
        f"{how}-{count}": lambda x, count=count, place=place, draw=draw: draw(_alone(x, count, place))
        for count, place in _PLACES_OF_WEIGHT
        for how, draw in {
            "many": lambda w: torch.multinomial(w, 9, replacement=True),
            "one": lambda w: torch.multinomial(w, 1),
            "rows": lambda w: torch.multinomial(w.repeat(2, 1), 3, replacement=True),
            "strided": lambda w: torch.multinomial(torch.stack([w, 1 - w], -1)[:, 0], 2, replacement=True),
            "bernoulli": lambda w: [torch.bernoulli(w).nonzero(), torch.zeros_like(w).bernoulli_(w).nonzero()],
        }.items()
    },
    lambda d: (d.uniform(0.5, 2, 1),),
)


def _alone(x: torch.Tensor, count: int, place: int) -> torch.Tensor:
    weights = torch.zeros(count, dtype=x.dtype, device=x.device)
    weights[place] = 1
    return weights


# Indices without dimensions, and of one element, into tensors of every rank.
_POINTED = {
    "index_select": lambda x, i: [x.index_select(d, i) for d in (0, -1)],
    "index_add": lambda x, i: [
        x.index_add(0, i, x[:1]),
        x.index_add(0, i, x[:1], alpha=2),
        x.clone().index_add_(0, i, x[:1]),
    ],
    "index_copy": lambda x, i: [
        x.index_copy(0, i, x[:1]),
        x.clone().index_copy_(0, i, x[:1]),
    ],
    "index_fill": lambda x, i: [x.index_fill(0, i, 1), x.clone().index_fill_(-1, i, 0)],
    "index_reduce": lambda x, i: x.index_reduce(0, i, x[:1], "amax"),
    "index": lambda x, i: [x[i], x[:, i], x[i, i], x[None, i]],
    "written": lambda x, i: [_assigned(x, i, 1), x.index_put((i,), x[1]), x.index_put((i,), x[1], accumulate=True)],
    "take": lambda x, i: [
        x.take(i),
        torch.take_along_dim(x, i.reshape(1, 1), 0),
        x.clone().put_(i, x[0, 0].reshape(i.shape)),
    ],
    "line": lambda x, i: [x[0].gather(0, i), x[0].scatter(0, i, 1), x[0].scatter_add(0, i, x[0, 0].reshape(i.shape))],
    "single": lambda x, i: [
        x[0, 0].index_select(0, i * 0),
        x[0, 0].index_add(0, i * 0, x[0, 1]),
        x[0, 0].gather(0, i * 0),
    ],
    "embedding": lambda x, i: F.embedding(i, x),
}
for _dtype in (torch.float32, *HALVES, *ENDS, torch.bool):
    _table(
        f"pointed-{str(_dtype)[6:]}",
        {
            f"{name}-{label}": lambda x, i, form=form, cut=cut: form(x, cut(i))
            for name, form in _POINTED.items()
            for label, cut in {"none": lambda i: i[1], "one": lambda i: i[:1], "whole": lambda i: i[1].int()}.items()
        },
        lambda d, dtype=_dtype: (d.of(dtype, 4 + d.k, 5), d.permutation(4)),
    )

# What a padding leaves, given to a convolution: each mode, each rank, with gradients.
for _rank, _convolve in ((1, F.conv1d), (2, F.conv2d), (3, F.conv3d)):
    _table(
        f"padded-{_rank}d",
        {
            mode: lambda x, w, g, mode=mode, rank=_rank, convolve=_convolve: backward(
                convolve(F.pad(start := leaf(x), (1, 2) * rank, mode), weight := leaf(w)), start, weight, grad=g
            )
            for mode in ("constant", "reflect", "replicate", "circular")
        },
        lambda d, rank=_rank: (
            d.normal(2, 3, *(5,) * rank),
            d.normal(4, 3, *(3, 2, 2)[:rank]),
            d.normal(2, 4, *(6, 7, 7)[:rank]),
        ),
        terms=256,
    )

# einsum over a batch, a summed and two free letters, wherever each stands, with both gradients.
_ORDERS = list(itertools.permutations(range(3)))


def _summed(one: Any, two: Any, three: Any) -> Any:
    """Return a form that sums over j, its operands and its answer with their letters in these orders."""
    letters = ["".join(text[place] for place in order) for text, order in zip(("bij", "ijk", "bik"), (one, two, three))]
    equation = f"{letters[0]},{letters[1]}->{letters[2]}"

    def form(a: torch.Tensor, b: torch.Tensor) -> Any:
        x, y = leaf(a.permute(*one)), leaf(b.permute(*two))
        value = torch.einsum(equation, x, y)
        ramp = torch.arange(value.numel(), device=a.device, dtype=a.dtype).reshape(value.shape)
        return backward(value, x, y, grad=ramp / 8)

    return form


_table(
    "einsum",
    {
        f"{one}-{two}": _summed(one, two, _ORDERS[number % 6])
        for number, (one, two) in enumerate(itertools.product(_ORDERS, _ORDERS))
    },
    lambda d: (d.normal(2, 3 + d.k, 4), d.normal(3 + d.k, 4, 5)),
    terms=256,
)
