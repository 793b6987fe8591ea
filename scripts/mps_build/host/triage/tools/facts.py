"""Fact values as the mappings that READMEs, JSON and tests speak of."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


def stated_fields(value: Any) -> dict[str, Any]:
    """Return the fields of a frozen value that say something: no None, no empty mapping."""
    facts = {field.name: getattr(value, field.name) for field in fields(value)}
    return {
        name: dict(each) if isinstance(each, dict) else each
        for name, each in facts.items()
        if each is not None and each != {}
    }
