"""References of matrix exponentials that are more than an expression."""

from __future__ import annotations

from typing import Any


def spread_combination(before: Any, x: Any, coefficients: Any) -> Any:
    """What was there plus a linear combination of rows."""
    return before + (x * coefficients.movedim(-1, 0)).sum(0)
