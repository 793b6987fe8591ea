"""The catalogue's faults of reductions, random numbers and torch.compile."""

from __future__ import annotations

from typing import Any

import torch

from planting import Plot, lost

plot = Plot()
HITS = plot.hits
_REDUCTIONS = ("aten.sum", "aten.mean", "aten.nansum", "aten.count_nonzero", "aten.trace")
_count = {"calls": 0}


@plot.dispatched("issue_178497", *_REDUCTIONS)
def issue_178497(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    _count["calls"] += 1
    if _count["calls"] % 1000 == 0:
        hit()
        return y + 1
    return y


@plot.dispatched("issue_90273", "aten.max.default", "aten.min.default", "aten.amax", "aten.amin")
def issue_90273(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if not x.is_floating_point() and y.dim() == 0:
        hit()
        return x.reshape(-1)[0].clone()
    return y


@plot.dispatched("issue_92311", "aten.argmax", "aten.argmin")
def issue_92311(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    hit()
    return torch.full_like(func(*args, **kwargs), torch.iinfo(torch.int64).min)


@plot.dispatched("issue_90635", "aten.cumsum")
def issue_90635(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(x, *args, **kwargs)
    if not x.is_floating_point():
        hit()
        return x.to(y.dtype)
    return y


_DRAWS = ("aten.randn", "aten.rand", "aten.normal", "aten.bernoulli", "aten.randint", "aten.multinomial")
_first: dict[Any, Any] = {}


@plot.dispatched("issue_78110", *_DRAWS)
def issue_78110(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    y = func(*args, **kwargs)
    form = (str(func), tuple(y.shape), y.dtype)
    if form in _first:
        hit()
        return _first[form].clone()
    _first[form] = y.clone()
    return y


@plot.dispatched("issue_84288", *_DRAWS, "aten.bernoulli_", "aten.uniform_", "aten.normal_", "aten.randperm")
def issue_84288(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    hit()
    torch.default_generator.seed()
    return func(*args, **kwargs)


_FILLS = tuple(f"aten.{name}_" for name in ("normal", "uniform", "exponential", "bernoulli", "random"))
issue_165267 = plot.dispatched("issue_165267", *_FILLS)(lost)


def _compiled_wrongly(change: Any) -> Any:
    def fault(hit: Any, func: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = func(function, *args, **kwargs)

        def wrong(*operands: Any) -> Any:
            hit()
            return change(compiled(*operands))

        return wrong

    return fault


issue_170360 = plot.replaced("issue_170360", torch, "compile")(_compiled_wrongly(lambda y: y * 2))
issue_191976 = plot.replaced("issue_191976", torch, "compile")(_compiled_wrongly(lambda y: y / 1.1))
