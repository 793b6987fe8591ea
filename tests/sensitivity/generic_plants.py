"""Generic plants: six faults for any overload, each a dispatch mode that counts how often it changed a bit.

None of them knows the suite: result x 1.01, last element zeroed, strides ignored, storage offset dropped,
write lost, second call stale.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from differences import differ

KINDS = ("scaled", "tail", "strides", "offset", "lost", "stale")
# What an operator leaves open cannot be wrong: uninitialised memory.
UNDEFINED = (
    "empty",
    "new_empty",
    "resize",
    "empty_like",
    "empty_strided",
    "new_empty_strided",
    "set_",
    "record_stream",
)


class Traits(TorchDispatchMode):
    """Records, for each overload, what its calls were like: which faults could touch it at all."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, set[str]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        traits = self.seen.setdefault(str(func), {"scaled", "tail", "stale"})
        if _writes(func):
            traits.add("lost")
        if "strides" not in traits or "offset" not in traits:
            for tensor in _tensors((args, kwargs)):
                if tensor.layout == torch.strided and tensor.numel() > 1:
                    if not tensor.is_contiguous():
                        traits.add("strides")
                    if tensor.storage_offset():
                        traits.add("offset")
        return func(*args, **(kwargs or {}))


class GenericPlant(TorchDispatchMode):
    """One fault of one overload. `changed` counts the calls whose answer it altered."""

    def __init__(self, overload: str, kind: str) -> None:
        super().__init__()
        self.overload = overload
        self.kind = kind
        self.hits = 0
        self.changed = 0
        self._kept: dict[Any, Any] = {}
        self._fault: Callable[..., Any] = getattr(self, "_" + kind)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if str(func) != self.overload:
            return func(*args, **kwargs)
        self.hits += 1
        return self._fault(func, args, kwargs)

    def _scaled(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._altered(func, args, kwargs, lambda x: (x * 1.01).to(x.dtype))

    def _tail(self, func: Any, args: Any, kwargs: Any) -> Any:
        def zero_last(x: torch.Tensor) -> torch.Tensor:
            y = x.clone()
            if y.numel():
                y[tuple(side - 1 for side in y.shape)] = 0
            return y

        return self._altered(func, args, kwargs, zero_last)

    def _altered(self, func: Any, args: Any, kwargs: Any, alter: Any) -> Any:
        result = func(*args, **kwargs)
        if _writes(func):
            for target in _written(func, args, kwargs):
                self._overwrite(target, alter(target))
            return result
        return tree_map(lambda x: self._replaced(x, alter(x)) if isinstance(x, torch.Tensor) else x, result)

    def _strides(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._misread(func, args, kwargs, _in_storage_order)

    def _offset(self, func: Any, args: Any, kwargs: Any) -> Any:
        return self._misread(func, args, kwargs, _without_offset)

    def _misread(self, func: Any, args: Any, kwargs: Any, read: Any) -> Any:
        """Hand the operator wrongly read inputs; what it writes to stays, or its write would be lost too."""
        targets = _written(func, args, kwargs) if _writes(func) else []
        kept = [target.clone() for target in targets]
        healthy = func(*args, **kwargs) if not targets else None
        wrong = tree_map(
            lambda x: read(x) if isinstance(x, torch.Tensor) and not _among(x, targets) else x, (args, kwargs)
        )
        if not targets:
            result = func(*wrong[0], **wrong[1])
            self.changed += int(changed(healthy, result))
            return result
        func(*args, **kwargs)
        right = [target.clone() for target in targets]
        for target, before in zip(targets, kept):
            target.copy_(before)
        result = func(*wrong[0], **wrong[1])
        self.changed += int(changed(right, targets))
        return result

    def _lost(self, func: Any, args: Any, kwargs: Any) -> Any:
        targets = _written(func, args, kwargs)
        kept = [target.clone() for target in targets]
        result = func(*args, **kwargs)
        self.changed += int(changed(kept, targets))
        for target, before in zip(targets, kept):
            target.copy_(before)
        return result

    def _stale(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Answer every second call of the same form with the answer to the first."""
        form = tuple((tuple(x.shape), x.dtype) for x in _tensors((args, kwargs)))
        result = func(*args, **kwargs)
        targets = _written(func, args, kwargs) if _writes(func) else None
        if form not in self._kept:
            self._kept[form] = tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, targets or result)
            return result
        old = self._kept.pop(form)
        if targets:
            for target, before in zip(targets, old):
                if target.shape == before.shape:
                    self._overwrite(target, before)
            return result
        self.changed += int(changed(result, old))
        return old

    def _replaced(self, right: torch.Tensor, wrong: torch.Tensor) -> torch.Tensor:
        self.changed += int(changed(right, wrong))
        return wrong

    def _overwrite(self, target: torch.Tensor, wrong: torch.Tensor) -> None:
        self.changed += int(changed(target, wrong))
        if target._is_view() or target.is_contiguous() or target.numel() == 0 or 0 not in target.stride():
            target.copy_(wrong)


def _writes(func: Any) -> bool:
    return bool(func._schema.is_mutable)


def _written(func: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            found += _tensors(value)
    return found


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def _among(x: torch.Tensor, others: list[torch.Tensor]) -> bool:
    return any(x is other for other in others)


def _in_storage_order(x: torch.Tensor) -> torch.Tensor:
    if x.layout != torch.strided or x.is_contiguous() or x.numel() == 0:
        return x
    if x.storage_offset() + x.numel() > x.untyped_storage().nbytes() // x.element_size():
        return x  # an expanded view: there is not so much storage to read
    dense, step = [], 1
    for side in reversed(x.shape):
        dense.insert(0, step)
        step *= max(side, 1)
    return x.as_strided(x.shape, dense, x.storage_offset())


def _without_offset(x: torch.Tensor) -> torch.Tensor:
    return x.as_strided(x.shape, x.stride(), 0) if x.layout == torch.strided and x.storage_offset() else x


def changed(one: Any, two: Any) -> bool:
    """Tell whether some tensor of two nested answers differs by a bit that counts."""
    pairs = zip(_tensors(one), _tensors(two))
    return any(differ(x, y) for x, y in pairs if x.layout == torch.strided or (x.shape, x.dtype) != (y.shape, y.dtype))
