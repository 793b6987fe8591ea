"""Operands that are views: transposed, behind an offset, with steps, expanded, channels last, reversed."""

from engine.transformation import Formed

transformation = Formed("layout", graphs=1.5, focus=("@layout",), share=2.0)
