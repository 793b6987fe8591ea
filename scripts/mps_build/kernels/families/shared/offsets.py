"""Tables of offsets: every element's place in each tensor, in bytes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ...program.dtypes import DTYPES
from ...program.launch import Shape, View
from ...program.values import pack
from .contracts import Kernel
from .tensors import strides_of


def _offsets(views: Sequence[View], shape: Shape) -> list[int]:
    """Return the byte offsets of each element in each view, one element after the other."""
    numbers = []
    for position in itertools.product(*map(range, shape)):
        for view in views:
            numbers.append(sum(p * s for p, s in zip(position, strides_of(view), strict=True)) * view.dtype.size)
    return numbers


def offsets_table(kernel: Kernel, views: Sequence[View], shape: Shape, width: int | None = None) -> bytes:
    """Return vectors of three offsets, in the element type that the argument has (16 or 32 bytes each)."""
    rows = _offsets(views, shape)
    argument = kernel.argument("offsets")
    kind = DTYPES["ulong" if "long" in argument.type or width == 64 else "uint"]
    padded = [part for at in range(0, len(rows), 3) for part in (*rows[at : at + 3], 0)]
    return pack(kind, padded)
