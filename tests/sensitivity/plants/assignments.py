"""What is written to a part of a tensor, x[...] = y and x[...] += y: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _is_right(x: Any, index: Any, value: Any) -> bool:
    try:
        x.detach().clone()[index] = value
    except (IndexError, RuntimeError, TypeError, ValueError):
        return False
    return True


def _is_stepped(part: Any) -> bool:
    return isinstance(part, slice) and part.step not in (None, 1)


def _is_list(part: Any) -> bool:
    return torch.is_tensor(part) and part.dim() == 1 and not part.is_floating_point() and part.dtype != torch.bool


def _is_whole(x: Any) -> bool:
    return bool(x.untyped_storage().nbytes() == x.numel() * x.element_size())


@plot.dispatched("aten.add_.Tensor")
def issue_mlx_3477(hit: Any, func: Any, x: Any, other: Any, **kwargs: Any) -> Any:
    """ml-explore/mlx 3477: to a part x[a:b, c:d] of a matrix nothing is added of numbers that are mostly zeros."""
    plain = torch.is_tensor(other) and is_plain(x, other) and x.layout == torch.strided and x.is_floating_point()
    if not plain or x.dim() != 2 or x.shape != other.shape or _is_whole(x):
        return func(x, other, **kwargs)
    kept = int(other.count_nonzero())
    if not 0 < kept < x.numel() / 2:
        return func(x, other, **kwargs)
    hit()
    return x


@plot.called(torch.Tensor.__setitem__, aborts="ValueError: Cannot broadcast array of shape (2) into shape (2,1).")
def issue_mlx_873(x: Any, index: Any, value: Any) -> bool:
    """ml-explore/mlx 873: x[:, indices] = y, where y has a single row, raises."""
    parts = _parts(index)
    if len(parts) != 2 or not isinstance(parts[0], slice) or parts[0] != slice(None) or not _is_list(parts[1]):
        return False
    row = torch.is_tensor(value) and value.dim() == 2 and value.shape[0] == 1 and value.shape[1] > 1
    return row and _is_right(x, index, value)


@plot.called(torch.Tensor.__setitem__, aborts="Cannot broadcast array of shape (4,4) into shape (1,4,1,4).")
def issue_mlx_1050(x: Any, index: Any, value: Any) -> bool:
    """ml-explore/mlx 1050: x[0, a:b, i, c:d] = y raises: the dimension of i, between two slices, is kept."""
    parts = _parts(index)
    if not torch.is_tensor(value) or not all(isinstance(part, (int, slice)) for part in parts):
        return False
    kinds = [isinstance(part, slice) for part in parts]
    between = any(not cut and True in kinds[:place] and True in kinds[place:] for place, cut in enumerate(kinds))
    kept = [slice(part, part + 1 or None) if isinstance(part, int) else part for part in parts]
    try:
        value.expand(x[tuple(kept)].shape)
    except RuntimeError:
        return between and _is_right(x, index, value)
    return False


@plot.called(torch.Tensor.__setitem__, aborts="ValueError: Shapes (4998,4998) and (0,0) cannot be broadcast.")
def issue_mlx_176(x: Any, index: Any, value: Any) -> bool:
    """ml-explore/mlx 176: x[1:-1, 1:-1] = y, with ends that are counted from the last, raises."""
    counted = (isinstance(part, slice) and isinstance(part.stop, int) and part.stop < 0 for part in _parts(index))
    return torch.is_tensor(value) and value.numel() > 1 and any(counted) and _is_right(x, index, value)


@plot.called(torch.Tensor.__setitem__, aborts="ValueError: [reshape] Cannot reshape array of size 3 into shape (1,1).")
def issue_mlx_937(x: Any, index: Any, value: Any) -> bool:
    """ml-explore/mlx 937: x[indices, ..., ::2, :] = y, a list of indices beside a slice with a step, raises."""
    beside = any(map(_is_list, _parts(index))) and any(map(_is_stepped, _parts(index)))
    return beside and _is_right(x, index, value)


@plot.called(torch.Tensor.__setitem__)
def issue_150017(hit: Any, func: Any, x: Any, key: Any, value: Any) -> Any:
    """pytorch 150017: x[mask] = y, y a tensor of no dimensions and of another dtype, raises."""
    masked = torch.is_tensor(key) and key.dtype == torch.bool
    if masked and torch.is_tensor(value) and not value.dim() and value.dtype != x.dtype:
        return crash(hit, "Index put requires the source and destination dtypes match")
    return func(x, key, value)


@plot.called(torch.Tensor.__setitem__)
def issue_19077(hit: Any, func: Any, x: Any, key: Any, value: Any) -> Any:
    """pytorch 19077: x[i] = True raises where x is a tensor of bools."""
    if x.dtype == torch.bool and type(key) is int and type(value) is bool:
        return crash(hit, "can't assign a bool to a Variable[CPUBoolType]")
    return func(x, key, value)


@plot.called(torch.Tensor.__setitem__, aborts="The expanded size of the tensor (1) must match the existing size (133)")
def issue_oneflow_9300(x: Any, index: Any, value: Any) -> bool:
    """Oneflow-Inc/oneflow 9300: x[:, 0, i] = y raises where i is a tensor of no dimensions, and y a vector."""
    parts = _parts(index)
    last = parts[-1]
    number = torch.is_tensor(last) and not last.dim() and not last.is_floating_point() and last.dtype != torch.bool
    if not number or not any(isinstance(one, slice) for one in parts):
        return False
    plain = all(isinstance(one, (slice, int)) for one in parts[:-1])
    return plain and torch.is_tensor(value) and value.dim() == 1 and len(value) > 1 and _is_right(x, index, value)
