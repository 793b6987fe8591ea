"""Names that host/requirements still imports; the table is known_tool_errors.yaml."""

from __future__ import annotations

from .known_tool_errors import BY_ID

__all__ = ["BY_ID"]
