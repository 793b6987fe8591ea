"""Reads kernels without running them: are two of one name the same, and how many instructions each has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...inspection.malformed import Malformed
from ..families.shared.contracts import match_kernel
from ..read.library import Library
from ..read.metadata import Metadata
from .closed import Reader

Place = tuple[int, int]
"""A library's number, and a function's in it."""
Pairs = Mapping[Place, Place | None]
"""Which kernel each is compared with; None: with none."""


def read_pair(reader: Reader, libraries: Sequence[Library], place: Place, pairs: Pairs) -> dict[str, Any]:
    """Return of a kernel: same, changed, alone or unreadable; with the family and the numbers of instructions."""
    other = pairs[place]
    try:
        before = None if other is None else _bitcode(libraries, other)
        found = reader.pair(before, _bitcode(libraries, place))
    except Malformed as error:
        return {"verdict": {"outcome": "unreadable", "reason": str(error)}}
    if found.is_same:
        return {"verdict": {"outcome": "same"}}
    outcome = "alone" if other is None else "changed"
    name = libraries[place[0]].functions[place[1]].name
    return {
        "verdict": {"outcome": outcome, "instructions": found.instructions},
        "family": _family(name, found.metadata),
    }


def _bitcode(libraries: Sequence[Library], place: Place) -> bytes:
    function = libraries[place[0]].functions[place[1]]
    if function.fault:
        raise Malformed(function.fault)
    return libraries[place[0]].bitcode(function)


def _family(name: str, metadata: Metadata | None) -> str:
    kernel = match_kernel(name, metadata) if metadata else None
    return kernel.contract.family if kernel and kernel.contract else ""
