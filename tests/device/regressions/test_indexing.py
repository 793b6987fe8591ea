"""Regressions in indexing, scattering, masking and sorting."""

from __future__ import annotations

from typing import Any

import torch

from engine import Cases

cases = Cases("regressions")


# https://github.com/pytorch/pytorch/issues/131285: masked_fill_ in place lost on non-contiguous tensor (GroundingDINO
# attention mask)
@cases.case(
    "issue-131285",
    issue="131285",
    make=lambda d: (
        d.normal(8, 7 + d.k, 5),
        d.uniform(0, 1, 8, 7 + d.k, 1) > 0.5,
        d.normal(5, 8, 7 + d.k),
        d.bools(7 + d.k, 8, 1),
    ),
)
def _masks_are_filled_in_place(x: Any, mask: Any, y: Any, other: Any) -> Any:
    view = x.transpose(1, 2)
    view.masked_fill_(mask.transpose(1, 2), -1e4)
    moved = y.permute(1, 2, 0)
    moved.masked_fill_(other.transpose(0, 1), 7.0)
    columns = x[:, :, 1:3]
    columns.masked_fill_(mask.expand(-1, -1, 2), 3.0)
    return view, moved, x.masked_fill(mask, 0.5), y.permute(1, 2, 0).masked_fill(other.transpose(0, 1), -2.0)


# https://github.com/pytorch/pytorch/issues/115152: scatter_ into zeros_like(permuted) stays zero
@cases.case("issue-115152", issue="115152", make=lambda d: d.distinct(2, 20, 10 + d.k) / 7)
def _scatter_into_a_permuted_copy(x: Any) -> Any:
    view = x.permute(0, 2, 1)
    values, index = torch.topk(view, 3, dim=-1)
    kept = torch.zeros_like(view)
    kept.scatter_(-1, index, values)
    added = torch.zeros_like(view)
    added.scatter_add_(-1, index, values)
    return values, index, kept, added, torch.zeros_like(view).scatter(-1, index, 1.0)


# https://github.com/pytorch/pytorch/issues/175191: scatter_ reads non-contiguous src/index in storage order (MPS and
# CUDA)
@cases.case(
    "issue-175191",
    issue="175191",
    make=lambda d: (d.normal(5, 4 + d.k), torch.stack([d.permutation(6) for _ in range(5)]), d.normal(5, 6)),
)
def _scatter_of_a_transposed_source(x: Any, index: Any, target: Any) -> Any:
    source, places = x.t(), index[:, : x.shape[1]].t()
    columns = target.t()
    return (
        torch.zeros(6, 5, dtype=x.dtype, device=x.device).scatter_(0, places, source),
        columns.scatter_(0, places, source),
        columns.scatter_add_(0, places, source),
        columns.gather(0, places),
    )


# The controls: what the order of equal things leaves open must not be called wrong. Only what is defined is compared.
# https://github.com/pytorch/pytorch/issues/166237: index_copy with duplicate indices differs
@cases.case(
    "issue-166237",
    issue="166237",
    make=lambda d: (d.normal(4, 3 + d.k), torch.tensor([1, 0, 1, 3]), d.normal(4, 3 + d.k)),
)
def _duplicate_indices_leave_the_order_open(x: Any, index: Any, source: Any) -> Any:
    copied = x.index_copy(0, index, source)
    one_of = (copied[1] == source[0]) | (copied[1] == source[2])
    scattered = x.scatter(0, index[:, None].expand(-1, x.shape[1]), source)
    either = (scattered[1] == source[0]) | (scattered[1] == source[2])
    unique = x.index_copy(0, torch.tensor([2, 0, 1, 3], device=x.device), source)
    return copied[[0, 2, 3]], bool(one_of.all()), scattered[[0, 2, 3]], bool(either.all()), unique


