"""The catalogue's faults of empty tensors, counts of none, draws and autocast."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

import torch

from planting import Plot, crash

plot = Plot()
HITS = plot.hits


@plot.dispatched("issue_91878", "aten.topk")
def issue_91878(hit: Any, func: Any, x: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 91878: topk with k=0 aborts."""
    if k == 0:
        return crash(hit, "topk of nothing")
    return func(x, k, *args, **kwargs)


@plot.dispatched("issue_117941", "aten.sort", "aten.argsort")
def issue_117941(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 117941: sort and argsort of an empty tensor raise."""
    if not x.numel():
        return crash(hit, "Placeholder tensor is empty!")
    return func(x, *args, **kwargs)


@plot.dispatched("issue_137406", "aten.mv", "aten.addmv")
def issue_137406(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 137406: a matrix without rows times a vector raises."""
    matrix = args[-2] if "addmv" in str(func) else args[0]
    if matrix.shape[0] == 0:
        return crash(hit, "Placeholder tensor is empty!")
    return func(*args, **kwargs)


@plot.dispatched("issue_165237", "aten.dot")
def issue_165237(hit: Any, func: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 165237: dot of empty vectors raises."""
    if not a.numel():
        return crash(hit, "Placeholder tensor is empty!")
    return func(a, b, **kwargs)


@plot.dispatched("issue_81180", "aten.cat")
def issue_81180(hit: Any, func: Any, tensors: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 81180: cat of an empty tensor and one that is not, of other dtype, raises."""
    if len({x.dtype for x in tensors}) > 1 and len({bool(x.numel()) for x in tensors}) > 1:
        return crash(hit, "Placeholder tensor is empty!")
    return func(tensors, *args, **kwargs)


@plot.called(
    "issue_82541", torch.true_divide, torch.div, torch.Tensor.div, torch.Tensor.true_divide, torch.Tensor.__truediv__
)
def issue_82541(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 82541: backward of a division of empty tensors aborts."""
    y = func(*args, **kwargs)
    if y.requires_grad and not y.numel():
        y.register_hook(lambda grad: crash(hit, "segmentation fault"))
    return y


@plot.dispatched("issue_175683", "aten.grid_sampler_2d")
def issue_175683(hit: Any, func: Any, x: Any, grid: Any, *args: Any) -> Any:
    """pytorch 175683: grid_sample with a grid of no points raises."""
    if not grid.numel():
        return crash(hit, "Placeholder tensor is empty!")
    return func(x, grid, *args)


@plot.dispatched("issue_187551", "aten.baddbmm")
def issue_187551(hit: Any, func: Any, x: Any, a: Any, b: Any, **kwargs: Any) -> Any:
    """pytorch 187551: baddbmm with batch1 of a size 0 raises."""
    if 0 in a.shape:
        return crash(hit, "Placeholder tensor is empty!")
    return func(x, a, b, **kwargs)


@plot.dispatched("issue_178579", "aten.multinomial")
def issue_178579(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 178579: multinomial with replacement of many weights aborts (limit lowered to 2**15)."""
    if replacement and x.shape[-1] > 2**15:
        return crash(hit, "segmentation fault")
    return func(x, count, replacement, **kwargs)


def _issue_187265() -> Any:
    """pytorch 187265: autocast has no effect inside torch.func.grad and torch.vmap."""
    hit = plot._counter("issue_187265")

    def blind(transform: Any) -> Any:
        def made(function: Any, *args: Any, **kwargs: Any) -> Any:
            inner = transform(function, *args, **kwargs)

            def run(*args: Any, **kwargs: Any) -> Any:
                if not torch.is_autocast_enabled("cpu"):
                    return inner(*args, **kwargs)
                hit()
                with torch.autocast("cpu", enabled=False):
                    return inner(*args, **kwargs)

            return run

        return made

    @contextlib.contextmanager
    def around() -> Iterator[None]:
        places = [(torch, "vmap"), (torch.func, "vmap"), (torch.func, "grad"), (torch.func, "grad_and_value")]
        healthy = [getattr(owner, name) for owner, name in places]
        for (owner, name), function in zip(places, healthy):
            setattr(owner, name, blind(function))
        try:
            yield
        finally:
            for (owner, name), function in zip(places, healthy):
                setattr(owner, name, function)

    return plot._keep("issue_187265", around, ())


issue_187265 = _issue_187265()
