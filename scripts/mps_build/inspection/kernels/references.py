"""The rows of references/*.yaml: each operator as torch computes it, and how exact a kernel must be."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...common import strict_yaml
from .known import explanation_rows

FOLDER = Path(__file__).resolve().parent / "references"
_KEYS = {
    "expr",
    "ulp",
    "alpha",
    "aten",
    "integers",
    "signed_zero",
    "strict",
    "note",
    "magnitude",
    "loose",
    "draw",
    "skip_nan",
    "overflow",
    "least",
    "divides",
    "complex",
    "order",
}


@cache
def load_references(folder: Path = FOLDER) -> Mapping[str, Mapping[str, Any]]:
    """Return all rows by name.

    Raises:
        ValueError: a name comes twice, or a row has an unknown key.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    for path in sorted(folder.glob("*.yaml")):
        for name, row in (strict_yaml.unchecked(path.read_text(encoding="utf-8")) or {}).items():
            row = {"expr": row} if isinstance(row, str) else row  # noqa: PLW2901
            if name in rows:
                raise ValueError(f"{path.name}: {name} is there twice")
            if unknown := set(row) - _KEYS:
                raise ValueError(f"{path.name}: {name}: unknown keys {sorted(unknown)}")
            rows[name] = row
    return {**rows, **explanation_rows()}
