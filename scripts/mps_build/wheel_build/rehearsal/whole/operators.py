"""What each operator does on MPS in a wheel, as op_coverage says it: by headers, torchgen and machine code."""

from __future__ import annotations

from pathlib import Path

from ....inspection.audit.registrations import Library
from ....inspection.coverage.rules import classify
from ....inspection.coverage.wheel import Compiled, facts_of_wheel


def operators_of(wheel: Path, library: Library) -> frozenset[str]:
    """Return "operator: status" for each of a wheel's operators.

    Args:
        library: what its libtorch_cpu registers.

    Raises:
        UsageError: the wheel cannot be read.
        MpsNotBuilt: it has no operator for MPS.
    """
    registered = {
        key: tuple((each.operator, each.falls_back) for function in functions for each in function)
        for key, functions in library.registered.items()
    }
    facts = facts_of_wheel(wheel, Compiled(registered=registered, kernels=library.kernels))
    return frozenset(f"{row.name}: {row.status}" for row in classify(facts))
