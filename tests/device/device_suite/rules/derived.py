"""Rule 6: an overload with the gradients of its operands; in turn with other options, and where nothing is left."""

from __future__ import annotations

from typing import Any

import torch

from ..acts import uneven
from ..overloads.asking import flat_answers, kept_places
from ..overloads.forwards import choices_of
from .asked import calls_of
from .asking import Called, ask_calls
from .changes import ChangedCall, mapped


class Derived:
    """An overload that answers its gradients too; it is called as the overload is.

    `deterministic`: with deterministic algorithms alone, and without them besides.
    """

    derives = True

    def __init__(self, func: Any, *, deterministic: bool = False) -> None:
        self._call, self._deterministic = func, deterministic
        self._schema, self._overloadname = func._schema, func._overloadname

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Return the answers, and a gradient of each floating operand that has one."""
        if not self._deterministic:
            return self._derived(args, kwargs)
        before = torch.get_deterministic_debug_mode()
        torch.set_deterministic_debug_mode("error")  # as use_deterministic_algorithms, without loading a compiler
        try:
            found = self._derived(args, kwargs)
        except RuntimeError as raised:
            if "eterministic" in str(raised):  # this back end has none, or wants a setting of its own: it says so
                raise NotImplementedError(str(raised)) from raised
            raise
        finally:
            torch.set_deterministic_debug_mode(before)
        return [found, self._derived(args, kwargs)]

    def _derived(self, args: Any, kwargs: Any) -> list[Any]:
        leaves: list[torch.Tensor] = []

        def started(x: torch.Tensor) -> torch.Tensor:
            if not (x.is_floating_point() or x.is_complex()):
                return x
            leaves.append(x.detach().requires_grad_())
            return leaves[-1]

        with torch.enable_grad():
            given, named = mapped(list(args), started), mapped(kwargs, started)
            every = flat_answers(self._call(*given, **named))
            kept = kept_places(self._call, len(every))
            answers = [one for place, one in enumerate(every) if isinstance(one, torch.Tensor) and place not in kept]
            wanted = [one for one in answers if one.requires_grad]
            torch.autograd.backward(wanted, [uneven(one.detach()) for one in wanted])
        return [[one.detach() for one in answers], [one.grad for one in leaves]]


def ask_again(overloads: list[Any], bench: Any) -> Any:
    """Ask each call with its gradient before and after one with another option, of the same shapes."""
    calls = []
    for name, func, call, changes in calls_of(overloads):
        with_gradient = Derived(func)
        plain = ChangedCall(func, call.given, changes[:-1], choices_of(name))
        calls += [Called(name, with_gradient, one, changes) for one in (plain, call, plain)]
    return ask_calls(calls, bench)


def ask_deterministic(overloads: list[Any], bench: Any) -> Any:
    """Ask each call with its gradient, with deterministic algorithms and without them."""
    return ask_calls(
        [
            Called(name, Derived(func, deterministic=True), call, changes)
            for name, func, call, changes in calls_of(overloads)
        ],
        bench,
    )
