"""References that are more than an expression: `def name(**inputs)` returns a tensor; FUNCTIONS lists them.

Each is called twice: with floats widened to float64, and with the kernel's own types.
"""

from __future__ import annotations

import torch


def cast(*, x, to):
    """The elements as another type, as a conversion does it (out of range: whatever the CPU does)."""
    return x.to(getattr(torch, to))


FUNCTIONS = {"cast": cast}
