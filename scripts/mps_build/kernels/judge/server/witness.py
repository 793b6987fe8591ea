"""Which wrong element is shown, and how: the most ordinary one, so that a person sees the fault at a glance."""

from __future__ import annotations

from typing import Any

import torch

# Numbers that a reader takes for usual: a witness among them is worth more than a larger error elsewhere.
ORDINARY = (1e-3, 1e4)


def most_ordinary(wrong: Any, inputs: Any) -> Any:
    """Return the wrong places with the most ordinary inputs: from a thousandth to 1e4 or 0; else finite; else all."""
    usual, finite = wrong.clone(), wrong.clone()
    for value in inputs.values():
        if not isinstance(value, torch.Tensor) or value.shape != wrong.shape:
            continue
        wide = value.to(torch.complex128 if value.is_complex() else torch.float64)
        size = torch.view_as_real(wide).abs() if wide.is_complex() else wide.abs().unsqueeze(-1)
        usual &= ((size == 0) | ((size >= ORDINARY[0]) & (size <= ORDINARY[1]))).all(-1)
        finite &= torch.isfinite(size).all(-1)
    return next(each for each in (usual, finite, wrong) if each is wrong or bool(each.any()))


def show(tensor: Any, at: Any) -> Any:
    """Return an element as Python writes it."""
    value = tensor.contiguous().reshape(-1)[at].item()
    return repr(value)


def inputs_at(inputs: Any, got: Any, at: Any) -> Any:
    """Say what stood at the place, where inputs and result have one shape."""
    shown = {}
    for name, value in inputs.items():
        if isinstance(value, torch.Tensor) and value.shape == got.shape:
            shown[name] = show(value, at)
        elif isinstance(value, torch.Tensor) and value.numel() == 1:
            shown[name] = show(value, 0)
        elif not isinstance(value, torch.Tensor):
            shown[name] = repr(value)[:80]
    return {"inputs": shown}
