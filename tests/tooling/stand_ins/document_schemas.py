"""Holds JSON documents of ours against the schema that they name."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[3] / "schemas"


@cache
def _validator(name: str) -> Any:
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")))


def faults(document: Any) -> list[str]:
    """Return what is wrong with a document; it must name its schema and the version that wrote it."""
    named = document.get("schema") if isinstance(document, dict) else None
    if not isinstance(named, str) or not named.startswith("mps-build/") or not document.get("tool_version"):
        return [f"names no schema, or no tool_version: {str(document)[:200]}"]
    if not (SCHEMAS / f"{named.split('/')[1]}.schema.json").is_file():
        return [f"{named} has no file in schemas/"]
    found = _validator(named.split("/")[1]).iter_errors(json.loads(json.dumps(document, default=str)))
    return [f"{named}: {'.'.join(map(str, each.absolute_path))}: {each.message[:300]}" for each in found]
