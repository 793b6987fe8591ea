"""References of cross that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def spread_cross(a: Any, b: Any, dim: Any) -> Any:
    """Cross product along one dimension."""
    return torch.linalg.cross(a, b, dim=dim)
