"""Layouts: how a view of a wanted shape is cut out of a base: the base travels, the view is made on the device."""

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
