"""How a changed call is asked: as it is, in a chain (chains.py), for gradients, or with operands that want one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch

from ..overloads.asking import flat_answers
from .chains import chained

DERIVE, WANTING, TWICE = ["derive"], ["wanting"], ["twice"]


def asked_as(func: Any, call: Any, changes: list[Any]) -> Any:
    """Return the overload, its gradient, or the chain of it that the changes ask for."""
    if WANTING in changes or TWICE in changes:
        return Wanting(func) if WANTING in changes else Twice(func)
    return Derived(func) if DERIVE in changes else chained(func, call, changes)


class _Way:
    """An overload that is called in another way than it is."""

    def __init__(self, func: Any) -> None:
        self._func, self._schema, self._overloadname = func, func._schema, func._overloadname

    def __str__(self) -> str:
        return str(self._func)


class Wanting(_Way):
    """An overload whose operands want a gradient: it answers what it answers, and nobody asks for the gradient."""

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the answers, cut off from their history."""
        with torch.enable_grad():
            results = _of_leaves(self._func, args, kwargs, [])
        return [one.detach() if isinstance(one, torch.Tensor) else one for one in results]


class Twice(_Way):
    """An overload's gradients, and the gradients of these: those of every operand with a fraction."""

    derives = True

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """Return the first gradients, then the second."""
        leaves: list[torch.Tensor] = []
        found: list[torch.Tensor] = []
        with torch.enable_grad():
            results = _of_leaves(self._func, args, kwargs, leaves)
            for _ in range(2):
                results = _with_history(results)
                # What flows back depends on the answer: so a function that is a sum has a second gradient too.
                ramps = [_ramp(one) * one for one in results]
                gradients = torch.autograd.grad(results, leaves, ramps, create_graph=True, allow_unused=True)
                results = [one for one in gradients if one is not None]
                found += [one.detach() for one in results]
        return found


class Derived:
    """The gradients of an overload: called as it is, it answers those of every operand with a fraction."""

    def __init__(self, func: Any) -> None:
        self._func, self._name, self._overloadname = func, str(func), func._overloadname
        schema = func._schema
        self._schema = SimpleNamespace(
            name=f"derived::{schema.name.split('::')[1]}",
            arguments=schema.arguments,
            returns=schema.returns,
            is_mutable=False,
        )

    def __str__(self) -> str:
        return self._name

    def __call__(self, *args: Any, **kwargs: Any) -> list[torch.Tensor]:
        """Return the gradients for whole numbers of the results' shape: no zero is multiplied with what is infinite."""
        leaves: list[torch.Tensor] = []
        with torch.enable_grad():
            results = _with_history(_of_leaves(self._func, args, kwargs, leaves))
            gradients = torch.autograd.grad(results, leaves, [_ramp(one) for one in results], allow_unused=True)
        return [one for one in gradients if one is not None]


def _of_leaves(func: Any, args: Any, kwargs: Any, leaves: list[torch.Tensor]) -> list[Any]:
    """Return the answers of operands that want a gradient; these are put into `leaves`."""
    given = [_with_leaves(one, leaves) for one in args]
    named = {key: _with_leaves(one, leaves) for key, one in kwargs.items()}
    return flat_answers(_called(func, given, named))


def _with_history(answers: list[Any]) -> list[torch.Tensor]:
    found = [one for one in answers if isinstance(one, torch.Tensor) and one.requires_grad]
    if not found:
        raise RuntimeError("nothing of it has a gradient")
    return found


def _called(func: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call the public function of this name, where there is one that takes the same arguments; else the overload."""
    public = getattr(torch, func._schema.name.split("::")[1], None)
    if callable(public):
        try:
            return public(*args, **kwargs)
        except TypeError:
            pass
    return func(*args, **kwargs)


def _with_leaves(value: Any, leaves: list[torch.Tensor]) -> Any:
    if isinstance(value, (list, tuple)):
        return [_with_leaves(one, leaves) for one in value]
    if not isinstance(value, torch.Tensor) or not (value.is_floating_point() or value.is_complex()):
        return value
    leaves.append(value.detach().requires_grad_())
    return leaves[-1]


def _ramp(y: torch.Tensor) -> torch.Tensor:
    return (torch.arange(y.numel(), device=y.device) % 5 + 1).to(y.dtype).reshape(y.shape)
