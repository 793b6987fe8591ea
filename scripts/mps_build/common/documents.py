"""What every JSON document says first, and the form of each file's own; a command's stands in its module (`DOCUMENT`).

A later version may add keys; it takes none away under the same schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import __version__

# Files that commands leave, or read again, in a form of their own; `?` may be missing, `|null` may be null.
_FILES: Mapping[str, str] = {
    "wheel_receipt": "wheel:object recipe:object commit:string|null python:string profile:string "
    "steps:array audit:object",
    "companion_receipt": "wheel:object companion:string version:string of_recipe:string torch:object source:object",
    "rehearsal_receipt": "wheel:object recipe:object rehearsal:string steps:array audit:object",
    "step_receipt": "step:string version:integer inputs:object digest:string outputs:array facts:object seconds:number",
    "index_state": "published:object yanked:object reasons:object deleting:object",
}
_ENDED = ("interrupted", "cut_off")


def head(name: str, version: int = 1) -> dict[str, Any]:
    """Return what a document says first: its form, and who wrote it.

    >>> head("clean")["schema"]
    'mps-build/clean/1'
    """
    return {"schema": f"mps-build/{name}/{version}", "tool_version": __version__}


def file_schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each file that no model of its own describes, by its name."""
    return {name: _schema(name, keys) for name, keys in _FILES.items()}


def command_schema(name: str, keys: str) -> dict[str, Any]:
    """Return the JSON Schema of a command's document: it ends with how it ended; one that failed may lack all else.

    Args:
        keys: what it holds beside the head, `key:type`, by spaces. `?key` may be missing, `|null` may be null.
    """
    schema = _schema(name, keys)
    inner = schema["required"][2:]
    schema["required"] = ["schema", "tool_version", "exit_code", "cause", "hint"]
    schema["properties"] |= {
        "exit_code": {"type": "integer", "minimum": 0, "maximum": 255},
        "cause": {"type": ["string", "null"]},
        "hint": {"type": ["string", "null"]},
        "error": {"type": "string"},
    }
    if inner:
        ended = {"properties": {"cause": {"enum": [*_ENDED]}}}
        schema["anyOf"] = [{"required": inner}, {"required": ["error"]}, ended]
    return schema


def _schema(name: str, keys: str) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "schema": {"const": head(name)["schema"]},
        "tool_version": {"type": "string", "minLength": 1},
    }
    required = [*properties]
    for word in keys.split():
        key, _, types = word.partition(":")
        if not key.startswith("?"):
            required.append(key)
        properties[key.lstrip("?")] = {"type": types.split("|") if "|" in types else types}
    return {"title": name, "type": "object", "required": required, "properties": properties}
