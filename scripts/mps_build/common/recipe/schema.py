"""The schema of recipes as they are written: what defaults.yaml gives may be left out, and `from:` names a field."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from .defaults import DEFAULTS, SOURCES


def written_schema(model: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of three kinds of files: a recipe that extends the defaults, a whole one, and the defaults.

    Args:
        model: the schema of a recipe that is resolved.
        defaults: what defaults.yaml says.
    """
    schema = deepcopy(dict(model))
    definitions: dict[str, Any] = schema["$defs"]
    needed = schema.pop("required")
    parts = {key: name for key in defaults if (name := _definition(schema["properties"].get(key, {})))}
    # What a part must say is asked of the file that must say it, no longer of the part wherever it stands.
    parts_need = {key: definitions[name].pop("required", []) for key, name in parts.items()}
    for name, needs in zip(parts.values(), parts_need.values(), strict=True):
        _still_ask(definitions, name, needs)
    _allow_sources(definitions["Variable"])
    extends = {"const": DEFAULTS, "description": "What this recipe does not say is what build_recipes/ says in it."}
    schema["properties"] = {"extends": extends, **schema["properties"]}
    texts = {"environment": {"items": {"properties": {"value": {"type": "string"}}}}}
    return {
        **schema,
        "if": {"required": ["extends"]},
        "then": {
            "required": [key for key in needed if key not in defaults],
            "properties": {
                key: {"required": [each for each in needs if each not in defaults[key]]}
                for key, needs in parts_need.items()
            },
        },
        "else": {
            "if": {"required": ["version"]},
            "then": {
                "required": needed,
                "properties": {**{key: {"required": needs} for key, needs in parts_need.items()}, **texts},
            },
        },
    }


def _definition(field: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a field refers to, alone or beside null."""
    ways = (field, *field.get("anyOf", ()))
    return next((way["$ref"].rpartition("/")[2] for way in ways if "$ref" in way), None)


def _still_ask(definitions: Mapping[str, Any], name: str, needs: list[str]) -> None:
    """Ask the same as before of a definition wherever another one refers to it."""
    for definition in definitions.values():
        for field in definition.get("properties", {}).values():
            if _definition(field) == name:
                field["required"] = needs


def _allow_sources(variable: dict[str, Any]) -> None:
    """Let a variable's value come from another field, or be null, which drops it."""
    variable["properties"]["value"] = {"title": "Value", "type": ["string", "null"]}
    variable["properties"]["from"] = {
        "description": "The field that the value is taken from.",
        "enum": list(SOURCES),
        "title": "From",
    }
    variable["required"] = ["name", "reason"]
    variable["oneOf"] = [{"required": ["value"]}, {"required": ["from"]}]
