"""Rules 2 and 4: norms with one of their weights missing, and with weights or statistics in a wider dtype.

A layer_norm with a weight and no bias was wrong, https://github.com/pytorch/pytorch/issues/69208; float16 with
statistics in float32 and no weight ended the process, https://github.com/pytorch/pytorch/issues/154887
"""

from __future__ import annotations

import itertools
from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import leaf, uneven
from device_suite.answers import attempt
from device_suite.limits import HALVES, add_table

cases = Cases("conditions")
_KINDS = ("none", "own", "wide")
# Shapes of x, four channels or six numbers in a row.
_SHAPES = {"rows": (5, 4), "lines": (2, 4, 6), "images": (2, 4, 3, 6), "last": (2, 4, 3, 6), "volumes": (2, 4, 2, 3, 6)}


def _part(values: torch.Tensor, kind: str, wants: bool = True) -> torch.Tensor | None:
    """Return a weight or a statistic: none, in the dtype of x, or in float32."""
    if kind == "none":
        return None
    part = values if kind == "own" or values.dtype == torch.float64 else values.float()
    return part.clone().requires_grad_(wants)


def _normed(kind: str, shape: str, parts: tuple[str, str], kept: str, training: bool, x: torch.Tensor) -> Any:
    sides = _SHAPES[shape]
    start = leaf(x[: torch.Size(sides).numel()].view(sides).clone())
    start = leaf(start.detach().contiguous(memory_format=torch.channels_last)) if shape == "last" else start
    count = sides[-1] if kind in ("layer", "rms") else 4
    weight, bias = _part(x[3 : 3 + count] / 2 + 1, parts[0]), _part(x[20 : 20 + count], parts[1])
    mean, var = _part(x[40:44], kept, False), _part(x[50:54].abs() + 0.5, kept, False)
    call: dict[str, Callable[[], torch.Tensor]] = {
        "batch": lambda: F.batch_norm(start, mean, var, weight, bias, training, 0.25),
        "instance": lambda: F.instance_norm(start, mean, var, weight, bias, training, 0.25),
        "group": lambda: F.group_norm(start, 2, weight, bias),
        "layer": lambda: F.layer_norm(start, sides[-1:], weight, bias),
        "rms": lambda: F.rms_norm(start, sides[-1:], weight),
    }
    y = call[kind]()
    y.backward(uneven(y))
    given = [one for one in (weight, bias) if one is not None]
    return [y.detach(), start.grad, *(one.grad for one in given), *(one for one in (mean, var) if one is not None)]


_ROWS: dict[str, Any] = {}
for _kind, _shape in itertools.product(("batch", "instance", "group", "layer", "rms"), _SHAPES):
    if _kind == "instance" and _shape == "rows":
        continue
    for _parts in itertools.product(_KINDS, repeat=2):
        if _kind == "rms" and _parts[1] != "none":
            continue
        _stats = _KINDS if _kind in ("batch", "instance") else ("none",)
        for _kept, _training in itertools.product(_stats, (True, False)):
            # No statistics to ask, weights of two dtypes, or a bias of a group without its weight: refused by the CPU.
            if (_kept == "none" and not _training) or len({*_parts, _kept} - {"none"}) > 1:
                continue
            if _kind == "group" and _parts[0] == "none" and _parts[1] != "none":
                continue
            if _kind == "group" and _shape == "rows":  # of two numbers nothing is left but their signs
                continue
            # A row's norm and a group's may ask for weights of the dtype of x.
            _ROWS[f"{_kind}-{_shape}-{'-'.join(_parts)}-{_kept}-{_training}"] = (
                lambda x, row=(_kind, _shape, _parts, _kept, _training): attempt(
                    lambda: _normed(*row, x), gap="" if row[0] in ("batch", "instance") else "type"
                )
            )
for _dtype in (torch.float32, *HALVES):
    _half = _dtype in HALVES
    # In float32 nothing is wider.
    _names = [name for name in _ROWS if _half or "wide" not in name]
    add_table(
        cases,
        f"norm-parts-{str(_dtype)[6:]}",
        {name: _ROWS[name] for name in _names[:: 3 if _half else 2]},
        lambda d, dtype=_dtype: ((d.distinct(300) / 64 + 0.01).to(dtype),),
        terms=256 if not _half else 64,
        factor=16.0,
        deterministic=False,
    )
