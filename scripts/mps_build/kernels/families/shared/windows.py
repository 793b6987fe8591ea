"""Windows over images."""

from __future__ import annotations

# Shape, kernel, stride, padding, dilation.
WINDOWS = (
    ((2, 3, 7, 9), (3, 2), (2, 1), (1, 1), (1, 2)),
    ((1, 2, 5, 6, 7), (2, 3, 2), (1, 2, 2), (0, 1, 1), (1, 1, 1)),
    ((2, 2, 1, 11), (1, 4), (1, 3), (0, 2), (1, 1)),
)


def out_size(n: int, k: int, s: int, p: int, d: int) -> int:
    """Return how many windows of `k` elements fit along `n`: stride, padding and dilation are s, p and d."""
    return (n + 2 * p - d * (k - 1) - 1) // s + 1
