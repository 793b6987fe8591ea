"""Regressions in views and copies: offsets, gaps, neighbours, both directions between host and device."""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases

cases = Cases("regressions")
DTYPES = (
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
)


@cases.case(
    "issue-114692",
    issue="114692",
    make=lambda d: (d.uniform(1, 2, 3 + d.k), d.uniform(1, 2, 9 + d.k), d.uniform(1, 2, 4, 5)),
)
def _neighbours_stay(x: Any, y: Any, z: Any) -> Any:
    x[1].zero_()
    y[2:5].fill_(7)
    y[7:8].zero_()
    z[1, 2].zero_()
    z[:, 1].fill_(3)
    torch.zero_(z[3, 3:4])
    return x, y, z


@cases.case(
    "issue-122016",
    issue="122016",
    make=lambda d: (d.normal(3), torch.zeros(100 + d.k), torch.zeros(20, dtype=torch.int64)),
)
def _consecutive_assignments(x: Any, y: Any, z: Any) -> Any:
    x[1] = 1
    x[2] = 3
    for index in range(100):
        y[index] = float(index)
    for index in range(20):
        z[index] = index
    return x, y, z


def _fill_offset(base: Any) -> Any:
    answers = []
    for offset in range(6):
        one = base.clone()
        one[offset:].fill_(True)
        two = base.clone()
        two[offset : offset + 3].fill_(1)
        three = base.clone()
        three[offset:][::2].fill_(True)
        answers += [one, two, three]
    base[1:].fill_(True)
    return answers


for _dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.float16):
    cases.add(
        f"issue-183631-{str(_dtype)[6:]}",
        _fill_offset,
        issue="183631",
        make=lambda d, dtype=_dtype: torch.zeros(16 + d.k, dtype=dtype),
    )


def _offset_views(x: Any) -> Any:
    added = [
        view + torch.zeros((), dtype=x.dtype, device=x.device)
        for view in (x[1:, 1:], x[1:, 1:].t(), x[2:, ::2], x[:, 1])
    ]
    copied = [x[1:, 1:].contiguous(), x[1:, 1:].t().contiguous(), x[2:].clone()]
    filled = x.clone()
    filled[1:, 1:].fill_(1)
    return added, copied, filled, x[1:, 1:].sum(), x.as_strided((2, 3), (1, 4), 2) + 0


for _dtype in DTYPES:
    cases.add(
        f"issue-95323-{str(_dtype)[6:]}",
        _offset_views,
        issue="95323",
        make=lambda d, dtype=_dtype: d.of(dtype, 4, 5 + d.k),
        terms=16,
    )


@cases.case("issue-193057", issue="193057", make=lambda d: (d.normal(3, 4 + d.k), d.uniform(0.5, 2, 8)))
def _host_scalars_that_are_views(run: Any, x: Any, steps: Any) -> Any:
    host = steps.cpu()
    answers = [x / host[4], host[4] * x, x * host[7], host[3] + x, x - host[5], host[5] - x, host[1:][2] * x]
    answers += [torch.mul(x, host[6]), x * host[4].clone(), x * host[4].item()]
    x.div_(host[7])
    x.add_(host[2])
    return answers


@cases.case(
    "issue-189961",
    issue="189961",
    anywhere=True,
    make=lambda d: (d.normal(20 + d.k), d.normal(6, 5 + d.k), torch.zeros(20 + d.k), torch.zeros(6, 5 + d.k)),
)
def _gappy_copies_to_the_host(run: Any, line: Any, table: Any, host_line: Any, host_table: Any) -> Any:
    parent, sheet = host_line.cpu().clone(), host_table.cpu().clone()
    parent[::2].copy_(line[::2])
    sheet[:, 1:3].copy_(table[:, 1:3])
    sheet[::2, 3].copy_(table[::2, 3])
    back = torch.zeros_like(line)
    back[1::3].copy_(line.cpu()[1::3])
    return parent, sheet, line[1::2].cpu(), table.t()[1:3].cpu(), back


@cases.case(
    "issue-108978", issue="108978", anywhere=True, make=lambda d: (d.normal(2, 3, 4 + d.k), torch.zeros(2, 3, 4 + d.k))
)
def _device_rows_into_a_host_tensor(run: Any, rows: Any, host: Any) -> Any:
    result = host.cpu().clone()
    for i in range(2):
        for j in range(3):
            result[i][j] = rows[i, j]
    other = torch.zeros_like(result)
    other[1] = rows[0]
    host[1][2] = rows.cpu()[0, 1]
    return result, other


@cases.case("issue-83015", issue="83015", make=lambda d: d.normal(1000 + d.k))
def _non_blocking_copy_of_a_living_source(run: Any, x: Any) -> Any:
    source = x.cpu()
    moved = source.to(run.device, non_blocking=True)
    again = torch.empty_like(x)
    again.copy_(source, non_blocking=True)
    run.synchronise()
    return moved, again, source.sum().item()


@cases.case(
    "issue-87856",
    issue="87856",
    make=lambda d: (torch.tensor([[1, 2]]), d.normal(3, 4 + d.k), d.integers(-99, 99, 3, 4 + d.k)),
)
def _stacked_columns(y: Any, x: Any, z: Any) -> Any:
    stacked = torch.stack((y[:, :1], y[:, -1:]), -1)
    return (
        stacked,
        torch.stack((x[:, 1], x[:, 2]), -1),
        torch.cat((z[:, 2:], z[:, :1]), 1),
        torch.stack((z[1:].t(), z[:2].t())),
    )


@cases.case("issue-78043", issue="78043", make=lambda d: d.normal(1, 4, 16 + d.k, 64))
def _rotary_embeddings(x: Any) -> Any:
    every_two = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    half = x.shape[-1] // 2
    return every_two, torch.cat((-x[..., half:], x[..., :half]), dim=-1)


@cases.case(
    "issue-90479", issue="90479", make=lambda d: (d.normal(0), d.normal(3 + d.k), d.normal(0, 4), d.normal(2, 4))
)
def _joined_with_nothing(nothing: Any, x: Any, no_rows: Any, rows: Any) -> Any:
    grid = torch.zeros(1, 2, 2, 2, device=x.device, dtype=x.dtype)
    image = rows.reshape(1, 1, 2, 4)
    sampled = torch.nn.functional.grid_sample(image, grid, align_corners=False)
    return (
        torch.cat((nothing, x)),
        torch.cat((x, nothing, x)),
        torch.cat((no_rows, rows)),
        torch.cat((nothing, nothing)),
        sampled,
    )


@cases.case(
    "issue-189960",
    issue="189960",
    make=lambda d: torch.zeros(1, dtype=torch.int8),
    full=True,
    memory_bytes=14 << 30,
    states=("fresh",),
    limit_seconds=600,
)
def _joined_past_two_to_the_thirty_one(run: Any, x: Any) -> Any:
    half = torch.ones(32769, 32768, dtype=torch.int8, device=run.device)
    y = torch.cat((half, half), 1)
    return y[-1, -4:], y[32767, -4:], y[-1, :4]
