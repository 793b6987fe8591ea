"""How the catalogue's faults are planted: dispatch modes, function modes, replaced public functions, each counted.

A plant file holds names that are callables without arguments and return context managers, and HITS.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, ContextManager, Iterator

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

Maker = Callable[[], ContextManager[Any]]
# A fault gets the healthy function and the arguments; it calls `hit()` where it really does harm.
Fault = Callable[..., Any]


class Plot:
    """The plants of one file: makers by name, how often each fired, and what each is planted at (nothing: anything)."""

    def __init__(self) -> None:
        self.hits: dict[str, int] = {}
        self.makers: dict[str, Maker] = {}
        self.places: dict[str, tuple[Any, ...]] = {}

    def dispatched(self, name: str, *operators: str) -> Callable[[Fault], Maker]:
        """Plant `fault(hit, func, *args, **kwargs)` at operators: `aten.mm` for all its overloads, or one overload."""

        def plant(fault: Fault) -> Maker:
            hit = self._counter(name)

            class Mode(TorchDispatchMode):
                def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    text = str(func)
                    if text in operators or text.rpartition(".")[0] in operators:
                        return fault(hit, func, *args, **(kwargs or {}))
                    return func(*args, **(kwargs or {}))

            return self._keep(name, Mode, operators)

        return plant

    def called(self, name: str, *functions: Any) -> Callable[[Fault], Maker]:
        """Plant `fault(hit, func, *args, **kwargs)` at public functions, above autograd."""

        def plant(fault: Fault) -> Maker:
            hit = self._counter(name)

            class Mode(TorchFunctionMode):
                def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                    if func in functions:
                        return fault(hit, func, *args, **(kwargs or {}))
                    return func(*args, **(kwargs or {}))

            return self._keep(name, Mode, functions)

        return plant

    def replaced(self, name: str, owner: Any, attribute: str) -> Callable[[Fault], Maker]:
        """Plant `fault(hit, func, *args, **kwargs)` in the place of owner.attribute."""

        def plant(fault: Fault) -> Maker:
            hit = self._counter(name)

            @contextlib.contextmanager
            def around() -> Iterator[None]:
                healthy = getattr(owner, attribute)
                setattr(owner, attribute, lambda *args, **kwargs: fault(hit, healthy, *args, **kwargs))
                try:
                    yield
                finally:
                    setattr(owner, attribute, healthy)

            return self._keep(name, around, ())

        return plant

    def _counter(self, name: str) -> Callable[[], None]:
        self.hits[name] = 0

        def hit() -> None:
            self.hits[name] += 1

        return hit

    def _keep(self, name: str, maker: Maker, places: tuple[Any, ...]) -> Maker:
        if name in self.makers:
            raise ValueError(f"two plants are called {name}")
        self.makers[name], self.places[name] = maker, places
        return maker


def dense_strides(shape: Any) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    found, step = [], 1
    for side in reversed(shape):
        found.insert(0, step)
        step *= max(side, 1)
    return tuple(found)


def in_storage_order(x: torch.Tensor) -> torch.Tensor:
    """Read a view as if it were contiguous, as far as its storage goes."""
    if x.is_contiguous() or x.storage_offset() + x.numel() > x.untyped_storage().nbytes() // x.element_size():
        return x
    return x.as_strided(x.shape, dense_strides(x.shape), x.storage_offset())


def without_offset(x: torch.Tensor) -> torch.Tensor:
    """Read a view from the beginning of its storage."""
    return x.as_strided(x.shape, x.stride(), 0)


def misread(read: Callable[[torch.Tensor], torch.Tensor], hit: Callable[[], None], value: Any) -> Any:
    """Return nested arguments with every tensor that `read` would change read wrongly."""

    def change(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or x.numel() < 2 or x.layout != torch.strided:
            return x
        wrong = read(x)
        if wrong is x or (wrong.stride() == x.stride() and wrong.storage_offset() == x.storage_offset()):
            return x
        hit()
        return wrong

    return tree_map(change, value)


def lost(hit: Callable[[], None], func: Any, target: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """Compute on a copy where the destination is not contiguous, and return the destination unchanged."""
    if target.is_contiguous():
        return func(target, *args, **kwargs)
    hit()
    func(target.contiguous(), *args, **kwargs)
    return target


def crash(hit: Callable[[], None], text: str) -> Any:
    """Stand in for an abort of the process; the driver sees both as a case that did not end well."""
    hit()
    raise RuntimeError(text)
