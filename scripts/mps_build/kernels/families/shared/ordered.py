"""Numbers with ties, for what depends on their order."""

from __future__ import annotations

import math

from ...program.dtypes import DType
from ...program.values import edges
from .contracts import Case

Number = int | float


def tied_numbers(case: Case, dtype: DType, count: int) -> list[Number]:
    """Return values with many ties and the type's limits, all exact in it; no negative zero, which equals zero."""
    random = case.values.random
    if dtype.kind == "bool":
        return [random.randrange(2) for _ in range(count)]
    if dtype.is_exact:
        limits = edges(dtype.name)
        low = 0 if dtype.kind == "unsigned" else -100
        return [int(random.choice(limits)) if random.random() < 0.1 else random.randint(low, 100) for _ in range(count)]
    special = (math.nan, math.inf, -math.inf, 65504.0 if dtype.name == "half" else 2.0**100)
    return [random.choice(special) if random.random() < 0.05 else random.randint(-250, 250) / 4 for _ in range(count)]
