"""Regressions in matrix products: permuted operands, limits of width and depth, stale memory."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases

cases = Cases("regressions")


@cases.case(
    "issue-78511", issue="78511", make=lambda d: (d.normal(8 + d.k, 20, 768), d.normal(8 + d.k, 20, 768)), terms=64
)
def _scores_of_permuted_keys(q: Any, k: Any) -> Any:
    heads = (q.shape[0], 20, 12, 64)
    query, key = (x.view(heads).permute(0, 2, 1, 3) for x in (q, k))
    return torch.matmul(query, key.transpose(-1, -2)), torch.matmul(query, key.transpose(-1, -2).contiguous())


def _columns(rows: int) -> Any:
    return lambda d: (d.normal(rows + d.k, 1), d.normal(1, 32769))


cases.add("issue-116769", lambda a, b: (a @ b, torch.mm(a, b)), issue="116769", make=_columns(17))
cases.add(
    "issue-116769-reported",
    lambda a, b: torch.mm(a, b),
    issue="116769",
    make=_columns(1025),
    full=True,
    memory_bytes=2 << 30,
    states=("fresh", "again"),
)


def _zeros_by_ones(batch: int) -> Any:
    return lambda d: (torch.zeros(batch + d.k, 9, 1), torch.ones(1, 32769))


cases.add("issue-111634", lambda a, b: torch.matmul(a, b), issue="111634", make=_zeros_by_ones(5))
cases.add(
    "issue-111634-reported",
    lambda a, b: torch.matmul(a, b),
    issue="111634",
    make=_zeros_by_ones(911),
    full=True,
    memory_bytes=12 << 30,
    states=("fresh",),
    limit_seconds=300,
)


def _deep(depth: int) -> Any:
    return lambda d: (
        d.normal(2, 16 + d.k, depth, scale=0.1),
        d.normal(2, depth, 16, scale=0.1),
        d.normal(2, 16 + d.k, 16),
    )


def _deep_products(a: Any, b: Any, c: Any) -> Any:
    return (
        torch.bmm(a, b),
        torch.baddbmm(c, a, b),
        torch.addbmm(c[0], a, b),
        torch.matmul(a, b),
        torch.einsum("bij,bjk->bik", a, b),
        torch.mm(a[0], b[0]),
    )


for _depth in (32767, 32768, 32769):
    cases.add(
        f"issue-195163-{_depth}",
        _deep_products,
        issue="195163",
        make=_deep(_depth),
        terms=2 * _depth,
        states=("fresh", "other"),
    )


@cases.case(
    "issue-193487",
    issue="193487",
    make=lambda d: tuple((d.normal(n + d.k, 25), d.normal(n + d.k, 25)) for n in (7, 31, 50, 101)),
    terms=101,
)
def _products_after_other_allocations(run: Any, *pairs: Any) -> Any:
    answers = []
    for x, y in pairs:
        blocks = [torch.full((size,), 1e3, device=run.device) for size in (625, 1251, 17)]
        del blocks
        answers.append((torch.mm(x.t(), y), x.T @ y, torch.matmul(x.t(), y.clone())))
    return answers


@cases.case(
    "issue-197636",
    issue="197636",
    make=lambda d: (d.normal(65537, 64, 256), d.normal(65537, 64, 256)),
    terms=64,
    full=True,
    memory_bytes=90 << 30,
    states=("fresh",),
    limit_seconds=900,
)
def _batches_past_two_to_the_sixteen(a: Any, b: Any) -> Any:
    y = torch.bmm(a.transpose(1, 2), b)
    return y[0], y[-1], y[65535]


@cases.case(
    "issue-141909",
    issue="141909",
    make=lambda d: (d.normal(1, 72250, 1), d.normal(1, 1, 72250)),
    full=True,
    memory_bytes=80 << 30,
    states=("fresh",),
    limit_seconds=900,
)
def _output_past_two_to_the_thirty_two(a: Any, b: Any) -> Any:
    y = torch.bmm(a, b)
    return y[0, :3], y[0, -3:]
