"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def lower_factor(a: Any, above: Any) -> Any:
    """Lower factor of symmetric matrices, its first columns; above the diagonal what the kernel has there."""
    factor = torch.linalg.cholesky(a)[..., : above.shape[-1]]
    rows, columns = torch.arange(factor.shape[-2]), torch.arange(factor.shape[-1])
    return torch.where(rows[:, None] >= columns, factor, above)


def inverse(a: Any) -> Any:
    """Inverse of each matrix."""
    return torch.linalg.inv(a)


def lu_solved(a: Any, at: Any, rows: Any, begin: Any, end: Any, upper: Any, unit: Any) -> Any:
    """Some columns of rows of a matrix, solved by the triangle of these rows; the rest as it was."""
    out, here = a.clone(), slice(at, at + rows)
    triangle = a[..., here, here]
    out[..., here, begin:end] = torch.linalg.solve_triangular(
        triangle, a[..., here, begin:end], upper=bool(upper), unitriangular=bool(unit)
    )
    return out


def lu_updated(a: Any, rows: Any, columns: Any, first: Any, terms: Any) -> Any:
    """A window less a product of parts of the same matrix; the rest as it was."""
    out, inner = a.clone(), slice(first, first + terms)
    down, across = slice(*rows), slice(*columns)
    out[..., down, across] -= a[..., down, inner] @ a[..., inner, across]
    return out


def lu_panel(a: Any, at: Any, width: Any) -> Any:
    """Some columns of a matrix, from the row of the first on, factored with pivots; the rest as it was."""
    out = a.clone()
    out[..., at:, at : at + width] = torch.linalg.lu_factor(a[..., at:, at : at + width])[0]
    return out


def lu_pivots(a: Any, at: Any, width: Any) -> Any:
    """The rows that such a factorization exchanges, counted from 1."""
    return torch.linalg.lu_factor(a[..., at:, at : at + width])[1] + at


def reflections(a: Any, tau: Any) -> Any:
    """First columns of the product of the reflections that lie below a matrix's diagonal."""
    return torch.linalg.householder_product(a, tau)


def spread_combination(before: Any, x: Any, coefficients: Any) -> Any:
    """What was there plus a linear combination of rows."""
    return before + (x * coefficients.movedim(-1, 0)).sum(0)


def spread_cross(a: Any, b: Any, dim: Any) -> Any:
    """Cross product along one dimension."""
    return torch.linalg.cross(a, b, dim=dim)
