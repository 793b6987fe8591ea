"""Loads a macOS wheel's Mach-O extension modules into Linux' Python; a .pth imports it when the interpreter starts.

What it needs stands in mps_build_official.json beside it: the loader, the libraries that stand for the system's, and
the folders whose modules it loads. It uses the standard library alone, of Python 3.9 and newer.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

# How macOS names the modules of this Python.
_SUFFIX = f".cpython-{sys.version_info[0]}{sys.version_info[1]}-darwin.so"
_API = 1013  # PYTHON_API_VERSION: the layout of a module's description


def _settings() -> dict[str, Any]:
    settings: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return settings


class _Official:
    """The loader, brought into the process when the first module of a wheel is imported."""

    def __init__(self, settings: dict[str, Any]) -> None:
        import ctypes  # a start that imports no torch does without

        self._ctypes = ctypes
        self.described: dict[ModuleType, int] = {}
        for library in settings["before"]:
            ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
        # Keeps the GIL: a library's initialisers may use Python.
        self._library = ctypes.PyDLL(settings["loader"], ctypes.RTLD_GLOBAL)
        self._library.official_fault.restype = ctypes.c_char_p
        self._library.official_symbol.restype = ctypes.c_void_p
        for library in settings["providers"]:
            self._check(self._library.official_provide(os.fsencode(library)))

    def module(self, spec: importlib.machinery.ModuleSpec, path: str) -> ModuleType:
        """Return the module of a file, made by its own initialiser, or by what that describes."""
        self._check(self._library.official_open(os.fsencode(path)))
        symbol = f"_PyInit_{spec.name.rpartition('.')[2]}"
        make = self._library.official_symbol(symbol.encode())
        if not make:
            raise ImportError(f"{path} has no {symbol}", name=spec.name, path=path)
        # As a number: a description is not ours to let go.
        place = self._ctypes.PYFUNCTYPE(self._ctypes.c_void_p)(make)()
        made = self._ctypes.cast(place, self._ctypes.py_object).value
        if isinstance(made, ModuleType):
            return made
        of_description = self._ctypes.pythonapi.PyModule_FromDefAndSpec2
        of_description.restype = self._ctypes.py_object
        module: ModuleType = of_description(self._ctypes.c_void_p(place), self._ctypes.py_object(spec), _API)
        self.described[module] = place
        return module

    def execute(self, module: ModuleType) -> None:
        """Run the second phase of a module that has one."""
        if place := self.described.pop(module, None):
            run = self._ctypes.pythonapi.PyModule_ExecDef
            run(self._ctypes.py_object(module), self._ctypes.c_void_p(place))

    def _check(self, result: int) -> None:
        if result:
            raise ImportError(self._library.official_fault().decode(errors="replace"))


@functools.cache
def _official() -> _Official:
    return _Official(_settings())


class _Loader(importlib.abc.Loader):
    def __init__(self, name: str, path: str) -> None:
        self.name, self.path = name, path

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _official().module(spec, self.path)

    def exec_module(self, module: ModuleType) -> None:
        _official().execute(module)


@functools.cache
def _finder_of(folder: str) -> importlib.machinery.FileFinder:
    return importlib.machinery.FileFinder(folder, (_Loader, [_SUFFIX]))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds macOS' extension modules below a wheel's folder.

    It comes before Linux' own finders: they take torch/_C, a folder of stubs, for the module of that name.
    """

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = tuple(folders)
        self._below = tuple(os.path.join(folder, "") for folder in folders)  # noqa: PTH118, thousands of calls

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        for entry in sys.path if path is None else path:
            if entry in self._folders or entry.startswith(self._below):
                spec = _finder_of(entry).find_spec(name)
                if spec is not None and spec.loader is not None:
                    return spec
        return None


sys.meta_path.insert(0, _Finder(_settings()["folders"]))
if "MPS_BUILD_MODULES" in os.environ:  # simulation/libraries.py
    sys.path.append(os.environ["MPS_BUILD_MODULES"])
if "MPS_BUILD_AS_MAC" in os.environ:
    __import__("mps_build.as_mac")
