"""Another size: no elements, no dimensions, one, many, past tiles and past 2**16."""

from engine.transformation import Formed

transformation = Formed("size", graphs=1.4, focus=("@size",), share=1.5)
