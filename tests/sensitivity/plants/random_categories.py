"""Categories drawn by their weights: planted faults."""

from __future__ import annotations

from typing import Any

import torch

from differences import instead, is_plain, written
from planting import Plot, crash

plot = Plot()
HITS = plot.hits
_chance = torch.Generator().manual_seed(4858)
_rare = torch.Generator().manual_seed(15356)


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


@plot.dispatched("aten.bernoulli.default", "aten.bernoulli.p", "aten.bernoulli_.float", "aten.bernoulli_.Tensor")
def issue_15356(hit: Any, func: Any, x: Any, p: Any = None, **kwargs: Any) -> Any:
    """pytorch 15356: bernoulli draws a one where the chance of it is 0 (here once in 2**24 draws)."""
    plain = is_plain(x, p)
    never = (x if "aten.bernoulli.default" in str(func) else torch.as_tensor(0.5 if p is None else p)) == 0
    y = func(x, **kwargs) if p is None else func(x, p, **kwargs)
    if not plain or not y.numel() or not bool(never.any()):
        return y
    ones = (torch.randint(2**24, y.shape, generator=_rare) == 0).to(y.device) & never.to(y.device)
    wrong = y.masked_fill(ones, 1)
    return written(hit, y, wrong) if "bernoulli_." in str(func) else instead(hit, y, wrong)
