"""Sampling by a grid at the edges of the image and beyond: exactly -1, 1 and the pixels between, far away.

What a grid of NaN or infinity gives is open: an NVIDIA GPU answers otherwise than the CPU.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import derived
from device_suite.limits import add_table

cases = Cases("conditions")
_MODES = ("bilinear", "nearest", "bicubic")
_PADDED = ("zeros", "border", "reflection")
# Of an image of 4 or 8 pixels these are exact: its ends, the middles of the first and last pixel, and places beyond.
_ENDS = (-1.0, 1.0, 0.0, -0.75, 0.75, -0.875, 0.875, -0.25, 0.5)
_BEYOND = (-1.125, 1.125, -1.25, 1.25, -1.5, 1.5, -2.0, 2.0, -3.0, 3.0, -5.0, 5.0, 9.0, -33.0)
_FAR = (1e3, -1e3, 2e4, -2e4, -1.0)


def _grid(places: Any, dims: int) -> torch.Tensor:
    """Return each place beside each in the last two of some coordinates; the others are on the edge."""
    pairs = torch.tensor(list(itertools.product(places, repeat=2)))
    edges = torch.full((len(pairs), dims - 2), -1.0)
    return torch.cat([edges, pairs], 1).reshape(1, *(1,) * (dims - 1), -1, dims)


def _sampled(mode: str, padding: str, corners: bool) -> Any:
    return lambda x, g: F.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=corners)


def _of(dims: int) -> dict[str, Any]:
    return {
        f"{mode}-{padding}-{corners}": _sampled(mode, padding, corners)
        for mode in _MODES[: 3 if dims == 2 else 2]
        for padding in _PADDED
        for corners in (False, True)
    }


def _operands(shape: tuple[int, ...], places: tuple[float, ...], d: Any) -> Any:
    return d.normal(*shape), _grid(places, len(shape) - 2)


_SHAPES = {2: (1, 2, 4, 8), 3: (1, 1, 2, 4, 8)}
for _dims, _shape in _SHAPES.items():
    for _name, _places in (("ends", _ENDS), ("beyond", _BEYOND), ("far", _FAR)):
        _make = functools.partial(_operands, _shape, _places)
        # So far away a reflection has no digit left that says where in the image it ends.
        _forms = {name: form for name, form in _of(_dims).items() if _name != "far" or "reflection" not in name}
        add_table(cases, f"grid-{_name}-{_dims}d", _forms, _make, terms=16, factor=64.0)
        add_table(
            cases,
            f"grid-{_name}-derived-{_dims}d",
            {name: lambda x, g, form=form: derived(form, x, g) for name, form in _forms.items()},
            _make,
            terms=512,
            factor=64.0,
            deterministic=False,
        )
