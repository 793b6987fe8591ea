"""References that are more than an expression: `def name(**inputs)` returns a tensor; FUNCTIONS lists them.

Each is called twice: with floats widened to float64, and with the kernel's own types.
"""

from __future__ import annotations

import torch


def nextafter(x, y):
    """The neighbour in the narrow type: the wide one knows no neighbours of float32, and is asked for them."""
    if x.dtype == torch.float64:
        return torch.nextafter(x.to(torch.float32), y.to(torch.float32)).to(torch.float64)
    return torch.nextafter(x, y)


def cast(x, to):
    """What a kernel writes as another type; compare.converted knows which results have no right answer."""
    return x.to(getattr(torch, to))


FUNCTIONS = {"cast": cast, "nextafter": nextafter}
