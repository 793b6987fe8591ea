"""Operators, each described once: a file for an area, an entry for an operator.

A file has a table called `t` (engine/description.py) and is found by that; what has none is shared by other files.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
import textwrap
import types

from engine.description import Operator, Table


def _areas() -> list[types.ModuleType]:
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return [module for module in modules if hasattr(module, "t")]


@functools.lru_cache(maxsize=None)
def tables() -> tuple[Table, ...]:
    """Return the table of each file."""
    return tuple(module.t for module in _areas())


def listing() -> str:
    """Return each file with what it says of its area, and the operators that it describes."""
    lines = []
    for module in _areas():
        area = (module.__doc__ or "").partition("\n")[0]
        lines.append(f"operators/{module.__name__.rpartition('.')[2]}.py: {area}")
        lines += textwrap.wrap(", ".join(module.t.operators), 110, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


@functools.lru_cache(maxsize=None)
def described() -> dict[str, Operator]:
    """Return every operator by its name.

    Raises:
        ValueError: two files describe an operator of one name.
    """
    found: dict[str, Operator] = {}
    for table in tables():
        if double := sorted(set(found) & set(table.operators)):
            raise ValueError(f"operators: {', '.join(double)}: described two times")
        found.update(table.operators)
    return found
