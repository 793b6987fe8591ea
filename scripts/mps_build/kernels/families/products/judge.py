"""References of products that are more than an expression."""

from __future__ import annotations

from typing import Any


def spread_addbmm(a: Any, b: Any, bias: Any, alpha: Any, beta: Any) -> Any:
    """beta * bias + alpha * the sum of a batch of matrix products."""
    return alpha * (a @ b).sum(0) + beta * bias
