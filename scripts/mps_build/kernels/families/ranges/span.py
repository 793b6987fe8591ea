"""What a launch into a dense tensor is told of its places."""

from __future__ import annotations

from ..shared.contracts import Kernel


def span(kernel: Kernel, count: int, stride: int, first: int = 0) -> tuple[int, ...]:
    """Return `p`: number of elements, stride in elements, and from torch 2.15 on the first element's index."""
    if not kernel.has("p"):
        return ()
    argument, word = kernel.argument("p"), 8 if kernel.name.endswith("_i64") else 4
    return (count, stride) if (argument.size or argument.element) == 2 * word else (count, stride, first)
