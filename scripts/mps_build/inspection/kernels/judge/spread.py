"""References of strided forms of a few operators."""

from __future__ import annotations

import torch


def spread_cross(a, b, dim):
    return torch.linalg.cross(a, b, dim=dim)


def spread_combination(before, x, coefficients):
    return before + (x * coefficients.movedim(-1, 0)).sum(0)


def spread_addbmm(a, b, bias, alpha, beta):
    return alpha * (a @ b).sum(0) + beta * bias


FUNCTIONS = {"spread_cross": spread_cross, "spread_combination": spread_combination, "spread_addbmm": spread_addbmm}


def older_index_copy(x, source, index, dim):
    return x.index_copy(dim, torch.tensor(index), source)


def older_lerp(a, b, w):
    return a + w * (b - a)


FUNCTIONS |= {"older_index_copy": older_index_copy, "older_lerp": older_lerp}
