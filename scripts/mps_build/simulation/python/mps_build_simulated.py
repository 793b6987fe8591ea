"""Tells torch, when it is imported, that it has MPS: its bindings were compiled without."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


def _has_mps(module: ModuleType) -> None:
    """Change torch._C."""
    module._has_mps = True  # type: ignore[attr-defined]


def _stores_on_mps(module: ModuleType) -> None:
    """Change torch.storage: torch/csrc/Storage.cpp leaves the allocator of mps out where USE_MPS is not set."""
    import torch

    storage: Any = module.UntypedStorage

    def make(cls: Any, *args: Any, device: Any = None, **more: Any) -> Any:
        if device is None or torch.device(device).type != "mps" or more:
            return super(storage, cls).__new__(cls, *args, **({} if device is None else {"device": device}), **more)
        size = args[0] if args else 0
        if isinstance(size, int):
            return torch.empty(size, dtype=torch.uint8, device=device).untyped_storage()
        return torch.tensor(list(size), dtype=torch.uint8, device=device).untyped_storage()

    storage.__new__ = make


_CHANGES: dict[str, Callable[[ModuleType], None]] = {"torch._C": _has_mps, "torch.storage": _stores_on_mps}


class _Loader:
    """Loads a module as it is, then says what our library adds."""

    def __init__(self, loader: object, change: Callable[[ModuleType], None]) -> None:
        self._loader, self._change = loader, change

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        self._change(module)


class _Finder:
    """Finds the modules that are changed where they are, for `_Loader`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        change = _CHANGES.get(name)
        if change is None:
            return None
        found = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader, change)  # type: ignore[assignment]
        return found


sys.meta_path.insert(0, _Finder)
