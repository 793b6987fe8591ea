"""Views and copies: offsets, gaps, neighbours, both directions between host and device; sizes beyond 2**31 elements."""

from __future__ import annotations

from typing import Any, Callable

import torch

from engine import Cases

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


# https://github.com/pytorch/pytorch/issues/114692: zero_()/fill_ on a one-element slice also clears the next element
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


# https://github.com/pytorch/pytorch/issues/122016: x[1]=1; x[2]=3 gives [0,3,3] on macOS 14.4
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


# https://github.com/pytorch/pytorch/issues/183631: fill_(True) on an offset bool view writes wrong positions
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


# https://github.com/pytorch/pytorch/issues/95323: view fixes: uint8 view kernels, non-zero offset gathering, fill_
# with offset, slicing 2nd dim
for _dtype in (torch.bool, torch.int64, torch.float16):
    cases.add(
        f"issue-95323-{str(_dtype)[6:]}",
        _offset_views,
        issue="95323",
        make=lambda d, dtype=_dtype: d.of(dtype, 4, 5 + d.k),
        terms=16,
    )


# https://github.com/pytorch/pytorch/issues/193057: CPU 0-dim view operand: storage_offset ignored in mixed-device
# arithmetic (diffusion schedulers)
@cases.case("issue-193057", issue="193057", make=lambda d: (d.normal(3, 4 + d.k), d.uniform(0.5, 2, 8)))
def _host_scalars_that_are_views(run: Any, x: Any, steps: Any) -> Any:
    host = steps.cpu()
    answers = [x / host[4], host[4] * x, x * host[7], host[3] + x, x - host[5], host[5] - x, host[1:][2] * x]
    answers += [torch.mul(x, host[6]), x * host[4].clone(), x * host[4].item()]
    x.div_(host[7])
    x.add_(host[2])
    return answers


# https://github.com/pytorch/pytorch/issues/189961: MPS->CPU copy_ between equal-strided gappy views copies raw bytes
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


# https://github.com/pytorch/pytorch/issues/108978: writing an mps tensor into an indexed cpu tensor always hits row 0
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


# https://github.com/pytorch/pytorch/issues/83015: CPU->MPS conversion race gives random values
@cases.case("issue-83015", issue="83015", make=lambda d: d.normal(1000 + d.k))
def _non_blocking_copy_of_a_living_source(run: Any, x: Any) -> Any:
    source = x.cpu()
    moved = source.to(run.device, non_blocking=True)
    again = torch.empty_like(x)
    again.copy_(source, non_blocking=True)
    run.synchronise()
    return moved, again, source.sum().item()


# https://github.com/pytorch/pytorch/issues/87856: stack of column slices returns first column two times
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


# https://github.com/pytorch/pytorch/issues/78043: cat/stack of strided slices fails (GPT-J rotary embedding)
@cases.case("issue-78043", issue="78043", make=lambda d: d.normal(1, 4, 16 + d.k, 64))
def _rotary_embeddings(x: Any) -> Any:
    every_two = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    half = x.shape[-1] // 2
    return every_two, torch.cat((-x[..., half:], x[..., :half]), dim=-1)


# https://github.com/pytorch/pytorch/issues/90479: cat with an empty tensor asserts
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


# Writes through an index, which were lost or went to the beginning of the storage.
# https://github.com/pytorch/pytorch/issues/79672: += on a column of a matrix is lost
@cases.case("issue-79672", issue="79672", make=lambda d: d.normal(4, 3 + d.k))
def _a_column_is_added_to(x: Any) -> Any:
    x[:, 1] += 2
    x[1:, 0] -= x[:-1, 2]
    return x


# https://github.com/pytorch/pytorch/issues/78886: x[::2] = 1.0 fills the first elements one after the other, not
# every second one
@cases.case("issue-78886", issue="78886", make=lambda d: d.normal(9 + d.k))
def _every_second_number_is_written(x: Any) -> Any:
    x[::2] = 1.0
    return x


# https://github.com/pytorch/pytorch/issues/95417: x[2:4] = value of another dtype is written to the beginning of x
# https://github.com/pytorch/pytorch/issues/101936: A[10] = b of an int32 tensor and an int64 value writes to the
# beginning of a's storage
@cases.case("issue-95417", issues=("95417", "101936"), make=lambda d: (d.normal(6 + d.k), d.integers(0, 9, 2)))
def _numbers_of_another_dtype_are_written(x: Any, whole: Any) -> Any:
    narrow = torch.arange(12, dtype=torch.int32, device=x.device)
    x[2:4] = whole
    narrow[10] = whole[1]
    return x, narrow


# https://github.com/pytorch/pytorch/issues/86185: x[:] = t[0], the value a view without dimensions, has no effect
@cases.case("issue-86185", issue="86185", make=lambda d: (d.normal(3, 4 + d.k), d.normal(5)))
def _a_view_without_dimensions_is_written(x: Any, y: Any) -> Any:
    x[:] = y[3]
    return x


