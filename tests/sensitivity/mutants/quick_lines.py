"""Which cases `--quick` lacks: to run each block of host code that a passing case runs, and to notice mutants. Pure."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

_FRAME_SECONDS = 0.02  # what a case costs besides its own work


def lacking(blocks: Mapping[str, int], seconds: Mapping[str, float], quick: frozenset[str]) -> list[str]:
    """Return the cases to add, by name: the one that adds most blocks for its time comes next.

    Args:
        blocks: of each case that passes, the blocks that it runs, as a mask. seconds: of CPU, of each.

    >>> lacking({"a": 0b001, "b": 0b011, "c": 0b110, "d": 0b100}, dict.fromkeys("abcd", 0.1), frozenset("a"))
    ['c']
    """
    left = covered = 0
    for name, mask in blocks.items():
        left |= mask
        covered |= mask if name in quick else 0
    left &= ~covered
    found = []
    while left:
        name = max(blocks, key=lambda one: ((blocks[one] & left).bit_count() / (seconds[one] + _FRAME_SECONDS), one))
        found.append(name)
        left &= ~blocks[name]
    return sorted(found)


def telling(rows: Iterable[Mapping[str, Any]], quick: frozenset[str]) -> list[str]:
    """Return the cases that caught a mutant which no case of `quick` did: the held-back third is not looked at.

    >>> row = {"outcome": "whole", "case": "a", "held": False}
    >>> telling([row, {**row, "case": "b", "held": True}, {**row, "case": "c"}], frozenset("c"))
    ['a']
    """
    return sorted({row["case"] for row in rows if row["outcome"] == "whole" and not row["held"]} - quick)
