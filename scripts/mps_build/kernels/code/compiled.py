"""A compiled kernel: what the compiler leaves, and all that a launch needs of it. Imports nothing of LLVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..read.metadata import Metadata

ENTRY = "rt_entry"
ROW = "rt_row"
# Where threadgroup variables lie: the end of each at a page nobody may touch, far from everything else.
ARENA_BASE, ARENA_STEP, PAGE = 0x5A00_0000_0000, 1 << 24, 4096

Plant = Callable[[str], str]
Fault = Literal["refused", "not_compiled", "beyond"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A threadgroup variable: where it lies, its size in bytes, and whether it begins as zero."""

    address: int
    size: int
    is_zero: bool

    @property
    def is_possible(self) -> bool:
        """True if it lies in its part of the arena."""
        offset = self.address - ARENA_BASE
        return 0 <= offset < 64 * ARENA_STEP and 0 <= self.size <= ARENA_STEP // 2 - offset % ARENA_STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One compiled kernel: an object file, and what a launch must know of it."""

    metadata: Metadata
    body: str
    variables: tuple[Variable, ...]
    is_cooperative: bool
    objectcode: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A kernel that is not compiled, and why; what was read of it before stands.

    Args:
        fault: it holds what no Metal kernel has (refused), cannot be read or translated (not_compiled), or needs
            operations that are known and not run here (beyond: tensor operations of Metal 4).
    """

    reason: str
    fault: Fault = "not_compiled"
    metadata: Metadata | None = None
    body: str = ""
