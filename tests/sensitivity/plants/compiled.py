"""What torch.compile makes: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot

plot = Plot()
HITS = plot.hits


def _scaled(hit: Any, compiled: Any, factor: float) -> Any:
    """Return a compiled function whose results are multiplied."""

    def wrong(*operands: Any) -> Any:
        hit()
        return compiled(*operands) * factor

    return wrong


@plot.replaced(torch, "compile")
def issue_170360(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 170360: what torch.compile made gives twice the result."""
    return _scaled(hit, func(*args, **kwargs), 2)


@plot.replaced(torch, "compile")
def issue_191976(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191976: what torch.compile made gives a result a tenth too small."""
    return _scaled(hit, func(*args, **kwargs), 1 / 1.1)
