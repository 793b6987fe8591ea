"""Which cases `--quick` lacks to run each block of host code that any passing case runs. Pure."""

from __future__ import annotations

from typing import Mapping

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
