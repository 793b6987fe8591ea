"""What the CPU itself crashes at, or answers by chance: such a call is not made. Each rule has its reason."""

from __future__ import annotations

from typing import Any, Callable

Rule = Callable[[Any, str], bool]

RULES: dict[str, Rule] = {}


def why(call: Any, transformation: str) -> str:
    """Return why a call must not be made, or an empty text."""
    return next((reason for reason, holds in RULES.items() if holds(call, transformation)), "")
