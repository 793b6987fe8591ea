"""Reference of Householder reflections."""

from __future__ import annotations

from typing import Any

import torch


def reflections(a: Any, tau: Any) -> Any:
    """First columns of the product of the reflections that lie below a matrix's diagonal."""
    return torch.linalg.householder_product(a, tau)
