"""Results that are written: in place, and into an out= that is a view. What lies around the view stays."""

from __future__ import annotations

import math
from typing import Any

from engine.description import HOMES, Operator, spellings
from engine.reference import Truth
from engine.transformation import Call, Factor, Formed


class _Written(Formed):
    free = ("@held",)

    def factors(self, operator: Operator) -> list[Factor]:
        return [("@held", ("numbers", "nan"))] if self.name == "out" else []

    def perform(self, call: Call, run: Any, truth: Truth | None) -> list[Any]:
        places = call.places(truth)
        if call.levels.get("@held") == "nan":  # what an out= held must not matter
            for base, layout, shape in places:
                if base.is_floating_point() and shape != (0,):
                    layout.cut(base, shape).fill_(math.nan)
        return call.perform(run, call.bases(run), places)

    def applies(self, operator: Operator) -> bool:
        if operator.act is not None or not super().applies(operator):
            return False
        names = spellings(operator.name, operator.paths)
        if self.name == "inplace":
            return any(hasattr(HOMES[home], f"{name}_") for home, name in (*names, ("aten", operator.name)))
        return any("out=" in (getattr(HOMES[home], name).__doc__ or "out=") for home, name in names)


transformations = (_Written("inplace", forms=("inplace",)), _Written("out", forms=("out",), share=2.0))
