"""References of kernels that make numbers."""

from __future__ import annotations

import torch


def made_spaced(start, end, count, shape, base):
    """Numbers at equal distances, or the powers of a base with such exponents."""
    numbers = torch.linspace(start, end, count, dtype=torch.float64)
    return (numbers if not base else torch.pow(torch.tensor(base, dtype=torch.float64), numbers)).reshape(shape)


def counted_histogram(x, edges, each, weight=None):
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
            out[(number, *where)] = float(weight[number]) if weight is not None else 1.0
    return out if each else out.sum(0)


def median_of(x, ignores):
    """torch's median, or nanmedian."""
    return (torch.nanmedian(x) if ignores and x.is_floating_point() else torch.median(x)).reshape(1)


FUNCTIONS = {"made_spaced": made_spaced, "counted_histogram": counted_histogram, "median_of": median_of}
