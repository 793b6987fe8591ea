"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def median_of(x: Any, ignores: Any) -> Any:
    """torch's median, or nanmedian."""
    return (torch.nanmedian(x) if ignores and x.is_floating_point() else torch.median(x)).reshape(1)
