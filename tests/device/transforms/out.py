"""Results that are written: in place, and into an out= that is a view. What lies around the view stays."""

from __future__ import annotations

from engine.description import HOMES, Operator, spellings
from engine.transformation import Formed


class _Written(Formed):
    def applies(self, operator: Operator) -> bool:
        if operator.act is not None or not super().applies(operator):
            return False
        names = spellings(operator.name, operator.paths)
        if self.name == "inplace":
            return any(hasattr(HOMES[home], f"{name}_") for home, name in (*names, ("aten", operator.name)))
        return any("out=" in (getattr(HOMES[home], name).__doc__ or "out=") for home, name in names)


transformations = (_Written("inplace", forms=("inplace",)), _Written("out", forms=("out",)))
