"""Special values: NaN, infinity, signed zeros, all alike, in order, numbers far apart."""

from engine.transformation import Formed

transformation = Formed("special", focus=("@values",))
