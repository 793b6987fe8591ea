"""The accuracy atlas: the largest error of every function and type, in one release or several."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..program.dtypes import DTYPES

_TYPE = re.compile("|".join(sorted(DTYPES, key=len, reverse=True)))
_ALL_VALUES = {"half": "all 65,536 values", "bfloat": "all 65,536 values"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One function of one type.

    Args:
        errors: the largest error of each release, in units in the last place; None where it was not run.
        cpu: the CPU's own largest error, in the same type.
        profiles: for each release, the largest error in each part of the first input's values.
    """

    function: str
    kind: str
    kernel: str
    errors: tuple[float | None, ...]
    cpu: float | None
    bound: float | None
    is_unary: bool
    profiles: tuple[tuple[float, ...], ...]

    @property
    def inputs(self) -> str:
        """Which inputs were asked."""
        if not self.is_unary:
            return "pairs at the edges, equal and near ones, random ones"
        return _ALL_VALUES.get(self.kind, "edges, and every exponent with random mantissas")


def entries(documents: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the functions that were held against float64, by function and type; one document a release."""
    releases = [_measured(document) for document in documents]
    names = dict.fromkeys(key for release in releases for key in release)
    found = [_entry(key, [release.get(key) for release in releases]) for key in names]
    return sorted(found, key=lambda each: (each.function, each.kind, each.kernel))


def _measured(document: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the dense kernels (those with a profile) by function and types; metal_basic's, where there are two."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["kernels"]:
        if row.get("profile") and row.get("library") != "metal_40":
            types = "_".join(_TYPE.findall(row["name"].partition("_dense_")[2])) or "?"
            found.setdefault((row.get("operator") or row["name"], types), row)
    return found


def _entry(key: tuple[str, str], rows: Sequence[Mapping[str, Any] | None]) -> Entry:
    there = next(row for row in rows if row is not None)
    return Entry(
        function=key[0],
        kind=_input_type(key[1]),
        kernel=there["name"],
        errors=tuple(None if row is None else row.get("max_ulp", 0.0) for row in rows),
        cpu=there.get("cpu_ulp", 0.0),
        bound=there.get("bound_ulp"),
        is_unary=str(there.get("family", "")).startswith("unary"),
        profiles=tuple(tuple(row["profile"]) if row is not None else () for row in rows),
    )


def _input_type(types: str) -> str:
    """Return the type of the input, the last but the scalar parameters'.

    >>> _input_type("float_half"), _input_type("half")
    ('half', 'half')
    """
    parts = types.split("_")
    return parts[1] if len(parts) > 1 else parts[0]
