"""References of histograms that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def counted_histogram(x: Any, edges: Any, each: Any, weight: Any = None) -> Any:
    """A histogram of points; `each`: one of its own for every point."""
    sizes = [len(row) - 1 for row in edges]
    out = torch.zeros([len(x), *sizes], dtype=torch.float64)
    for number, point in enumerate(x.to(torch.float64).tolist()):
        where = []
        for value, row in zip(point, edges, strict=True):
            if not row[0] <= value <= row[-1]:
                break
            where.append(min(sum(value >= edge for edge in row) - 1, len(row) - 2))
        else:
            place = (number, *where)
            out[place] = float(weight[number]) if weight is not None else 1.0
    return out if each else out.sum(0)
