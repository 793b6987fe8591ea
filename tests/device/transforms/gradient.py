"""The gradient of each floating operand, for a gradient of the answer that is a view too."""

from engine.transformation import Formed

transformation = Formed("gradient", graphs=3.7, forms=("grad",), share=2.0)
