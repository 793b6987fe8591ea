"""Transformations: the ways in which an operator is used, a file for each. What a file holds is found by itself."""

from __future__ import annotations

import functools
import importlib
import pkgutil

from engine.transformation import Transformation


@functools.lru_cache(maxsize=None)
def known() -> dict[str, Transformation]:
    """Return every transformation by its name."""
    found: dict[str, Transformation] = {}
    for name in sorted(each.name for each in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        every = getattr(module, "transformations", None) or (module.transformation,)
        found.update((one.name, one) for one in every)
    return dict(sorted(found.items()))
