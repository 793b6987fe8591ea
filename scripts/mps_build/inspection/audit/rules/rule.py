"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..model import Level, WheelFacts
from ..releases import Wanted


class Hit(NamedTuple):
    """Where a rule is broken, and what shows it; `level` only where it differs from the rule's."""

    member: str | None
    evidence: str
    level: Level | None = None


Check = Callable[[WheelFacts, Wanted], Iterable[Hit]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: its id, why it is there, and the function that looks."""

    id: str
    reason: str
    check: Check
    level: Level = "error"
    torch_only: bool = False
    needs_full: bool = False
    of_archive: bool = False


def rule(
    id: str,
    *,
    level: Level = "error",
    torch_only: bool = False,
    needs_full: bool = False,
    of_archive: bool = False,
) -> Callable[[Check], Rule]:
    """Make a rule of the function below; its docstring is the reason that a person reads with each finding.

    Args:
        torch_only: holds for torch wheels alone.
        needs_full: can be judged only after a pass over all data.
        of_archive: can be judged of a file that cannot be read further.
    """

    def make(check: Check) -> Rule:
        return Rule(
            id=id,
            reason=" ".join((check.__doc__ or "").split()),
            check=check,
            level=level,
            torch_only=torch_only,
            needs_full=needs_full,
            of_archive=of_archive,
        )

    return make
