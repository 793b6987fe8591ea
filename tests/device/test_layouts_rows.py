"""Norms of few rows and of many, with gradients: what the parameters get is a sum over the rows."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.acts import backward, leaf

cases = Cases("layouts")


def _normed(x: torch.Tensor, weight: torch.Tensor) -> Any:
    """Ask norms over one and two dimensions of many rows: what the parameters get is a sum over them."""
    answers = []
    for shape in ((4, 6), (6,)):
        start, w, b = leaf(x), leaf(weight if len(shape) == 2 else weight[0]), leaf(weight[1])
        answers.append(backward(F.layer_norm(start, shape, w, b.expand(shape)) * x, start, w, b))
    start, w = leaf(x), leaf(weight[:, 0])
    answers.append(backward(F.group_norm(start, 2, w, w) * x, start, w))
    if x.shape[0] > 1:
        start, w = leaf(x), leaf(weight[:, 0])
        answers.append(backward(F.batch_norm(start, None, None, w, w, training=True) * x, start, w))
    return answers


for _rows in (1, 8, 33, 260, 1030):
    cases.add(
        f"layout-rows-norm-{_rows}",
        _normed,
        make=lambda d, rows=_rows: (d.normal(rows, 4, 6), d.normal(4, 6)),
        terms=_rows * 24,
        factor=16.0,
        floor=1.0,
        states=("fresh",),
    )
