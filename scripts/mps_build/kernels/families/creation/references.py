"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def made_spaced(start: Any, end: Any, count: Any, shape: Any, base: Any) -> Any:
    """Numbers at equal distances, or the powers of a base with such exponents."""
    numbers = torch.linspace(start, end, count, dtype=torch.float64)
    return (numbers if not base else torch.pow(torch.tensor(base, dtype=torch.float64), numbers)).reshape(shape)
