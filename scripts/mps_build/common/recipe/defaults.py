"""What a recipe leaves to defaults.yaml, and the values that follow from its other fields.

The recipe's own words win: key by key in a mapping, name by name in `environment`, as a whole in everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..strict_yaml import Document, Location

DEFAULTS = "defaults.yaml"
# What a variable's value may be taken from (`from:`), and how it is read in the recipe.
SOURCES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "version": lambda recipe: _text(recipe, "version"),
    "deployment_target": lambda recipe: _text(recipe, "deployment_target"),
    # With a dot: setuptools reads 11_0 as 110.
    "host_platform": lambda recipe: f"macosx-{_text(recipe, 'deployment_target')}-arm64",
}


@dataclass(slots=True)
class Resolved:
    """A recipe with all that it leaves to others: as data, with the place of each value, and what was wrong."""

    data: Any
    documents: tuple[Document, ...]
    origins: dict[Location, tuple[Document, Location]] = field(default_factory=dict)
    faults: list[tuple[Document, Location, str]] = field(default_factory=list)

    def origin(self, location: Location) -> tuple[Document, Location]:
        """Return the file that says what stands at `location`, and where in that file."""
        for length in range(len(location), -1, -1):
            if location[:length] in self.origins:
                document, place = self.origins[location[:length]]
                return document, place + location[length:]
        return self.documents[0], location


def resolve(recipe: Document, defaults: Callable[[], Document]) -> Resolved:
    """Return a recipe that stands for itself; `defaults` is read only where the recipe extends them."""
    if not isinstance(recipe.data, Mapping):
        return Resolved(recipe.data, (recipe,))
    own = dict(recipe.data)
    if "extends" in own:
        resolved = Resolved(own, (recipe, defaults()))
        _extend(resolved)
    else:
        resolved = Resolved(own, (recipe,))
    _settle(resolved)
    return resolved


def _extend(resolved: Resolved) -> None:
    own, (recipe, defaults) = resolved.data, resolved.documents
    if own.pop("extends") != DEFAULTS:
        resolved.faults.append((recipe, ("extends",), f"must be {DEFAULTS}, the file beside the releases' recipes"))
    if not isinstance(defaults.data, Mapping):
        resolved.faults.append((defaults, (), "must be a mapping of keys to values"))
        return
    for key, value in defaults.data.items():
        if key not in own:
            own[key] = value
            resolved.origins[(key,)] = (defaults, (key,))
        elif key == "environment" and isinstance(own[key], list) and isinstance(value, list):
            own[key] = _joined(resolved, own[key], value)
        elif isinstance(own[key], Mapping) and isinstance(value, Mapping):
            inherited = {name: part for name, part in value.items() if name not in own[key]}
            own[key] = {**own[key], **inherited}
            resolved.origins |= {(key, name): (defaults, (key, name)) for name in inherited}


def _joined(resolved: Resolved, own: Sequence[Any], inherited: Sequence[Any]) -> list[Any]:
    """Return the rows of both: a row takes the place of its namesake, a new one follows the row before it."""
    recipe, defaults = resolved.documents
    rows = [(defaults, index, row) for index, row in enumerate(inherited)]
    before = len(rows) - 1
    for index, row in enumerate(own):
        places = [place for place, (file, _, other) in enumerate(rows) if file is defaults and _same(row, other)]
        if places:
            before = places[0]
            rows[before] = (recipe, index, row)
            continue
        if _drops(row):
            resolved.faults.append(
                (recipe, ("environment", index, "value"), f"is null, but {DEFAULTS} sets no {row.get('name')}")
            )
        before += 1
        rows.insert(before, (recipe, index, row))
    for file, index, row in rows:
        if _drops(row) and not (row.keys() == {"name", "value", "reason"} and isinstance(row["reason"], str)):
            resolved.faults.append((file, ("environment", index), "is dropped (value: null) with a reason, no more"))
    kept = [each for each in rows if not _drops(each[2])]
    for place, (file, index, _) in enumerate(kept):
        resolved.origins[("environment", place)] = (file, ("environment", index))
    return [row for _, _, row in kept]


def _settle(resolved: Resolved) -> None:
    """Put a text in the place of each `from:`."""
    rows = resolved.data.get("environment")
    if not isinstance(rows, list):
        return
    settled = list(rows)
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or "from" not in row:
            continue
        source = row["from"]
        file, place = resolved.origin(("environment", index, "from"))
        known = isinstance(source, str) and source in SOURCES
        if not known:
            resolved.faults.append((file, place, f"must be one of {', '.join(SOURCES)}"))
        elif "value" in row:
            resolved.faults.append((file, place, "does not go with a value of its own"))
        value = SOURCES[source](resolved.data) if known else ""
        settled[index] = {"value": value, **{key: part for key, part in row.items() if key != "from"}}
    resolved.data["environment"] = settled


def _same(row: Any, other: Any) -> bool:
    return isinstance(row, Mapping) and isinstance(other, Mapping) and row.get("name") == other.get("name")


def _drops(row: Any) -> bool:
    return isinstance(row, Mapping) and "value" in row and row["value"] is None


def _text(recipe: Mapping[str, Any], key: str) -> str:
    """Return a field's text; what is not text is the model's to report."""
    value = recipe.get(key)
    return value if isinstance(value, str) else ""
