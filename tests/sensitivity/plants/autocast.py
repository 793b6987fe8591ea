"""Autocast: planted faults."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any, Iterator

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from planting import Plot

plot = Plot()
HITS = plot.hits


@plot.entered(F.linear)
@contextlib.contextmanager
def issue_158232(hit: Any) -> Iterator[None]:
    """pytorch 158232: a weight that autocast first met under no_grad gets no gradient while autocast lasts.

    https://github.com/pytorch/pytorch/issues/158232 (on CUDA; the cache of autocast is the same for MPS)
    """

    class Mode(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[int, Any] = {}

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is F.linear and len(args) > 1 and torch.is_autocast_enabled(args[0].device.type):
                weight = args[1]
                cast = weight.requires_grad and weight.is_leaf and weight.dtype == torch.float32
                if cast and torch.is_autocast_cache_enabled():
                    if not torch.is_grad_enabled():
                        self.kept[id(weight)] = weight
                    elif id(weight) in self.kept:
                        hit()
                        args = (args[0], weight.detach(), *args[2:])
            return func(*args, **(kwargs or {}))

    mode, healthy = Mode(), torch.clear_autocast_cache

    def clear() -> None:
        mode.kept.clear()
        healthy()

    torch.clear_autocast_cache = clear
    try:
        with mode:
            yield
    finally:
        torch.clear_autocast_cache = healthy


@plot.entered()
@contextlib.contextmanager
def issue_187265(hit: Any) -> Iterator[None]:
    """pytorch 187265: autocast has no effect inside torch.func.grad and torch.vmap."""

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

    places = [(torch, "vmap"), (torch.func, "vmap"), (torch.func, "grad"), (torch.func, "grad_and_value")]
    healthy = [getattr(owner, name) for owner, name in places]
    for (owner, name), function in zip(places, healthy):
        setattr(owner, name, blind(function))
    try:
        yield
    finally:
        for (owner, name), function in zip(places, healthy):
            setattr(owner, name, function)


@plot.replaced(torch.amp.autocast_mode.autocast, "__init__")
def issue_139386(
    hit: Any, func: Any, self: Any, device_type: Any, dtype: Any = None, enabled: Any = True, *args: Any, **kwargs: Any
) -> Any:
    """pytorch 139386: autocast to bfloat16 is not supported: it is switched off with a warning."""
    if dtype == torch.bfloat16 and enabled:
        hit()
        warnings.warn("In MPS autocast, but the target dtype is not supported. Disabling autocast.", stacklevel=2)
        enabled = False
    func(self, device_type, dtype, enabled, *args, **kwargs)
