"""Indices that a gradient is given are those that its forward chose: no back end says what it does with others."""

from __future__ import annotations

from typing import Any, Callable

import torch

Choices = Callable[[list[Any]], tuple[int, torch.Tensor]]


def _pooled(args: list[Any]) -> tuple[int, torch.Tensor]:
    """Of max_pool{2,3}d_with_indices_backward: (grad, x, kernel, stride, padding, dilation, ceil_mode, indices)."""
    x, *options = args[1:7]
    forward = torch.ops.aten.max_pool2d_with_indices if len(args[2]) == 2 else torch.ops.aten.max_pool3d_with_indices
    return 7, forward(x.contiguous(), *options)[1]


def _adapted(sides: int) -> Choices:
    """Of adaptive_max_pool{2,3}d_backward: (grad, x, indices)."""
    forward = torch.ops.aten.adaptive_max_pool2d if sides == 2 else torch.ops.aten.adaptive_max_pool3d
    return lambda args: (2, forward(args[1].contiguous(), list(args[0].shape[-sides:]))[1])


_CHOICES: dict[str, Choices] = {
    "max_pool2d_with_indices_backward": _pooled,
    "max_pool3d_with_indices_backward": _pooled,
    "adaptive_max_pool2d_backward": _adapted(2),
    "adaptive_max_pool3d_backward": _adapted(3),
}


def choices_of(name: str) -> Choices | None:
    """Return what computes an overload's indices; None where it is given none that another function chose.

    >>> choices_of("max_pool2d_with_indices_backward.grad_input") is not None, choices_of("gather.default")
    (True, None)
    """
    return _CHOICES.get(name.partition(".")[0])
