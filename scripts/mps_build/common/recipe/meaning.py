"""What a recipe means, whole: as a recipe that needs no defaults, and on record, to see what a change changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from .model import Recipe


def as_yaml(recipe: Recipe) -> str:
    """Return a recipe with every field, as YAML that is read as the same recipe."""
    return yaml.safe_dump(recipe.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=float("inf"))


def record(recipes: Iterable[Recipe]) -> str:
    """Return every field of every recipe as JSON, one variable of an environment a line."""
    return _lines({recipe.name: recipe.model_dump(mode="json") for recipe in recipes}) + "\n"


def changes(recorded: str, recipes: Iterable[Recipe]) -> list[str]:
    """Return which field of which recipe is not what the record says.

    Raises:
        ValueError: the record is not JSON.
    """
    before = json.loads(recorded)
    after = {recipe.name: recipe.model_dump(mode="json") for recipe in recipes}
    lines = [f"{name}: is new" for name in after if name not in before]
    lines += [f"{name}: is gone" for name in before if name not in after]
    for name in (name for name in after if name in before):
        was, now = dict(_fields(before[name])), dict(_fields(after[name]))
        lines += [
            f"{name}: {field} was {_said(was, field)}, is {_said(now, field)}"
            for field in dict.fromkeys([*now, *was])
            if _said(was, field) != _said(now, field)
        ]
    return lines


def _fields(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each field by its path; rows that have names go by them, and their order is a field too."""
    named = isinstance(value, list) and bool(value) and all(isinstance(row, dict) and "name" in row for row in value)
    if named:
        yield f"{at} (order)", [row["name"] for row in value]
        value = {str(row["name"]): {key: part for key, part in row.items() if key != "name"} for row in value}
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _fields(part, f"{at}.{key}" if at else str(key))
    else:
        yield at, value


def _said(fields: Mapping[str, Any], field: str) -> str:
    return json.dumps(fields[field], ensure_ascii=False) if field in fields else "missing"


def _lines(value: Any, depth: int = 0) -> str:
    """Return JSON in which a row of a list, and a list of plain values, stand in one line."""
    is_long = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(row, dict) for row in value))
    if depth > 2 or not value or not is_long:
        return json.dumps(value, ensure_ascii=False)
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {_lines(part, depth + 1)}" for key, part in value.items()]
    else:
        parts = [_lines(part, depth + 1) for part in value]
    indent = " " * (depth + 1)
    return f"{begin}\n" + ",\n".join(f"{indent}{part}" for part in parts) + f"\n{' ' * depth}{end}"
