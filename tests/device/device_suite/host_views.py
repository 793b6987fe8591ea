"""Views as host and device tensors come: dense, gapped, offset, transposed, expanded, 0-d, empty."""

from __future__ import annotations

from typing import Any, Callable

import torch

# The base's shape, and the view that is cut out of it; the same function cuts on the host and on the device.
VIEWS: dict[str, tuple[tuple[int, ...], Callable[[torch.Tensor], torch.Tensor]]] = {
    "dense": ((6, 7), lambda x: x),
    "rows": ((9, 7), lambda x: x[2:8]),
    "columns": ((6, 11), lambda x: x[:, 3:10]),
    "gapped": ((6, 15), lambda x: x[:, 1::2]),
    "row_gapped": ((13, 7), lambda x: x[1::2]),
    "transposed": ((7, 6), lambda x: x.t()),
    "transposed_columns": ((9, 6), lambda x: x[1:8].t()),
    "expanded_rows": ((1, 7), lambda x: x.expand(6, 7)),
    "expanded_columns": ((6, 1), lambda x: x.expand(6, 7)),
    "permuted": ((2, 3, 4, 5), lambda x: x.permute(0, 2, 3, 1)),
    "channels_last": ((2, 4, 5, 3), lambda x: x.permute(0, 3, 1, 2)),
    "inner": ((4, 5, 6), lambda x: x[1:3, 1:4, 2:5]),
    "selected": ((4, 3, 5), lambda x: x[:, 1]),
    "diagonal": ((6, 6), lambda x: x.diagonal()),
    "windows": ((14,), lambda x: x.unfold(0, 4, 2)),
    "element": ((9,), lambda x: x[5]),
    "one": ((9,), lambda x: x[5:6]),
    "six": ((2, 2, 3, 2, 3, 2), lambda x: x.permute(5, 0, 3, 1, 4, 2)),
    "detached": ((9, 7), lambda x: x[2:8].detach()),  # it starts behind its storage's start, and torch calls it no view
    "detached_gapped": ((6, 15), lambda x: x[:, 1::2].detach()),
    "detached_element": ((9,), lambda x: x[5].detach()),
    "empty": ((4, 5), lambda x: x[2:2]),
    "empty_columns": ((4, 5), lambda x: x[:, 5:]),
}
DTYPES = (
    *(torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
    *(torch.bool, torch.complex64),
)
SHARED = ("expanded_rows", "expanded_columns", "windows")  # several places are one element: not written to


def exact(d: Any, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Return small values that every dtype holds exactly: quarters below eight, whole numbers for integers."""
    if dtype == torch.bool:
        return d.bools(*shape)
    if dtype.is_complex:
        return torch.complex(d.integers(0, 31, *shape) / 4, d.integers(0, 31, *shape) / 4).to(dtype)
    whole = d.integers(0, 31, *shape)
    return (whole / 4).to(dtype) if dtype.is_floating_point else whole.to(dtype)


def short(dtype: torch.dtype) -> str:
    """Return a dtype's name without its module."""
    return str(dtype)[6:]
