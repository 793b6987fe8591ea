"""What a run leaves."""

from __future__ import annotations

from dataclasses import dataclass, field

from .troubles import Trouble


@dataclass(slots=True, kw_only=True)
class Ran:
    """What a run left behind: each buffer's bytes, and trouble."""

    contents: dict[int, bytes] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)
    threads: int = 0
    inactive: int = 0
    divergent: int = 0
    unwritten: int = 0