# https://github.com/pytorch/pytorch/issues/84229: X[:, [0, 2]] -= n on a slice of columns scrambles rows
# https://github.com/pytorch/pytorch/issues/81051: Indexing with Python lists raises, as the lists become tensors of
# another device
@cases.case("issue-84229", issues=("84229", "81051"), make=lambda d: d.normal(4, 6 + d.k))
def _listed_columns_of_a_slice_are_changed(x: Any) -> Any:
    part = x[:, 1:6]
    part[:, [0, 2]] -= 3
    return x, x[[2, 0]], x[[0, 1], [3, 2]]


# https://github.com/pytorch/pytorch/issues/124206: minus infinity assigned by a mask
@cases.case("issue-124206", issue="124206", make=lambda d: (d.normal(3, 5 + d.k), d.bools(3, 5 + d.k)))
def _one_number_is_written_by_a_mask(x: Any, mask: Any) -> Any:
    x[mask] = float("-inf")
    return x, x.softmax(-1).nan_to_num()


# https://github.com/pytorch/pytorch/issues/150017: X[mask] = y, y a tensor of no dimensions and of another dtype,
# raises
@cases.case("issue-150017", issue="150017", make=lambda d: (d.normal(3, 5 + d.k), d.bools(3, 5 + d.k)))
def _a_number_of_another_dtype_is_written_by_a_mask(x: Any, mask: Any) -> Any:
    x[mask] = torch.tensor(7, device=x.device)
    return x


# What Python reads, and what a data loader makes of single numbers.
# https://github.com/pytorch/pytorch/issues/78001: Printing a tensor that is not contiguous fails
@cases.case("issue-78001", issue="78001", make=lambda d: d.integers(0, 9, 4, 6 + d.k))
def _a_view_is_printed(x: Any) -> Any:
    return [repr(view).partition(", device")[0].rstrip(")") for view in (x.t(), x[:, ::2], x[1, 2:])]


# https://github.com/pytorch/pytorch/issues/91393: The default collate_fn, which stacks 0-D elements of one tensor,
# repeats the first element
@cases.case("issue-91393", issue="91393", make=lambda d: (d.normal(5 + d.k), d.integers(0, 9, 5 + d.k)))
def _numbers_of_one_tensor_are_stacked(x: Any, y: Any) -> Any:
    return torch.stack([x[i] for i in range(4)]), torch.utils.data.default_collate([y[1], y[4], y[0]])


# https://github.com/pytorch/pytorch/issues/189690: non_blocking copies of sources that are gone
@cases.case("issue-189690", issue="189690", make=lambda d: d.normal(3000 + d.k))
def _the_source_of_a_late_copy_is_gone(run: Any, x: Any) -> Any:
    moved = (x.cpu() + 1).to(run.device, non_blocking=True)
    other = [torch.full((3000,), 1e3) for _ in range(4)]
    run.synchronise()
    return moved, len(other)


# https://github.com/pytorch/pytorch/issues/189960: cat corrupts output > 2**31 elements and writes out of bounds
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


def _ask_large(bench: Any, what: Callable[[Any], bool], said: str) -> None:
    """Demand that `what` holds, or that the device declines with an error of its own; an abort ends the process."""
    try:
        with bench.device_run() as run:
            right = what(run.device)
    except (RuntimeError, NotImplementedError) as refused:
        assert str(refused), f"{said}: refused without a word"
        return
    assert right, said


def _large(issue: str, gibibytes: int, what: Callable[[Any], bool], said: str) -> None:
    cases.add(
        f"issue-{issue}",
        lambda bench: _ask_large(bench, what, said),
        issue=issue,
        check=True,
        full=True,
        memory_bytes=gibibytes << 30,
        limit_seconds=600,
    )


def _ones(device: Any) -> bool:
    made = torch.ones(2, (1 << 31) + 5, dtype=torch.int8, device=device)
    return int(made[1, -2]) == 1 and int(made[0, -1]) == 1


def _any(device: Any) -> bool:
    drawn = torch.randint(0, 10, ((1 << 31) + 8,), dtype=torch.uint8, device=device)
    return bool(drawn.any())


def _sum_past_four_gibibytes(device: Any) -> bool:
    wide = torch.ones((1 << 30) + 16, device=device)
    wide[-1] = 3
    more = wide + 1
    return float(more[-1]) == 4 and float(more[-2]) == 2 and float(more[0]) == 2


def _fill_where_masked(device: Any) -> bool:
    count = (1 << 32) + 16
    mask = torch.zeros(count, dtype=torch.bool, device=device)
    mask[-1] = True
    filled = torch.zeros(count, dtype=torch.int8, device=device).masked_fill_(mask, 7)
    return int(filled[-1]) == 7 and int(filled[15]) == 0


# https://github.com/pytorch/pytorch/issues/161265: full/ones wrong for > 4 GiB on macOS 26
_large("161265", 6, _ones, "ones past 4 GiB are not ones")
# https://github.com/pytorch/pytorch/issues/158824: dimension > INT_MAX aborts
_large("158824", 6, _any, "any() of 2**31 elements is wrong")
# https://github.com/pytorch/pytorch/issues/149325: umbrella: NDArray > 2**32 bytes / 32-bit indices
_large("149325", 12, _sum_past_four_gibibytes, "a sum past 4 GiB is wrong")
# https://github.com/pytorch/pytorch/issues/143477: masked_fill > 2**32 elements refused
_large("143477", 12, _fill_where_masked, "masked_fill past 2**32 elements is wrong")
