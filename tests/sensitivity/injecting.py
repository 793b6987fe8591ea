"""How faults are injected: dispatch modes, function modes, replaced public functions, each counted.

A file of faults holds names that are callables without arguments and return context managers, and HITS.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, ContextManager, Iterator

from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

Maker = Callable[[], ContextManager[Any]]
# A fault gets the healthy function and the arguments; it calls `hit()` where it really does harm.
Fault = Callable[..., Any]


class Faults:
    """The faults of one file: makers by name, how often each fired, what goes wrong, and where (nothing: anywhere)."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = {}
        self.makers: dict[str, Maker] = {}
        self.effects: dict[str, str] = {}
        self.places: dict[str, tuple[Any, ...]] = {}

    def dispatched(self, *operators: str, aborts: str = "") -> Callable[[Fault], Maker]:
        """Inject a fault at operators: `aten.mm` for all its overloads, or one overload.

        A fault is called as its function. That is `fault(hit, func, *args, **kwargs)`; or with `aborts`, what the
        process says then, it says by `fault(*args, **kwargs)` whether the process aborts.
        """

        def inject(fault: Fault) -> Maker:
            hit, wrong = self._counter(fault), _aborting(fault, aborts)

            class Mode(TorchDispatchMode):
                def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    text = str(func)
                    if text in operators or text.rpartition(".")[0] in operators:
                        return wrong(hit, func, *args, **(kwargs or {}))
                    return func(*args, **(kwargs or {}))

            return self._keep(fault, Mode, operators)

        return inject

    def called(self, *functions: Any, aborts: str = "") -> Callable[[Fault], Maker]:
        """Inject a fault, as `dispatched` does, at public functions, above autograd."""

        def inject(fault: Fault) -> Maker:
            hit, wrong = self._counter(fault), _aborting(fault, aborts)

            class Mode(TorchFunctionMode):
                def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    if func in functions:
                        return wrong(hit, func, *args, **(kwargs or {}))
                    return func(*args, **(kwargs or {}))

            return self._keep(fault, Mode, functions)

        return inject

    def replaced(self, owner: Any, attribute: str) -> Callable[[Fault], Maker]:
        """Inject `fault(hit, func, *args, **kwargs)` in the place of owner.attribute."""

        def inject(fault: Fault) -> Maker:
            hit = self._counter(fault)

            @contextlib.contextmanager
            def around() -> Iterator[None]:
                healthy = getattr(owner, attribute)
                setattr(owner, attribute, lambda *args, **kwargs: fault(hit, healthy, *args, **kwargs))
                try:
                    yield
                finally:
                    setattr(owner, attribute, healthy)

            return self._keep(fault, around, ())

        return inject

    def entered(self, *functions: Any) -> Callable[[Fault], Maker]:
        """Inject `fault(hit)`, which returns a context manager of its own: what the other ways cannot express."""

        def inject(fault: Fault) -> Maker:
            hit = self._counter(fault)
            return self._keep(fault, lambda: fault(hit), functions)

        return inject

    def _counter(self, fault: Fault) -> Callable[[], None]:
        name = fault.__name__
        self.hits[name] = 0

        def hit() -> None:
            self.hits[name] += 1

        return hit

    def _keep(self, fault: Fault, maker: Maker, places: tuple[Any, ...]) -> Maker:
        name = fault.__name__
        if name in self.makers:
            raise ValueError(f"two faults are called {name}")
        self.makers[name], self.places[name] = maker, places
        self.effects[name] = (fault.__doc__ or "").strip().partition("\n")[0]
        return maker


@contextlib.contextmanager
def held_in_place(owner: Any, attribute: str, other: Any) -> Iterator[None]:
    """Hold a function in the place of owner.attribute, also for those that looked it up before."""
    healthy = getattr(owner, attribute)

    class Mode(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return (other if func is healthy else func)(*args, **(kwargs or {}))

    setattr(owner, attribute, other)
    try:
        with Mode():
            yield
    finally:
        setattr(owner, attribute, healthy)


def _aborting(fault: Fault, text: str) -> Fault:
    """Return a fault, or where it says `text` the fault that its condition makes."""

    def abort(hit: Callable[[], None], func: Any, *args: Any, **kwargs: Any) -> Any:
        return crash(hit, text) if fault(*args, **kwargs) else func(*args, **kwargs)

    return abort if text else fault


def crash(hit: Callable[[], None], text: str) -> Any:
    """Play an abort of the process; the driver sees both as a case that did not end well."""
    hit()
    raise RuntimeError(text)


class Aborted(BaseException):
    """The process ends. It is no Exception: nothing that takes a refusal for a right answer may catch it."""


def abort(hit: Callable[[], None], text: str) -> Any:
    """Play an abort where the healthy operator refuses too, so that an error would be the right answer."""
    hit()
    raise Aborted(text)


def accepted(rule: Fault) -> Fault:
    """Make a fault of a rule that answers arguments which the healthy operator refuses, or returns None."""

    @functools.wraps(rule)
    def fault(hit: Callable[[], None], func: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return func(*args, **kwargs)
        except (IndexError, RuntimeError, ValueError):
            answer = rule(*args, **kwargs)
            if answer is None:
                raise
        hit()
        return answer

    return fault


def wrong_answer(rule: Fault) -> Fault:
    """Make a fault of a rule that gets the right answer and the arguments: it returns a wrong one, or None."""

    @functools.wraps(rule)
    def fault(hit: Callable[[], None], func: Any, *args: Any, **kwargs: Any) -> Any:
        right = func(*args, **kwargs)
        wrong = rule(right, *args, **kwargs)
        if wrong is None:
            return right
        hit()
        return wrong

    return fault


def answered(func: Any, x: Any, y: Any) -> Any:
    """Return a result, or write it to the operand where the operator works in place."""
    return x.copy_(y) if str(func).partition(".")[2].partition(".")[0].endswith("_") else y
