"""Layouts as data: bases and the views that are cut out of them, on the host and on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable

import torch

Shape = Any  # a tuple of int: tuple[int, ...] is no run-time value on Python 3.8


@dataclass(frozen=True)
class Layout:
    """One layout. `base` gives the base's shape for a view's shape, `cut` makes the view.

    `writable` is false where several places of the view share one element.
    """

    name: str
    base: Callable[[Shape], Shape]
    cut: Callable[[torch.Tensor, Shape], torch.Tensor]
    writable: bool = True


def _scalar_base(shape: Shape) -> Shape | None:
    return (3,) if len(shape) == 0 else None


def _layout(
    name: str, base: Callable[[Shape], Shape], cut: Callable[[torch.Tensor, Shape], torch.Tensor], writable: bool = True
) -> Layout:
    """Return a layout that cuts a view without dimensions out of the middle of a line, whatever its name."""
    return Layout(
        name,
        lambda shape: _scalar_base(shape) or base(shape),
        lambda given, shape: given[1] if len(shape) == 0 else cut(given, shape),
        writable,
    )


def _swapped(shape: Shape) -> Shape:
    return (*shape, 3) if len(shape) == 1 else (*shape[:-2], shape[-1], shape[-2])


def _channels_to_end(shape: Shape) -> Shape:
    return (shape[0], *shape[2:], shape[1]) if len(shape) > 2 else _swapped(shape)


def _channels_back(base: torch.Tensor, shape: Shape) -> torch.Tensor:
    if len(shape) <= 2:
        return _transpose(base, shape)
    return base.permute(0, len(shape) - 1, *range(1, len(shape) - 1))


def _transpose(base: torch.Tensor, shape: Shape) -> torch.Tensor:
    return base[:, 1] if len(shape) == 1 else base.transpose(-1, -2)


CONTIGUOUS = Layout("contiguous", lambda shape: shape, lambda base, shape: base)
LAYOUTS = {
    layout.name: layout
    for layout in (
        CONTIGUOUS,
        _layout("transposed", _swapped, _transpose),
        _layout("offset", lambda shape: (shape[0] + 2, *shape[1:]), lambda base, shape: base[2:]),
        _layout("step2", lambda shape: (*shape[:-1], 2 * shape[-1] + 1), lambda base, shape: base[..., 1::2]),
        _layout("expanded", lambda shape: (1, *shape[1:]), lambda base, shape: base.expand(shape), writable=False),
        _layout("channels_last", _channels_to_end, _channels_back),
    )
}


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
