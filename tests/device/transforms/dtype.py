"""Another dtype than the operator's first: half precision, integers, bool, complex numbers."""

from engine.transformation import Formed

transformation = Formed("dtype", focus=("@dtype",), share=1.5)
