"""The generated cases: one for each operator and dtype, its rows read from rows.json."""

from __future__ import annotations

import functools
import json
import zlib
from functools import partial
from pathlib import Path
from typing import Any

from engine.description import Operator, Row, Table

from ..cases import Cases
from .asking import ask_rows

ROWS = Path(__file__).parent / "rows.json"
# One digit for each factor.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@functools.lru_cache(maxsize=None)
def stored_rows() -> dict[str, Any]:
    """Return, for each operator, its factors as they were when the rows were made, and the rows as digits."""
    stored = json.loads(ROWS.read_text(encoding="utf-8")) if ROWS.is_file() else {}
    return {name: turned(one) for name, one in stored.items()}


def turned(stored: dict[str, Any]) -> dict[str, Any]:
    """Return an operator's rows with a word for each factor, or such words as rows: so a wheel holds a third less.

    >>> turned({"factors": ["@form:2", "dim:3"], "rows": "00 12 02"})
    {'factors': ['@form:2', 'dim:3'], 'rows': '010 022'}
    """
    return {
        part: value if part == "factors" else " ".join(map("".join, zip(*value.split())))
        for part, value in stored.items()
    }


def signature(spec: Operator) -> list[str]:
    """Return the factors and how many levels each has: rows of another description cannot be read."""
    return [f"{name}:{len(levels)}" for name, levels in spec.factors]


def decode(spec: Operator, digits: str) -> Row:
    """Return a row from its digits; its number follows from them, so that other rows leave it as it was."""
    number = zlib.crc32(digits.encode()) % 9973
    return Row(
        digits, number, {name: levels[DIGITS.index(digit)] for (name, levels), digit in zip(spec.factors, digits)}
    )


def encode(spec: Operator, places: Any) -> str:
    """Return the digits of a row, given the place of each level."""
    return "".join(DIGITS[place] for place in places)


def rows_of(spec: Operator, part: str = "rows") -> list[Row]:
    """Return an operator's rows that the default layers ask, or with `more` those of `--full`.

    Raises:
        ValueError: they were made for another description.
    """
    return [decode(spec, digits) for digits in _digits_of(spec, part)]


def _digits_of(spec: Operator, part: str) -> list[str]:
    stored = stored_rows().get(spec.name, {"factors": signature(spec), "rows": ""})
    if stored["factors"] != signature(spec):
        raise ValueError(f"{ROWS.name}: the rows of {spec.name} are of another description; make them anew")
    return stored.get(part, "").split()  # type: ignore[no-any-return]


def all_rows(spec: Operator) -> list[Row]:
    """Return all rows of an operator."""
    return sorted([*rows_of(spec), *rows_of(spec, "more")], key=lambda row: row.digits)


def add_generated(cases: Cases, table: Table) -> None:
    """Register the cases of a table: `condition-<operator>-<dtype>`, and with `-more` the rest, for `--full`."""
    for spec in table.operators.values():
        place = [name for name, _ in spec.factors].index("@dtype")
        for part, ending in (("rows", ""), ("more", "-more")):
            by_dtype: dict[str, list[str]] = {}
            for digits in _digits_of(spec, part):
                by_dtype.setdefault(digits[place], []).append(digits)
            for digit, rows in by_dtype.items():
                dtype = spec.kinds[DIGITS.index(digit)]
                name, act = f"condition-{spec.name}-{str(dtype)[6:]}{ending}", partial(_asked, spec, rows)
                more = part == "more"
                cases.add(name, act, check=True, may_be_missing=True, full=more, quiet=more)


def _asked(spec: Operator, rows: list[str], bench: Any) -> Any:
    return ask_rows(spec, [decode(spec, digits) for digits in rows], bench)
