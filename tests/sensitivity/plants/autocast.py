"""Autocast: planted faults."""

from __future__ import annotations

import contextlib
import inspect
import warnings
from typing import Any, Iterator

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from planting import Plot, crash

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


def _is_on(x: Any) -> bool:
    """Say whether autocast is on where a tensor is."""
    return torch.is_tensor(x) and torch.is_autocast_enabled(x.device.type)


_HEADS = inspect.signature(F.multi_head_attention_forward)


@plot.called(F.multi_head_attention_forward)
def issue_111276(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 111276: multi_head_attention_forward of float32 with a mask raises under autocast."""
    given = _HEADS.bind(*args, **kwargs).arguments
    masked = given.get("key_padding_mask") is not None or given.get("attn_mask") is not None
    if masked and _is_on(given["query"]) and given["query"].dtype == torch.float32:
        return crash(hit, "Expected attn_mask dtype to be bool or to match query dtype")
    return func(*args, **kwargs)


@plot.replaced(torch.nn.utils.parametrizations._SpectralNorm, "forward")
def issue_125544(hit: Any, func: Any, self: Any, weight: Any) -> Any:
    """pytorch 125544: parametrizations.spectral_norm raises under autocast (in training)."""
    fails = _is_on(weight) and self.training
    return crash(hit, "expected out tensor to have dtype float") if fails else func(self, weight)


@plot.called(torch.linalg.vector_norm)
def issue_125174(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 125174: vector_norm of one float16 number is broken under autocast (here it raises)."""
    y = func(x, *args, **kwargs)
    return crash(hit, "Cannot cast") if _is_on(x) and x.dtype == torch.float16 and x.numel() == 1 else y


@plot.called(torch.index_put, torch.Tensor.index_put)
def issue_132715(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 132715: index_put of bfloat16 raises under autocast to bfloat16."""
    y = func(input, *args, **kwargs)
    if _is_on(input) and input.dtype == torch.get_autocast_dtype(input.device.type) == torch.bfloat16:
        return crash(hit, "Unexpected floating ScalarType in at::autocast::prioritize")
    return y


@plot.called(torch._addmm_activation)
def issue_191796(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 191796: _addmm_activation of float32 stays in float32 under autocast."""
    if not _is_on(x) or x.dtype != torch.float32:
        return func(x, *args, **kwargs)
    hit()
    with torch.autocast(x.device.type, enabled=False):
        return func(x, *args, **kwargs)
