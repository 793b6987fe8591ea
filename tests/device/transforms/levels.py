"""Calls as they come, and with one factor in focus: layout, dtype, size, special values, options, the gradient."""

from __future__ import annotations

from engine.description import Operator
from engine.transformation import Formed


class _Options(Formed):
    def applies(self, operator: Operator) -> bool:
        return super().applies(operator) and any(len(levels) > 1 for levels in operator.args.values())


transformations = (
    # The first level of each factor. With other seeds anything may meet anything.
    Formed("common", forms=("call", "out", "inplace", "grad"), share=0.0, beside=("call", "inplace", "out")),
    # Half precision, integers, bool, complex numbers.
    Formed("dtype", graphs=1.9, focus=("@dtype",), share=1.5),
    # The gradient of each floating operand, for a gradient of the answer that is a view too.
    Formed("gradient", graphs=4.2, forms=("grad",), share=1.6),
    # Operands that are views: transposed, behind an offset, with steps, expanded, channels last, reversed.
    Formed("layout", graphs=1.9, focus=("@layout",), share=2.0),
    _Options("option", graphs=2.1, share=2.0),
    # No elements, no dimensions, one, many, past tiles and past 2**16.
    Formed("size", graphs=1.8, focus=("@size",), share=1.5),
    # NaN, infinity, signed zeros, all alike, in order, numbers far apart.
    Formed("special", graphs=1.7, focus=("@values",)),
)
