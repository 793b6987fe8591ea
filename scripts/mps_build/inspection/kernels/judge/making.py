"""References of kernels that make numbers."""

from __future__ import annotations

import torch


def made_spaced(start, end, count, shape, base):
    """Numbers at equal distances, or the powers of a base with such exponents."""
    numbers = torch.linspace(start, end, count, dtype=torch.float64)
    return (numbers if not base else torch.pow(torch.tensor(base, dtype=torch.float64), numbers)).reshape(shape)


FUNCTIONS = {"made_spaced": made_spaced}
