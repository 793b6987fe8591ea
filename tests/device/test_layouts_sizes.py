"""Sizes past the edges of kernels: tiles, thread groups, 2**16."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("layouts")
TWICE = ("fresh", "polluted")


def _pair(rows: int, depth: int, columns: int, dtype: torch.dtype) -> Any:
    return lambda d: (d.normal(rows + d.k, depth, dtype=dtype), d.normal(depth, columns, dtype=dtype))


def _products(a: Any, b: Any) -> Any:
    return [
        torch.mm(a, b),
        torch.matmul(a, b.t().contiguous().t()),
        F.linear(a, b.t()),
        torch.mv(a, b[:, 0]),
        torch.mm(a.t().contiguous().t(), b),
    ]


for _sizes in ((33, 65, 129), (1030, 70, 35), (17, 1, 1025), (1, 257, 3), (2, 4099, 2), (129, 31, 1)):
    for _dtype in (torch.float32, torch.float16, torch.bfloat16):
        cases.add(
            f"layout-size-mm-{'x'.join(map(str, _sizes))}-{str(_dtype)[6:]}",
            _products,
            make=_pair(*_sizes, _dtype),
            terms=_sizes[1],
            states=TWICE,
        )


@cases.case(
    "layout-size-bmm",
    make=lambda d: (d.normal(130 + d.k, 5, 17), d.normal(130 + d.k, 17, 9), d.normal(130 + d.k, 5, 9)),
    terms=130,
)
def _many_batches(a: Any, b: Any, c: Any) -> Any:
    first, second = leaf(a), leaf(b)
    y = torch.bmm(first, second)
    y.backward(c)
    return (
        y,
        first.grad,
        second.grad,
        torch.baddbmm(c, a, b),
        torch.addbmm(c[0], a, b),
        torch.einsum("bij,bjk->ik", a, b),
    )


@cases.case(
    "layout-size-mm-backward",
    make=lambda d: (d.normal(70 + d.k, 257), d.normal(130, 257), d.normal(130), d.normal(70 + d.k, 130)),
    terms=257,
)
def _linear_of_odd_sizes(x: Any, w: Any, b: Any, grad: Any) -> Any:
    start, weight, bias = leaf(x), leaf(w), leaf(b)
    return backward(F.linear(start, weight, bias), start, weight, bias, grad=grad)


@cases.case("layout-size-rows", make=lambda d: d.distinct(3, 5003 + d.k) / 128, states=TWICE, terms=5003)
def _long_rows(x: Any) -> Any:
    return (
        *torch.sort(x, -1),
        *torch.topk(x, 40),
        *torch.sort(x, descending=True),
        x.argsort()[:, -9:],
        *torch.kthvalue(x, 2500),
        *x.max(1),
        *x.median(1),
        *torch.cummax(x, 1),
        x.cumsum(1),
        torch.logcumsumexp(x / 40, 1),
        x.argmax(1),
        x.amin(1),
        x.t().argmin(0),
        *x.t().sort(0),
        x.sum(1),
        x.mean(1),
    )


@cases.case(
    "layout-size-softmax",
    make=lambda d: (d.normal(3, 4099 + d.k), d.normal(3, 4099 + d.k)),
    states=TWICE,
    terms=4099,
    factor=8,
)
def _long_softmax(x: Any, grad: Any) -> Any:
    answers = []
    for function in (F.softmax, F.log_softmax):
        start = leaf(x)
        answers.append(backward(function(start, dim=-1), start, grad=grad))
    return (
        answers,
        F.layer_norm(x, x.shape[-1:]),
        x.var(-1),
        torch.logsumexp(x, -1),
        x.norm(dim=-1),
        F.normalize(x),
        F.cross_entropy(x, x.argmax(1)),
    )


for _dtype in (torch.float16, torch.bfloat16):

    @cases.case(
        f"layout-size-half-{str(_dtype)[6:]}",
        make=lambda d, dtype=_dtype: d.normal(3, 2051 + d.k, dtype=dtype),
        states=TWICE,
        terms=2051,
    )
    def _half_rows(x: Any) -> Any:
        ones = torch.ones_like(x)
        return (
            ones.sum(1),
            ones.mean(1),
            (ones * 16).mean(1),
            x.sum(1),
            x.softmax(-1),
            F.layer_norm(x, x.shape[-1:]),
            x.amax(1),
            (ones * 200).norm(dim=1),
            torch.matmul(ones, ones.t()),
            x.var(1),
        )


@cases.case(
    "layout-size-columns", make=lambda d: (d.normal(4099 + d.k, 3), d.normal(3)), states=TWICE, terms=4099, factor=8
)
def _tall_columns(x: Any, w: Any) -> Any:
    start, weight = leaf(x), leaf(w)
    y = F.layer_norm(start, (3,), weight, weight)
    return (
        backward(y * y, start, weight),
        x.sum(0),
        x.softmax(0),
        x.cumsum(0),
        x.std(0),
        x.argmax(0),
        x.prod(0) * 0,
        x.sort(0)[0],
        (x > 0).sum(0),
    )


@cases.case(
    "layout-size-images",
    make=lambda d: (
        d.normal(2, 130, 9, 7 + d.k),
        d.normal(33, 130, 3, 3, scale=0.1),
        d.normal(130, 1, 3, 3),
        d.normal(130),
        d.normal(33, 130, 1, 1),
    ),
    states=TWICE,
    terms=1170,
)
def _many_channels(x: Any, w: Any, deep: Any, b: Any, thin: Any) -> Any:
    start, weight = leaf(x), leaf(w)
    answers = backward(F.conv2d(start, weight, padding=1), start, weight)
    return (
        answers,
        F.conv2d(x, deep, b, groups=130),
        F.conv2d(x, thin),
        F.group_norm(x, 13, b, b),
        F.batch_norm(x, None, None, b, b, training=True),
    )


@cases.case(
    "layout-size-wide-image",
    make=lambda d: (d.normal(1, 2, 3, 1030 + d.k), d.normal(3, 2, 3, 5), d.normal(3)),
    states=TWICE,
    terms=64,
)
def _wide_image(x: Any, w: Any, b: Any) -> Any:
    line = x[:, :, 0]
    return (
        F.conv2d(x, w, b, padding=2),
        F.conv1d(line, w[:, :, 0], b),
        F.max_pool2d(x, 2),
        F.avg_pool1d(line, 7),
        F.interpolate(x, scale_factor=2),
        F.pad(x, (3, 2, 1, 0)),
        F.conv_transpose1d(line, w[:2, :, 0].transpose(0, 1)),
        F.unfold(x, 3)[:, :, -5:],
    )


def _attention(q: Any, k: Any, v: Any) -> Any:
    return (
        F.scaled_dot_product_attention(q, k, v),
        F.scaled_dot_product_attention(q[..., :5, :], k, v),
        F.scaled_dot_product_attention(q, q, q, is_causal=True),
    )


for _length, _width in ((130, 80), (33, 128), (1030, 64), (1, 64)):
    for _dtype in (torch.float32, torch.float16):
        cases.add(
            f"layout-size-attention-{_length}x{_width}-{str(_dtype)[6:]}",
            _attention,
            make=lambda d, n=_length, w=_width, dtype=_dtype: (
                d.normal(1, 2, min(n, 257), w, dtype=dtype),
                d.normal(1, 2, n + d.k, w, dtype=dtype),
                d.normal(1, 2, n + d.k, w, dtype=dtype),
            ),
            terms=max(_length, _width),
            states=TWICE,
            since="2.0",
        )


@cases.case("layout-size-many", make=lambda d: tuple(d.normal(2 + n % 3, 3 + d.k) for n in range(130)), states=TWICE)
def _many_operands(*rows: Any) -> Any:
    return torch.cat(rows), torch.stack([row[0] for row in rows], 1), torch.stack([row[1] for row in rows[::7]])


@cases.case(
    "layout-size-table",
    make=lambda d: (d.normal(70001 + d.k, 2), d.integers(0, 70001, 300), d.normal(300, 2)),
    states=TWICE,
    deterministic=False,
    terms=16,
)
def _large_table(w: Any, index: Any, grad: Any) -> Any:
    weight = leaf(w)
    y = F.embedding(index, weight)
    y.backward(grad)
    counted = torch.zeros(70001, dtype=torch.int64, device=w.device)
    counted.index_put_((index,), torch.ones_like(index), accumulate=True)
    return (
        y,
        weight.grad[index],
        weight.grad.sum(0),
        counted[index],
        torch.bincount(index, minlength=70001)[index],
        torch.unique(index),
        w[index].sum(0),
    )
