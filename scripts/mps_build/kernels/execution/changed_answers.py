"""Do changed kernels answer as before? Both wheels' are run on equal inputs, and what they leave is compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...common.reporter import Reporter
from ..read.library import BASIC
from .verify_all import KernelRow, Request, verify


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Kernels that were run in both wheels: those that answer as before, and those that do not."""

    same: tuple[str, ...]
    changed: tuple[str, ...]


def compare_answers(left: Request, right: Request, reporter: Reporter) -> Answers:
    """Run the kernels that both requests select, and compare what cases of equal inputs leave."""
    sides = [_by_name(verify(request, reporter)) for request in (left, right)]
    same: list[str] = []
    changed: list[str] = []
    for name in sorted(set(sides[0]) & set(sides[1])):
        one, other = (side[name].verdict.get("answers", {}) for side in sides)
        if common := set(one) & set(other):
            (same if all(one[key] == other[key] for key in common) else changed).append(name)
    return Answers(same=tuple(same), changed=tuple(changed))


def _by_name(rows: Sequence[KernelRow]) -> dict[str, KernelRow]:
    """Return one row for each name: that of metal_basic, if it is there."""
    found = {row.name: row for row in rows}
    return {**found, **{row.name: row for row in rows if row.library == BASIC}}
