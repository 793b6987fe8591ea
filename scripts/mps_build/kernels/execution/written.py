"""Which bytes of an output a program may write: those of its views, and no others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ..program.launch import View, dense_strides


def gap_changed(views: Sequence[View], contents: bytes, poison: int) -> int | None:
    """Return the first byte outside of all views that is not `poison` any more, or None.

    >>> from ..program.dtypes import DTYPES; from ..program.launch import output_buffer
    >>> view = View(buffer=output_buffer(4), dtype=DTYPES["char"], shape=(2,), strides=(2,))
    >>> gap_changed([view], bytes([1, 9, 2, 9]), 9), gap_changed([view], bytes([1, 9, 2, 3]), 9)
    (None, 3)
    """
    if any(view.count * view.dtype.size == len(contents) and _is_dense(view) for view in views):
        return None
    mask = bytearray(b"\xff" * len(contents))
    for view in views:
        if view.count:
            _clear(mask, view)
    changed = int.from_bytes(contents, "little") ^ int.from_bytes(bytes([poison]) * len(contents), "little")
    left = changed & int.from_bytes(mask, "little")
    return None if not left else ((left & -left).bit_length() - 1) // 8


def _is_dense(view: View) -> bool:
    return view.strides is None or view.strides == dense_strides(view.shape)


def _clear(mask: bytearray, view: View) -> None:
    size = view.dtype.size
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    *outer, inner = view.shape or (1,)
    step = strides[-1] if strides else 1
    for index in itertools.product(*(range(n) for n in outer)):
        at = view.offset + sum(i * s for i, s in zip(index, strides, strict=False))
        if step == 1:
            mask[at * size : (at + inner) * size] = bytes(inner * size)
        else:
            for i in range(inner):
                mask[(at + i * step) * size : (at + i * step + 1) * size] = bytes(size)
