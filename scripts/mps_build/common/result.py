"""What a command hands to the command line: its JSON document and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a command ended without an exception: its JSON document and, if the status is not 0, its cause."""

    document: Mapping[str, Any] = field(default_factory=dict)
    exit_code: int = 0
    cause: str | None = None
    hint: str | None = None
