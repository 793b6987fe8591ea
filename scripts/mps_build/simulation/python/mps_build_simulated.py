"""Tells torch, when it is imported, that it has MPS: its bindings were compiled without."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class _Loader:
    """Loads torch._C as it is, then says what our library adds."""

    def __init__(self, loader: object) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)  # type: ignore[attr-defined]
        module._has_mps = True  # type: ignore[attr-defined]


class _Finder:
    """Finds torch._C where it is, for `_Loader`."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "torch._C":
            return None
        found = PathFinder.find_spec(name, path)  # type: ignore[arg-type]
        if found is not None and found.loader is not None:
            found.loader = _Loader(found.loader)  # type: ignore[assignment]
        return found


sys.meta_path.insert(0, _Finder)
