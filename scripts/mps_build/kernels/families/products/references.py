"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def spread_addbmm(a: Any, b: Any, bias: Any, alpha: Any, beta: Any) -> Any:
    """beta * bias + alpha * the sum of a batch of matrix products."""
    return alpha * (a @ b).sum(0) + beta * bias


def nn_grouped_rows(a: Any, b: Any, offsets: Any) -> Any:
    """Products of groups of rows of `a` with a matrix of `b` each; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(zip([0, *ends], ends, strict=False))])


def nn_grouped_terms(a: Any, b: Any, offsets: Any) -> Any:
    """Products over groups of the inner dimension; `offsets` are the groups' ends."""
    ends = [int(each) for each in offsets]
    return torch.stack([a[:, i:j] @ b[i:j] for i, j in zip([0, *ends], ends, strict=False)])


def scaled_product(a: Any, b: Any, one: Any, two: Any, bias: Any) -> Any:
    """Product of two matrices, scaled by row and by column, with a bias; in float64."""
    x, y = a.to(torch.float64), b.to(torch.float64)
    out = (x @ y.T) * one.to(torch.float64).unsqueeze(-1) * two.to(torch.float64)
    return out + (bias.to(torch.float64) if isinstance(bias, torch.Tensor) else 0)


def int4_product(a: Any, weights: Any, zeros: Any, group: Any) -> Any:
    """Each weight is (code - 8) * scale + zero of its group."""
    scale, zero = (zeros[..., which].T.repeat_interleave(group, 1) for which in (0, 1))
    return a @ ((weights.to(a.dtype) - 8) * scale + zero).T


def int8_product(a: Any, b: Any, scales: Any) -> Any:
    """Product with a matrix of int8, each column with a scale of its own."""
    return (a @ b.to(a.dtype).T) * scales


def whole_product(a: Any, b: Any) -> Any:
    """Product of two integer matrices in int64."""
    return (a.to(torch.int64).unsqueeze(2) * b.to(torch.int64).unsqueeze(0)).sum(1)
