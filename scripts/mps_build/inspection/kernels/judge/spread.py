"""References of strided forms of a few operators."""

from __future__ import annotations

import torch


def spread_cross(a, b, dim):
    """Cross product along one dimension."""
    return torch.linalg.cross(a, b, dim=dim)


def spread_combination(before, x, coefficients):
    """What was there plus a linear combination of rows."""
    return before + (x * coefficients.movedim(-1, 0)).sum(0)


def spread_addbmm(a, b, bias, alpha, beta):
    """beta * bias + alpha * the sum of a batch of matrix products."""
    return alpha * (a @ b).sum(0) + beta * bias


FUNCTIONS = {"spread_cross": spread_cross, "spread_combination": spread_combination, "spread_addbmm": spread_addbmm}


def older_index_copy(x, source, index, dim):
    """index_copy as the kernels of older releases have it."""
    return x.index_copy(dim, torch.tensor(index), source)


def older_lerp(a, b, w):
    """Linear interpolation a + w (b - a), as the kernels of older releases compute it."""
    return a + w * (b - a)


FUNCTIONS |= {"older_index_copy": older_index_copy, "older_lerp": older_lerp}
