"""What can run a program: here, or in a closed process; and what is done with the bytes that it left."""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ..program.launch import Program, Step, View, WrongBinding, dense_strides
from .checks import Aligned, RunCheck
from .left import Left, in_words
from .shift import Moved, Shift, moved_of
from .troubles import Compiled, Ran

# The runtime's numbers of floating types, whose NaNs are many and mean one thing.
_KINDS = {"half": 1, "half2": 1, "bfloat": 2, "float": 3, "float2": 3}


class Runner(ABC):
    """Runs programs of kernels that are compiled; `library` is the C runtime."""

    def __init__(self, library: Any, codes: Mapping[str, Compiled]) -> None:
        self.library = library
        self.codes: Mapping[str, Compiled] = codes

    @abstractmethod
    def left_by(self, program: Program, checks: Sequence[RunCheck]) -> tuple[Left, list[bytes]]:
        """Run a program; return what it left, and the bytes of the buffers that it may write."""

    @abstractmethod
    def shifted_by(self, step: Step, shift: Shift, groups: Sequence[int] | None) -> tuple[Left, list[bytes]]:
        """Run a step where a shift moves it to; return what it left, and the moved bytes of its outputs."""

    def run(self, program: Program, checks: Sequence[RunCheck] = ()) -> Ran:
        """Run all steps of a program.

        Raises:
            WrongBinding: an argument is missing, too long or unknown.
        """
        ran = in_words(program, self.codes, *self.left_by(program, checks))
        if not any(isinstance(each, Aligned) for each in checks) and any(
            trouble.kind == "trap" for trouble in ran.troubles
        ):
            return in_words(program, self.codes, *self.left_by(program, (*checks, Aligned())))
        return ran

    def run_shifted(self, step: Step, shift: Shift, groups: Sequence[int] | None = None) -> Moved:
        """Run a step's own threadgroups (or some of them along the axis) where the shift moves them to.

        Raises:
            WrongBinding: a buffer becomes larger than there is room for, or a length does not fit its word.
        """
        left, contents = self.shifted_by(step, shift, groups)
        return moved_of(step, shift, self.codes, left, contents)

    def take(self, view: View, contents: bytes) -> bytes:
        """Return a view's elements, dense.

        Raises:
            WrongBinding: the view reaches past its buffer.
        """
        strides = view.strides if view.strides is not None else dense_strides(view.shape)
        if view.count == 0:
            return b""
        size = view.dtype.size
        last = view.offset + sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s > 0)
        first = view.offset + sum((n - 1) * s for n, s in zip(view.shape, strides, strict=True) if s < 0)
        if first < 0 or (last + 1) * size > len(contents):
            raise WrongBinding(f"a view reaches byte {(last + 1) * size} of {len(contents)}")
        if strides == dense_strides(view.shape):
            return contents[view.offset * size : (view.offset + view.count) * size]
        out = ctypes.create_string_buffer(view.count * size)
        count = len(view.shape)
        sizes = (ctypes.c_int64 * count)(*view.shape)
        steps = (ctypes.c_int64 * count)(*(each * size for each in strides))
        source = ctypes.c_char_p(contents)
        address = (ctypes.cast(source, ctypes.c_void_p).value or 0) + view.offset * size
        self.library.rt_strided(out, address, size, count, ctypes.addressof(sizes), ctypes.addressof(steps), 0)
        return out.raw

    def first_difference(self, got: bytes, want: bytes, view: View) -> int | None:
        """Return the first element (of a complex number: component) that differs, any NaN being equal to any."""
        if got == want:
            return None
        kind = _KINDS.get(view.dtype.name, 0)
        size = view.dtype.size // (2 if view.dtype.kind == "complex" else 1)
        if len(got) != len(want):
            return 0
        at = self.library.rt_differs(got, want, len(got) // size, size, kind)
        return None if at < 0 else int(at) // (2 if view.dtype.kind == "complex" else 1)

    def canonical(self, data: bytes, view: View) -> bytes:
        """Return a view's elements with every NaN written in one way."""
        kind = _KINDS.get(view.dtype.name, 0)
        if not kind or not data:
            return data
        size = view.dtype.size // (2 if view.dtype.kind == "complex" else 1)
        out = ctypes.create_string_buffer(data, len(data))
        self.library.rt_canonical(out, len(data) // size, kind)
        return out.raw
