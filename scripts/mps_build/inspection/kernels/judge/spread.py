"""References of strided forms of a few operators."""

from __future__ import annotations

from typing import Any

import torch


def spread_cross(a: Any, b: Any, dim: Any) -> Any:
    """Cross product along one dimension."""
    return torch.linalg.cross(a, b, dim=dim)


def spread_combination(before: Any, x: Any, coefficients: Any) -> Any:
    """What was there plus a linear combination of rows."""
    return before + (x * coefficients.movedim(-1, 0)).sum(0)


def spread_addbmm(a: Any, b: Any, bias: Any, alpha: Any, beta: Any) -> Any:
    """beta * bias + alpha * the sum of a batch of matrix products."""
    return alpha * (a @ b).sum(0) + beta * bias


FUNCTIONS = {"spread_cross": spread_cross, "spread_combination": spread_combination, "spread_addbmm": spread_addbmm}


def older_index_copy(x: Any, source: Any, index: Any, dim: Any) -> Any:
    """index_copy as the kernels of older releases have it."""
    return x.index_copy(dim, torch.tensor(index), source)


def older_lerp(a: Any, b: Any, w: Any) -> Any:
    """Linear interpolation a + w (b - a), as the kernels of older releases compute it."""
    return a + w * (b - a)


FUNCTIONS |= {"older_index_copy": older_index_copy, "older_lerp": older_lerp}
