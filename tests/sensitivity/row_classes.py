"""The classes of a row's levels: those of one class share a kernel's source, and meet others as one."""

from __future__ import annotations

import itertools
import math
from typing import Any, Iterator

import torch

from engine.description import Operator, Row

LARGE = 10_000  # elements
_LAYOUT_CLASSES = {"dense": "dense", "offset": "shifted", "narrow": "shifted", "expanded": "expanded"}


def dtype_class(dtype: torch.dtype) -> str:
    """Return the kind of a dtype: those of one kind share their kernels' source.

    >>> dtype_class(torch.bfloat16), dtype_class(torch.uint8), dtype_class(torch.int64)
    ('half', 'byte', 'whole')
    """
    if dtype in (torch.float16, torch.bfloat16):
        return "half"
    if dtype in (torch.int8, torch.uint8):  # their views may begin at any address
        return "byte"
    if dtype in (torch.float32, torch.bool):
        return str(dtype)[6:]
    return "complex" if dtype.is_complex else "whole"


def size_class(shape: tuple[int, ...]) -> str:
    """Return the class of a size.

    >>> size_class((3, 0)), size_class(()), size_class((3, 1031)), size_class((2, 3, 1, 4, 3))
    ('empty', 'none', 'long', 'deep')
    """
    count = math.prod(shape)
    if not shape or count < 2:
        return "empty" if count == 0 else "one" if shape else "none"
    if max(shape) > 1024:
        return "tall" if max(shape) > 65_535 else "long"
    return "deep" if len(shape) > 4 else "plain"


def layout_class(name: str) -> str:
    """Return the class of a layout."""
    return _LAYOUT_CLASSES.get(name, "strided")


def classes_of(spec: Operator) -> list[list[int]]:
    """Return for each factor the class of each level, by number."""
    found = []
    for name, levels in spec.factors:
        texts = [_class_of(spec, name, level) for level in levels]
        order = sorted(set(texts), key=texts.index)
        found.append([order.index(one) for one in texts])
    return found


def _class_of(spec: Operator, name: str, level: Any) -> str:
    if name == "@dtype":
        return dtype_class(level)
    if name == "@size":  # an operator's own sizes are few and mean something each
        return str(level) if isinstance(spec.sizes, dict) else size_class(spec.shapes[level])
    return layout_class(level) if name.startswith("@layout") else str(level)


def is_large(spec: Operator, row: Row) -> bool:
    """Say whether a row has so many elements that they cost more than the call."""
    return math.prod(spec.shapes[row.levels["@size"]]) > LARGE


def is_slow(spec: Operator, row: Row) -> bool:
    """Say whether a row convolves numbers in half precision: a CPU takes many times as long as in float32."""
    return spec.name.startswith("conv") and dtype_class(row.levels["@dtype"]) == "half"


def triples_of(spec: Operator) -> Iterator[tuple[int, int, int]]:
    """Yield the places of three factors that are to meet: one of them, at least, is an argument."""
    names = [name for name, _ in spec.factors]
    for places in itertools.combinations(range(len(names)), 3):
        if any(names[place][0] != "@" for place in places):
            yield places


def threes_of(spec: Operator, row: Row) -> Iterator[Any]:
    """Yield the three classes that meet in a row and that the default layers ask: two are arguments.

    A row that costs much is asked for what meets by twos.
    """
    if is_large(spec, row) or is_slow(spec, row):
        return
    classed = [(name, _class_of(spec, name, row.levels[name])) for name, _ in spec.factors]
    for places in triples_of(spec):
        if sum(spec.factors[place][0][0] != "@" for place in places) > 1:
            yield tuple(classed[place] for place in places)
