"""References that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_repeat(x: Any) -> Any:
    """Each index as often as its element says."""
    return torch.repeat_interleave(torch.arange(len(x)), x.to(torch.int64))
