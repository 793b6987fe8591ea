"""Regressions in embeddings and losses: shapes of indices, padding, ignored targets, scaled gradients."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


def _table(d: Any, dtype: torch.dtype = torch.float32) -> Any:
    return d.normal(10, 4 + d.k, dtype=dtype)


# https://github.com/pytorch/pytorch/issues/82809: embedding backward fails with a 0-dim index
@cases.case(
    "issue-82809",
    issue="82809",
    terms=8,
    make=lambda d: (_table(d), torch.tensor(5), d.integers(0, 10, 3), d.integers(0, 10, 2, 3)),
)
def _indices_of_every_rank(w: Any, *indices: Any) -> Any:
    answers = []
    for index in indices:
        weight = leaf(w)
        y = F.embedding(index, weight)
        answers.append(backward(y * y, weight))
    return answers


# https://github.com/pytorch/pytorch/issues/101198: embedding backward uses a cached graph from another weight shape
@cases.case(
    "issue-101198",
    issue="101198",
    terms=8,
    make=lambda d: (
        d.normal(10, 36 + d.k),
        d.normal(10, 48 + d.k),
        d.integers(0, 10, 2, 5),
        d.normal(2, 5, 36 + d.k),
        d.normal(2, 5, 48 + d.k),
    ),
)
def _two_tables_of_different_width(a: Any, b: Any, index: Any, grad_a: Any, grad_b: Any) -> Any:
    first, second = leaf(a), leaf(b)
    return backward(F.embedding(index, first), first, grad=grad_a), backward(
        F.embedding(index, second), second, grad=grad_b
    )


# https://github.com/pytorch/pytorch/issues/94950: embedding backward with fp16
for _dtype in (torch.float16, torch.bfloat16, torch.float32):

    @cases.case(
        f"issue-94950-{str(_dtype)[6:]}",
        issue="94950",
        terms=16,
        deterministic=False,
        make=lambda d, dtype=_dtype: (
            _table(d, dtype),
            torch.tensor([1, 1, 3, 1, 7, 3]),
            d.normal(6, 4 + d.k, dtype=dtype),
        ),
    )
    def _repeated_indices_add_up(w: Any, index: Any, grad: Any) -> Any:
        weight = leaf(w)
        return backward(F.embedding(index, weight), weight, grad=grad)


# https://github.com/pytorch/pytorch/issues/185119: embedding backward silently ignores padding_idx and
# scale_grad_by_freq
@cases.case(
    "issue-185119",
    issue="185119",
    terms=16,
    make=lambda d: (_table(d), torch.tensor([[0, 1, 2], [2, 0, 2 + d.k]]), d.normal(2, 3, 4 + d.k)),
)
def _padding_row_gets_no_gradient(run: Any, w: Any, index: Any, grad: Any) -> Any:
    answers = []
    for padding, by_frequency in ((0, False), (2, False), (None, True), (0, True), (-10, False)):
        weight = leaf(w)
        y = F.embedding(index, weight, padding_idx=padding, scale_grad_by_freq=by_frequency)
        answers.append(backward(y, weight, grad=grad))
    layer = torch.nn.Embedding(10, w.shape[1], padding_idx=0).to(run.device, run.cast(w.dtype))
    with torch.no_grad():
        layer.weight.copy_(w)
    answers.append(backward(layer(index), layer.weight, grad=grad))
    return answers


# https://github.com/pytorch/pytorch/issues/188756: F.embedding/index_select return zero rows when source > 2**31
# elements
@cases.case(
    "issue-188756",
    issue="188756",
    make=lambda d: torch.zeros(1, dtype=torch.int8),
    full=True,
    memory_bytes=14 << 30,
    states=("fresh",),
    limit_seconds=600,
)
def _rows_past_two_to_the_thirty_one(run: Any, x: Any) -> Any:
    rows = (1 << 31) // 1024 + 8
    table = torch.ones(rows, 1024, dtype=torch.int8, device=run.device)
    index = torch.tensor([0, 1, rows - 2, rows - 1], device=run.device)
    return torch.index_select(table, 0, index), F.embedding(index, table.to(torch.float16))


def _classes(d: Any) -> Any:
    return d.normal(6 + d.k, 5), d.integers(0, 5, 6 + d.k), d.normal(6 + d.k), d.normal(6 + d.k, 5)


# https://github.com/pytorch/pytorch/issues/94226: nll_loss/cross_entropy/smooth_l1 backward ignore grad_output
@cases.case("issue-94226", issue="94226", make=_classes, terms=32)
def _losses_are_scaled(x: Any, target: Any, grad: Any, other: Any) -> Any:
    answers = []
    for reduction in ("mean", "none"):
        for loss in (F.cross_entropy, F.nll_loss):
            start = leaf(x)
            lost = loss(start, target, reduction=reduction)
            answers.append(backward(lost * 7.0, start, grad=grad if reduction == "none" else None))
        for loss in (F.smooth_l1_loss, F.mse_loss, F.l1_loss, F.huber_loss):
            start = leaf(x)
            lost = loss(start, other, reduction=reduction)
            answers.append(
                backward(lost * 7.0, start, grad=grad[:, None].expand_as(x) if reduction == "none" else None)
            )
    return answers


def _ignored(d: Any) -> Any:
    target = d.integers(0, 5, 10 + d.k)
    target[::3] = -100
    other = target.clone()
    other[::3] = -1
    image = d.integers(0, 5, 2, 3, 4)
    image[0, :, ::2] = -100
    return d.normal(10 + d.k, 5), target, other, d.uniform(0.5, 2, 5), d.normal(2, 5, 3, 4), image


# https://github.com/pytorch/pytorch/issues/108148: cross_entropy does not honour ignore_index=-100 / out of range
# targets
@cases.case("issue-108148", issue="108148", make=_ignored, terms=32)
def _ignored_targets_count_for_nothing(x: Any, target: Any, other: Any, weight: Any, maps: Any, image: Any) -> Any:
    answers = []
    for given, wanted, ignored in ((x, target, -100), (x, other, -1), (maps, image, -100)):
        for reduction, weights in (("mean", weight), ("sum", None), ("none", None)):
            start = leaf(given)
            lost = F.cross_entropy(start, wanted, weight=weights, ignore_index=ignored, reduction=reduction)
            answers.append(backward(lost, start))
    answers.append(F.cross_entropy(x, target, label_smoothing=0.1))
    return answers


# https://github.com/pytorch/pytorch/issues/90479: cat with an empty tensor asserts
@cases.case("issue-90479-nll", issue="90479", make=lambda d: (d.normal(0, 5 + d.k), d.integers(0, 5, 0)))
def _loss_of_nothing(x: Any, target: Any) -> Any:
    return F.nll_loss(x, target, reduction="sum"), F.nll_loss(x, target, reduction="none"), F.nll_loss(x, target)
