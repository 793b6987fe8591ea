"""Limits of place and shape: what is assigned to what, sides of one, operands without elements, paddings."""

from __future__ import annotations

import itertools
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf
from device_suite.answers import attempt
from device_suite.limits import ENDS, HALVES, ONCE, add_table, assigned

cases = Cases("conditions")


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
            answers[f"{place}-{name}"] = attempt(lambda index=index, value=value: assigned(base, index, value(v)))
        # By a mask, another dtype is the CPU's alone: it fills (aten/src/ATen/native/TensorAdvancedIndexing.cpp,
        # `canDispatchToMaskedFill`), and CUDA refuses.
        for how, mask in () if name == "other" else (("mask", base > 0), ("rows", base[:, 0] > 0)):
            answers[f"{how}-{name}"] = attempt(lambda mask=mask, value=value: assigned(base, mask, value(v)))
        answers[f"view-{name}"] = attempt(lambda value=value: assigned(base.t(), slice(1, 4), value(v)))
        answers[f"line-{name}"] = attempt(lambda value=value: assigned(base[1], slice(None), value(v)))
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
add_table(cases, "nothing", _EMPTY, lambda d: (d.distinct(5 + d.k, 4) / 8, d.normal(0, 4)))

# One dimension, two and more, transformed along each.
add_table(
    cases,
    "transformed",
    {
        name: lambda x, name=name: [getattr(torch.fft, name)(one) for one in (x[0], x, x[None], x[:, 0], x[:, ::2])]
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
    },
    lambda d: (torch.complex(d.normal(6, 9 + d.k), d.normal(6, 9 + d.k)).real.contiguous(),),
)
# Numbers of places past 2**15 and 2**16, and draws among as many.
add_table(
    cases,
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
add_table(
    cases,
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
    "written": lambda x, i: [assigned(x, i, 1), x.index_put((i,), x[1]), x.index_put((i,), x[1], accumulate=True)],
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
    add_table(
        cases,
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
    add_table(
        cases,
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


add_table(
    cases,
    "einsum",
    {
        f"{one}-{two}": _summed(one, two, _ORDERS[number % 6])
        for number, (one, two) in enumerate(itertools.product(_ORDERS, _ORDERS))
    },
    lambda d: (d.normal(2, 3 + d.k, 4), d.normal(3 + d.k, 4, 5)),
    terms=256,
)
