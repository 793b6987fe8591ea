"""Numbers of the Gamma, the Beta and the Dirichlet distribution, and their densities: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import differ, instead, is_plain
from planting import Plot, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.replaced(torch.distributions.Beta, "rsample")
def issue_12373(hit: Any, func: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 12373: a Beta whose float32 parameters have one number each (shape (1,)) draws wrongly (here 0.5).

    Without gradients alone: how the report draws.
    """
    y = func(self, *args, **kwargs)
    if self.batch_shape != (1,) or y.dtype != torch.float32 or y.requires_grad or not is_plain(y):
        return y
    return instead(hit, y, torch.full_like(y, 0.5))


@plot.replaced(torch.distributions.Beta, "log_prob")
def issue_92260(hit: Any, func: Any, self: Any, value: Any) -> Any:
    """pytorch 92260: log_prob of a Beta(1, 1) is NaN at 0 and 1."""
    y = func(self, value)
    if not is_plain(y, value):
        return y
    flat = (self.concentration1 == 1) & (self.concentration0 == 1)
    return instead(hit, y, y.masked_fill(flat & ((value == 0) | (value == 1)), torch.nan))


@plot.dispatched("aten._standard_gamma.default", aborts="Segmentation fault (core dumped)")
def issue_6623(*args: Any, **kwargs: Any) -> bool:
    """pytorch 6623: drawing from a Gamma distribution ends the process."""
    return True


@plot.dispatched("aten._dirichlet_grad.default")
@wrong_answer
def issue_57447(y: Any, x: Any, alpha: Any, total: Any) -> Any:
    """pytorch 57447: _dirichlet_grad of float32 is wrong for large concentrations (there NaN and -0.0010).

    Here of a total of 93909.5 and more: NaN below a half, -94 times as much above.
    """
    if y.dtype != torch.float32 or not is_plain(y, total):
        return None
    wrong = torch.where(total >= 93909.5, torch.where(x < 0.5, torch.full_like(y, torch.nan), -94 * y), y)
    return wrong if differ(wrong, y) else None
