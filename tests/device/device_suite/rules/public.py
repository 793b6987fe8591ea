"""The function that users call for an overload which is made of others: what asks it asks the binding too."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import torch

from ..compare import Error
from .asked import calls_of
from .asking import Called, ask_calls

_HOMES = (("linalg_", torch.linalg), ("fft_", torch.fft), ("special_", torch.special))


def is_composite(func: Any) -> bool:
    """Say whether an overload is made of others for all devices: no device has a kernel of its own to be dispatched.

    >>> is_composite(torch.ops.aten.cosine_similarity.default), is_composite(torch.ops.aten.mm.default)
    (True, False)
    """
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd"))


@functools.lru_cache(maxsize=None)
def public_of(func: Any) -> Any:
    """Return the function of C++ that Python has for such an overload; the overload itself for every other.

    >>> public_of(torch.ops.aten.cosine_similarity.default) is torch.cosine_similarity
    True
    """
    if not isinstance(func, torch._ops.OpOverload) or not is_composite(func):
        return func
    packet = func._schema.name.split("::")[1]
    places = [(torch, packet), (torch._C._nn, packet)]
    places += [(home, packet[len(begin) :]) for begin, home in _HOMES if packet.startswith(begin)]
    for home, name in places:
        found = getattr(home, name, None)
        if type(found).__name__ == "builtin_function_or_method":
            return found
    return func


class Public:
    """An overload that is called by the function that users call, where one takes the same arguments."""

    def __init__(self, func: Any) -> None:
        self._func, self._public = func, public_of(func)
        self._schema, self._overloadname = func._schema, func._overloadname

    def __str__(self) -> str:
        return str(self._func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what it answers."""
        return self._public(*args, **kwargs)


def ask_public(overloads: list[tuple[str, list[Any]]], bench: Any) -> Error:
    """Return the largest error over the calls of some overloads, each called as users call it."""
    warnings.filterwarnings("ignore", message="An output with one or more elements was resized")
    return ask_calls(
        [Called(name, Public(func), call, changes) for name, func, call, changes in calls_of(overloads)], bench
    )
