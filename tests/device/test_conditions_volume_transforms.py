"""Rule 3: transforms of images and volumes of more than 2**12 numbers, alone and several, by each convention of scale.

Of several volumes the inverse was not divided by their number, https://github.com/jax-ml/jax/issues/18453; that of real
ones was too large by a side, https://github.com/openxla/xla/issues/45009
"""

from __future__ import annotations

from typing import Any

import torch

from device_suite import Cases
from device_suite.limits import add_table, shown

cases = Cases("conditions")

# A batch before the sides that are transformed, even and odd, with and without large factors.
_SHAPES = (
    ((), (67, 71)),
    ((3,), (64, 66)),
    ((), (17, 19, 22)),
    ((2,), (16, 18, 20)),
    ((2, 2), (13, 32, 11)),
    ((), (1, 128, 37)),
    ((2,), (8, 9, 10, 12)),
)
_SCALES = ("backward", "ortho", "forward")
_COMPLEX = ("fftn", "ifftn")


def _numbers(x: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    return x[: torch.Size(shape).numel()].reshape(shape)


def _transformed(name: str, batch: tuple[int, ...], sides: tuple[int, ...], scale: str, x: torch.Tensor) -> Any:
    dims = tuple(range(-len(sides), 0))
    if name in _COMPLEX:
        return shown(getattr(torch.fft, name)(_numbers(x, (*batch, *sides)), dim=dims, norm=scale))
    real = _numbers(x, (*batch, *sides)).real
    half = getattr(torch.fft, "ihfftn" if name == "hfftn" else "rfftn")(real, dim=dims, norm=scale)
    if name in ("rfftn", "ihfftn"):
        return shown(half)
    again = half.clone()
    back = getattr(torch.fft, name)(half, s=sides, dim=dims, norm="backward" if scale == "ortho" else scale)
    return [shown(back), (half == again).all()]  # what is read stays as it was


for _name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn"):
    add_table(
        cases,
        f"transforms-{_name}-sides",
        {
            f"{batch}-{sides}-{scale}": lambda x, name=_name, batch=batch, sides=sides, scale=scale: _transformed(
                name, batch, sides, scale, x
            )
            for batch, sides in _SHAPES
            for scale in _SCALES
        },
        lambda d: (d.of(torch.complex64, 18_500),),
        terms=1 << 12,
    )
