"""Reference of Cholesky factorizations."""

from __future__ import annotations

from typing import Any

import torch


def lower_factor(a: Any, above: Any) -> Any:
    """Lower factor of symmetric matrices, its first columns; above the diagonal what the kernel has there."""
    factor = torch.linalg.cholesky(a)[..., : above.shape[-1]]
    rows, columns = torch.arange(factor.shape[-2]), torch.arange(factor.shape[-1])
    return torch.where(rows[:, None] >= columns, factor, above)
