"""References of gradient scaling that are more than an expression."""

from __future__ import annotations

from typing import Any

import torch


def nn_update_scale(scale: Any, tracker: Any, found: Any, which: Any) -> Any:
    """The scale (which=0) or the growth tracker (which=1) after a step of gradient scaling."""
    scale, steps = scale.to(torch.float32), torch.tensor([tracker], dtype=torch.int32)
    torch._amp_update_scale_(scale, steps, torch.tensor([found]), 2.5, 0.375, 4)
    return (scale, steps)[which]
