"""What shows at one rank, dtype, number, layout or count of calls."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


# Ranks.
# https://github.com/pytorch/pytorch/issues/154881: cumsum aborts when more than four dimensions follow
# https://github.com/pytorch/pytorch/issues/92329: cumsum with a negative dim raises
@cases.case(
    "issue-154881",
    issues=("154881", "92329"),
    make=lambda d: (d.normal(2, 3, 2, 3, 4), d.normal(2, 2, 3, 2, 2, 3)),
    terms=8,
)
def _running_sums_of_many_dimensions(x: Any, y: Any) -> Any:
    return [x.cumsum(dim) for dim in range(-5, 5)], [y.cumsum(dim) for dim in range(6)], x.cumprod(0), y.cumprod(1)


# https://github.com/pytorch/pytorch/issues/187017: nanmedian aborts for more than four dimensions with dim=0
@cases.case("issue-187017", issue="187017", make=lambda d: d.distinct(3, 2, 3, 2, 2), may_be_missing=True)
def _medians_of_many_dimensions(x: Any) -> Any:
    return [x.nanmedian(dim).values for dim in range(5)], [x.median(dim).values for dim in range(5)], x.sort(0).values


# https://github.com/pytorch/pytorch/issues/132732: sum over a dimension of a five-dimensional tensor is wrong
@cases.case(
    "issue-132732", issue="132732", make=lambda d: (d.normal(1, 2, 1, 1, 1), d.normal(2, 3, 2, 3 + d.k, 2)), terms=8
)
def _sums_of_five_dimensions(x: Any, y: Any) -> Any:
    return [[one.sum(dim), one.mean(dim), one.amax(dim), one.sum((dim, 0))] for one in (x, y) for dim in range(-4, 0)]


# https://github.com/pytorch/pytorch/issues/121439: a copy of a bool tensor with more than five dimensions is wrong
@cases.case("issue-121439", issue="121439", make=lambda d: (d.bools(2, 3, 2, 2, 3, 2), d.bools(2, 2, 2, 2, 2, 2, 2)))
def _bools_of_six_dimensions(x: Any, y: Any) -> Any:
    return (
        x.permute(5, 4, 3, 2, 1, 0).contiguous(),
        torch.zeros_like(x).copy_(x),
        y.clone(),
        y.permute(6, 0, 5, 1, 4, 2, 3) + 0,
        x.float(),
    )


# Integers and bools.
# https://github.com/pytorch/pytorch/issues/179415: sum into uint8 saturates instead of wrapping
@cases.case(
    "issue-179415",
    issue="179415",
    make=lambda d: (d.integers(100, 200, 7, 9, dtype=torch.uint8), d.integers(90, 120, 9, dtype=torch.int8)),
)
def _sums_wrap(x: Any, y: Any) -> Any:
    return (
        x.sum(dtype=torch.uint8),
        x.sum(0, dtype=torch.uint8),
        y.sum(dtype=torch.int8),
        x.sum(),
        y.sum(),
        x.prod(dtype=torch.uint8),
    )


# https://github.com/pytorch/pytorch/issues/96614: cumsum of bools overflows past 127
@cases.case("issue-96614", issue="96614", make=lambda d: (torch.ones(300, dtype=torch.bool), d.bools(3, 400)))
def _running_sums_of_bools(x: Any, y: Any) -> Any:
    return x.cumsum(0), y.cumsum(1), x.sum(), y.sum(1), y.int().cumsum(-1), x.to(torch.uint8).sum()


# https://github.com/pytorch/pytorch/issues/79835: int32 tensors with a 64-bit number
@cases.case(
    "issue-79835",
    issue="79835",
    make=lambda d: (d.integers(-9, 9, 5, dtype=torch.int32), torch.tensor(7), torch.tensor(-3, dtype=torch.int16)),
)
def _integers_with_broader_numbers(x: Any, wide: Any, narrow: Any) -> Any:
    return (
        x + wide,
        wide * x,
        x - narrow,
        x.short() + wide,
        x.clone().mul_(wide),
        x == wide,
        torch.where(x > 0, x, wide),
    )


# https://github.com/pytorch/pytorch/issues/101566: A == b of two int64 columns (n x 1: the classes of a batch) is
# false everywhere
@cases.case("issue-101566", issue="101566", make=lambda d: (d.integers(0, 3, 9 + d.k, 1), d.integers(0, 3, 9 + d.k, 1)))
def _columns_of_classes_are_compared(x: Any, y: Any) -> Any:
    return x == y, (x == y).sum(), x != y, x == x.clone()


# https://github.com/pytorch/pytorch/issues/80850: stack of bools gives False
@cases.case("issue-80850", issue="80850", make=lambda d: (d.bools(4), d.bools(4), d.bools(1)))
def _bools_are_joined(x: Any, y: Any, z: Any) -> Any:
    return (
        torch.stack([x, y]),
        torch.cat([x, y, z]),
        torch.stack([z, z]),
        torch.hstack([x, z]),
        torch.cat([x[1:], y[::2]]),
    )


# Scalars.
# https://github.com/pytorch/pytorch/issues/167767: clamp with limits below 1e-6 takes the first limit it was called
# with
@cases.case("issue-167767", issue="167767", make=lambda d: (torch.zeros(3), d.normal(3)), states=("fresh", "again"))
def _limits_that_are_nearly_zero(x: Any, y: Any) -> Any:
    return [
        [one.clamp(min=least), one.clamp(max=-least), one.clamp_min(least)]
        for least in (0.0, 1e-7, 3e-7, 1e-8, 1e-6)
        for one in (x, y)
    ]


# https://github.com/pytorch/pytorch/issues/82543: 1.0 - x is rounded to whole numbers
@cases.case("issue-82543", issue="82543", make=lambda d: d.uniform(0, 1, 7))
def _subtraction_from_whole_numbers(x: Any) -> Any:
    return 1.0 - x, 1 - x, 0.99 - x, torch.rsub(x, 2), torch.rsub(x, 2.0, alpha=3), 2.0 + x, x - 1.0


# https://github.com/pytorch/pytorch/issues/190476: nextafter of bfloat16 gives its input
# https://github.com/pytorch/pytorch/issues/190740: nextafter from zero in bfloat16
@cases.case("issue-190476", issues=("190476", "190740"), make=lambda d: (d.normal(9), d.normal(9)))
def _next_number(x: Any, y: Any) -> Any:
    answers = []
    for dtype, bits in ((torch.float32, torch.int32), (torch.float16, torch.int16), (torch.bfloat16, torch.int16)):
        low, high = x.to(dtype), y.to(dtype)
        try:
            answers.append(torch.nextafter(low, high).view(bits))
        except (RuntimeError, NotImplementedError):  # not for this dtype here
            answers.append(low.view(bits))
    return answers


# https://github.com/pytorch/pytorch/issues/101946: softplus of float16 with its own beta and threshold raises
@cases.case(
    "issue-101946",
    issue="101946",
    make=lambda d: [d.normal(20, dtype=one) for one in (torch.float16, torch.bfloat16)],
    factor=16,
)
def _softplus_in_half(xs: Any) -> Any:
    return [backward(F.softplus(start, 3, 0.2), start) for start in map(leaf, xs)], [F.softplus(x, 2.0) for x in xs]


# Views.
# https://github.com/pytorch/pytorch/issues/91065: the product of two pieces of one storage takes one piece two times
@cases.case("issue-91065", issue="91065", make=lambda d: d.normal(5 + d.k))
def _pieces_of_one_storage(x: Any) -> Any:
    parts, halves = x.unsafe_chunk(4, 0), x[:4].chunk(2)
    return (
        parts[0] * parts[2],
        halves[0] * halves[1],
        halves[1] * halves[0],
        x[1:3] * x[2:4],
        x[:2] + x[2:4],
        x[0] * x[3],
    )


# https://github.com/pytorch/pytorch/issues/124029: rand_like of a permuted tensor is zero
@cases.case("issue-124029", issue="124029", make=lambda d: d.normal(30, 20, 2), since="2.0")
def _random_like_a_permuted_tensor(x: Any) -> Any:
    answers = []
    for like in (x.permute(2, 0, 1), x[:, ::2], x.transpose(0, 1)):
        for draw in (torch.rand_like, torch.randn_like):
            drawn = draw(like)
            answers += [
                tuple(drawn.shape),
                bool(drawn.std() > 0.2),
                bool((drawn == 0).sum() < 5),
                bool(drawn.abs().max() < 9),
            ]
    return answers


# https://github.com/pytorch/pytorch/issues/150967: where reads a condition that is not contiguous in storage order
@cases.case(
    "issue-150967", issue="150967", make=lambda d: (d.bools(4, 3 + d.k), d.normal(3 + d.k, 4), d.normal(3 + d.k, 4))
)
def _condition_in_another_layout(mask: Any, x: Any, y: Any) -> Any:
    return (
        torch.where(mask.t(), x, y),
        torch.where(mask.t(), x, 0.5),
        x.masked_fill(mask.t(), 2),
        torch.where(mask.t(), 1.0, y),
    )


# https://github.com/pytorch/pytorch/issues/87348: clamp reads transposed limits in storage order
# https://github.com/pytorch/pytorch/issues/160734: clamp refuses limits with more dimensions than the input
@cases.case("issue-87348", issues=("87348", "160734"), make=lambda d: (d.normal(4, 4), d.normal(4, 4), d.normal(4, 4)))
def _limits_in_another_layout(x: Any, low: Any, high: Any) -> Any:
    return (
        torch.clamp(x, low.t(), high.t() + 1),
        x.clamp(min=low.t()),
        x.clamp(max=high[None].expand(2, 4, 4)),
        torch.clamp(x[0], low),
    )


# https://github.com/pytorch/pytorch/issues/145203: bitwise operators into an output that is not contiguous are lost
@cases.case(
    "issue-145203", issue="145203", make=lambda d: (d.integers(0, 99, 4, 3 + d.k), d.integers(0, 99, 3 + d.k, 4))
)
def _bits_into_another_layout(x: Any, y: Any) -> Any:
    written = [getattr(x.clone().t(), name)(y) for name in ("bitwise_and_", "bitwise_or_", "bitwise_xor_")]
    targets = [torch.zeros_like(x).t() for _ in range(3)]
    for name, target in zip(("bitwise_and", "bitwise_or", "bitwise_xor"), targets):
        getattr(torch, name)(y, 5 + y, out=target)
    return written, targets


# Counts.
# https://github.com/pytorch/pytorch/issues/181867: selection by a bool mask gives other sizes on repeated calls
@cases.case("issue-181867", issue="181867", make=lambda d: (d.normal(300), d.bools(300)), states=("fresh",))
def _selection_again_and_again(x: Any, mask: Any) -> Any:
    return (
        [x[mask] for _ in range(12)],
        [x.masked_select(mask) for _ in range(3)],
        mask.nonzero(),
        x[mask].shape[0] == mask.sum().item(),
    )


# https://github.com/pytorch/pytorch/issues/134431: nll_loss of an empty tensor raises
@cases.case("issue-134431", issue="134431", make=lambda d: (torch.zeros(2, 3, 0, 7), torch.zeros(0, 3)), terms=4)
def _losses_of_nothing(x: Any, y: Any) -> Any:
    none = torch.zeros(2, 0, 7, dtype=torch.long, device=x.device)
    return (
        [F.nll_loss(x, none, reduction=how) for how in ("mean", "sum", "none")],
        F.nll_loss(y, none[0, :, 0], reduction="sum"),
        F.mse_loss(y, y, reduction="sum"),
    )


# https://github.com/pytorch/pytorch/issues/195076: histogram counts what lies just outside of the range
@cases.case(
    "issue-195076",
    issue="195076",
    make=lambda d: torch.tensor([-1e-7, -3e-6, 0.5, 1.5, 2.0, 2.000001, 2.1, -0.5]),
    may_be_missing=True,
    since="1.13",
)
def _counts_within_a_range(x: Any) -> Any:
    return torch.histogram(x.float() if x.dtype != torch.float64 else x, bins=2, range=(0.0, 2.0)).hist, x.clamp(
        0, 2
    ).histc(4, 0, 2)
