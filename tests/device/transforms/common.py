"""The most common form of an operator: the first level of each factor. With other seeds anything may meet anything."""

from engine.transformation import Formed

transformation = Formed(
    "common", forms=("call", "out", "inplace", "grad"), share=0.0, beside=("call", "inplace", "out")
)
