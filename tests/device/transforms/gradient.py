"""The gradient of each floating operand, for a gradient of the answer that is a view too."""

from engine.transformation import Formed

transformation = Formed("gradient", forms=("grad",), graphs=2, share=2.0)
