"""Faults: faults from a file, entered around each device run, to show that the suite notices them."""

from __future__ import annotations

import importlib.util
import mmap
import sys
from pathlib import Path
from typing import Any

from .runs import FaultMaker


class FaultError(Exception):
    """The fault cannot be loaded: the message says what is wrong with FILE.py:NAME."""


class InjectedFault:
    """One fault, loaded once per process: its module may keep state between runs.

    NAME is a callable without arguments that returns a context manager; HITS[NAME] in the same file, if there,
    counts how often the fault fired.

    Args:
        count: a file that holds this number too, in 8 bytes, so that a process that dies leaves it.
    """

    def __init__(self, spec: str, count: Path | None = None) -> None:
        path, colon, self.name = spec.rpartition(":")
        if not colon or not path or not self.name:
            raise FaultError(f"{spec!r} is not of the form FILE.py:NAME")
        self._module = load(Path(path))
        maker: Any = getattr(self._module, self.name, None)
        if not callable(maker):
            raise FaultError(f"{path} has no callable {self.name}")
        try:
            made = maker()
        except Exception as error:
            raise FaultError(f"{self.name}() of {path} raised {type(error).__name__}: {error}") from error
        if not (hasattr(type(made), "__enter__") and hasattr(type(made), "__exit__")):
            raise FaultError(f"{self.name}() of {path} returns no context manager, but {type(made).__name__}")
        self.maker: FaultMaker = maker
        hits = getattr(self._module, "HITS", None)
        if count is not None and type(hits) is dict:
            shared = _SharedHits(hits, self.name, count)
            # A module may have it from a neighbour, and what counts may hold it: `HITS = faults.hits`.
            for holder in (*sys.modules.values(), *vars(self._module).values()):
                for name in ("HITS", "hits"):
                    if getattr(holder, "__dict__", {}).get(name) is hits:
                        setattr(holder, name, shared)

    @property
    def hits(self) -> int | None:
        """Return how often the fault fired so far; None where the file does not count."""
        hits = getattr(self._module, "HITS", None)
        if not isinstance(hits, dict):
            return None
        return int(hits.get(self.name, 0))


class _SharedHits(dict):  # type: ignore[type-arg]  # Python 3.8
    """HITS, of which one number also stands in a file: written as memory, so that no signal loses it."""

    def __init__(self, hits: Any, name: str, file: Path) -> None:
        super().__init__(hits)
        file.write_bytes(bytes(8))
        with file.open("r+b") as opened:
            self._number = memoryview(mmap.mmap(opened.fileno(), 8)).cast("q")
        self._name = name
        self[name] = hits.get(name, 0)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if key == self._name:
            self._number[0] = int(value)


def _folder_of(path: Path) -> Path:
    """Return the folder that a file's imports start from: its own, or the one that holds its package, as in pytest."""
    folder = path.resolve().parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def load(path: Path, name: str = "") -> Any:
    """Return the module of a fault's file, by a name of its own; raise FaultError where it is none."""
    if not path.is_file():
        raise FaultError(f"no such file: {path}")
    name = f"fault_{name or path.stem}"
    spec = importlib.util.spec_from_file_location(name, str(path))
    if spec is None or spec.loader is None:
        raise FaultError(f"not a Python file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.path.append(str(_folder_of(path)))  # it may import its neighbours
    sys.modules[name] = module  # dataclasses and pickles look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as raised:
        raise FaultError(f"{path} cannot be imported: {type(raised).__name__}: {raised}") from raised
    return module
