"""References of distances that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_cdist_backward(x1: Any, x2: Any, grad: Any, far: Any, norm: Any, power: Any) -> Any:
    """Gradient of the pairwise distances by the first set of points, for the norms 0, 1, 2, p and infinity."""
    gap, grad, far = x1.unsqueeze(2) - x2.unsqueeze(1), grad.unsqueeze(-1), far.unsqueeze(-1)
    if norm == 0:
        terms = grad * torch.sign(gap)
    elif norm == 1:
        terms = torch.where(gap.abs() == far, grad * torch.sign(gap), 0)
    else:
        terms = torch.where(far == 0, 0, grad * torch.sign(gap) * gap.abs() ** (power - 1) / far ** (power - 1))
    return terms.sum(2)
