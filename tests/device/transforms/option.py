"""Any options, all other things as they come."""

from __future__ import annotations

from engine.description import Operator
from engine.transformation import Formed


class _Options(Formed):
    def applies(self, operator: Operator) -> bool:
        return super().applies(operator) and any(len(levels) > 1 for levels in operator.args.values())


transformation = _Options("option", graphs=1.7, share=2.0)