@cases.case("control-ties", make=lambda d: torch.tensor([[2.0, 1.0, 2.0, 1.0, 3.0 + d.k]]))
def _ties_are_compared_by_value(x: Any) -> Any:
    values, index = torch.sort(x, dim=-1)
    order = torch.argsort(x, dim=-1)
    top, where = torch.topk(x, 3)
    return (
        values,
        x.gather(-1, index),
        x.gather(-1, order),
        top,
        x.gather(-1, where),
        torch.sort(x, dim=-1, stable=True)[1],
    )


@cases.check("control-empty")
def _empty_memory_has_a_form_and_no_values(bench: Any) -> None:
    with bench.device_run() as run:
        for made in (torch.empty(3, 4, device=run.device), torch.empty_like(torch.zeros(3, 4, device=run.device))):
            assert tuple(made.shape) == (3, 4), f"empty has shape {tuple(made.shape)}"
            assert made.device.type == run.device.type, f"empty lies on {made.device}"


# https://github.com/pytorch/pytorch/issues/160845: index_add loses imaginary part of complex64
@cases.case(
    "issue-160845",
    issue="160845",
    deterministic=False,
    terms=400,
    make=lambda d: (torch.zeros(4 + d.k, dtype=torch.complex64), d.of(torch.complex64, 400), d.integers(0, 4, 400)),
)
def _complex_parts_are_both_added(x: Any, source: Any, index: Any) -> Any:
    x.index_add_(0, index, source)
    return x


# https://github.com/pytorch/pytorch/issues/121557: topk.indices + scatter_ assertion
@cases.case("issue-121557", issue="121557", make=lambda d: d.distinct(10, 100, 1 + d.k) / 3)
def _topk_then_scatter(x: Any) -> Any:
    values, index = x.topk(5, dim=1)
    return torch.zeros_like(x).scatter_(1, index, 1.0), values


# https://github.com/pytorch/pytorch/issues/195595: scatter/index_put raise negative index on 3-8 M element tensors
@cases.case(
    "issue-195595",
    issue="195595",
    make=lambda d: d.bools(1 << 22),
    full=True,
    memory_bytes=1 << 30,
    states=("fresh", "again"),
)
def _positions_there_and_back(mask: Any) -> Any:
    places = torch.nonzero(mask)[:, 0]
    marked = torch.zeros(mask.shape[0], dtype=torch.int64, device=mask.device)
    marked[places] = places
    return marked, places.sort(descending=True)[0]


@cases.case("issue-195595-shrunk", issue="195595", make=lambda d: d.bools(70000 + d.k))
def _positions_of_a_smaller_mask(mask: Any) -> Any:
    places = torch.nonzero(mask)[:, 0]
    marked = torch.zeros(mask.shape[0], dtype=torch.int64, device=mask.device)
    marked.index_put_((places,), places)
    return marked, places.sort(descending=True)[0], torch.zeros_like(marked).scatter(0, places, 1)


# https://github.com/pytorch/pytorch/issues/183885: argsort(dim=0) wrong for (3, 2**22+1)
@cases.case("issue-183885", issue="183885", make=lambda d: d.distinct(3, 4097 + d.k) / 64)
def _few_rows_many_columns(x: Any) -> Any:
    values, index = torch.sort(x, dim=0)
    return values, index, torch.argsort(x, dim=0), torch.argsort(x, dim=0, descending=True)


@cases.check("issue-183885-reported", issue="183885", limit_seconds=120)
def _rows_of_four_million_columns(bench: Any) -> None:
    """One more column than 2**22: judged by what sorting means, since a reference of this size costs a second."""
    host = bench.draw("issue-183885-reported").normal(3, (1 << 22) + 1)
    with bench.device_run() as run:
        index = torch.argsort(run.bring(host.clone()), dim=0).cpu()
    assert bool((index.sum(0) == 3).all() & (index.min(0)[0] == 0).all()), "a column's indices are no permutation"
    first, second, third = (host.gather(0, row[None]) for row in index)
    wrong = int(((first > second) | (second > third)).sum())
    assert wrong == 0, f"{wrong} of {host.shape[1]} columns are not sorted"
