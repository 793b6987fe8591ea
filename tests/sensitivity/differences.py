"""Does a fault's answer differ from the healthy one? What does not differ does no harm and is no hit."""

from __future__ import annotations

from typing import Any

import torch


def differ(one: torch.Tensor, other: torch.Tensor, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Tell whether two results differ, floating ones by more than a tolerance; NaN counts as itself."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return True
    inexact = one.dtype.is_floating_point or one.dtype.is_complex
    if inexact and (rtol or atol):
        return not torch.allclose(one, other, rtol=rtol, atol=atol, equal_nan=True)
    different = one.ne(other)
    if inexact:
        different = different & ~(one.isnan() & other.isnan())
    return bool(different.any())


def is_plain(*values: Any) -> bool:
    """Say whether the values can be looked at: not under vmap or grad of functorch, not on the meta device."""
    wrapped = torch._C._functorch.is_functorch_wrapped_tensor
    return not any(torch.is_tensor(x) and (wrapped(x) or x.is_meta) for x in values)


def instead(hit: Any, healthy: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Return the wrong answer, and count it, where it is another one."""
    if not differ(healthy, wrong):
        return healthy
    hit()
    return wrong


def written(hit: Any, target: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
    """Write the wrong answer over the healthy one that `target` holds, and count it, where it is another one."""
    if differ(target, wrong):
        hit()
        target.copy_(wrong)
    return target
