"""Categories drawn by their weights: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain
from planting import Plot, crash

plot = Plot()
HITS = plot.hits
_chance = torch.Generator().manual_seed(4858)


@plot.dispatched("aten.multinomial.default")
def issue_4858(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 4858: multinomial with replacement draws the first category, of no weight (here once in 2**24 draws)."""
    y = func(x, count, replacement, **kwargs)
    if not replacement or not is_plain(x) or not y.numel():
        return y
    zero = (torch.randint(2**24, y.shape, generator=_chance) == 0).to(y.device) & (x[..., :1] == 0)
    return instead(hit, y, y.masked_fill(zero, 0))


@plot.dispatched("aten.multinomial.default")
def issue_25030(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 25030: multinomial without replacement draws an element twice, not one of very little weight.

    Here that is less than 2**-24 of all weights, and the first that was drawn is drawn again.
    """
    y = func(x, count, replacement, **kwargs)
    if replacement or count < 2 or not y.numel() or not is_plain(x):
        return y
    weights = x.gather(-1, y).double()
    little = (weights > 0) & (weights < x.double().sum(-1, keepdim=True) * 2.0**-24)
    return instead(hit, y, torch.where(little, y[..., :1], y))


@plot.dispatched("aten.multinomial.default")
def issue_43768(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 43768: multinomial with replacement of no rows raises."""
    y = func(x, count, replacement, **kwargs)
    return crash(hit, "invalid configuration argument") if replacement and not y.numel() else y
