"""What a contract asks for: launches over buffers, and what must hold afterwards."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .dtypes import DType


class NotBound(Exception):
    """A contract knows the family but not this member, with the reason."""


class WrongBinding(Exception):
    """A contract does not fit the kernel it was matched with: its fault, not the kernel's."""


Role = Literal["input", "output", "inout", "scratch"]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buffer:
    """Device memory of exactly `size` bytes. Two arguments that name one Buffer share its memory.

    Args:
        role: `input` must come out unchanged; `output` and `scratch` begin as poison, and every element of an
            output that a check looks at must have been written; `inout` begins as `data`, and may change.
        data: what it begins as.
        align: its end is at a protected page, rounded up to this many bytes (default: the argument's own alignment).
    """

    size: int
    role: Role
    data: bytes = b""
    align: int | None = None


def input_buffer(data: bytes, *, align: int | None = None) -> Buffer:
    """Return a buffer that the kernel may only read."""
    return Buffer(size=len(data), role="input", data=data, align=align)


def output_buffer(size: int, *, align: int | None = None) -> Buffer:
    """Return a buffer of `size` bytes that the kernel must write; what it leaves is found."""
    return Buffer(size=size, role="output", align=align)


def inout_buffer(data: bytes, *, align: int | None = None) -> Buffer:
    """Return a buffer that the kernel reads and writes."""
    return Buffer(size=len(data), role="inout", data=data, align=align)


def scratch_buffer(size: int, *, align: int | None = None) -> Buffer:
    """Return a buffer of `size` bytes whose content is not judged."""
    return Buffer(size=size, role="scratch", align=align)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """A struct that holds GPU addresses (an indirect buffer): bytes, and which buffer's address lies where."""

    data: bytes
    places: Mapping[int, Buffer]


Value = Buffer | Addresses | bytes | None
"""What an argument is bound to: memory, bytes that the kernel only reads (a scalar, a struct, an array), or null."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One launch.

    Args:
        kernel: its name.
        arguments: by argument name; by index (an int) where two have one name. Every buffer must be named.
        grid: threads, as `dispatchThreads` has them; groups * threadgroup for `dispatchThreadgroups`.
        threadgroup: threads of a group; at most 1024 in all.
        threadgroup_bytes: the length of host-sized threadgroup memory, by argument name.
        free: the threads do not work together: any threadgroup size and any order must give equal bits.
        in_order: threadgroups wait for earlier ones (a decoupled look-back): never run them in another order.
    """

    kernel: str
    arguments: Mapping[str | int, Value]
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    threadgroup_bytes: Mapping[str, int] = field(default_factory=dict)
    free: bool = True
    in_order: bool = False


Words = tuple[tuple[int, int, int], ...]
"""Whole numbers that grow: where each begins, its bytes, and what is added to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """How a launch becomes a larger one of its kind, one unit after the other, where trying does not find it.

    An argument's name; behind a table of addresses `NAME+8`, the memory whose address lies there.

    Args:
        groups: by how many threadgroups the launch lies further along `axis`; 0: it has the same ones.
        bytes: by argument, how far its contents lie further on.
        stretched: by argument, the bytes of a piece (a row), and how far each piece lies from the one before it.
        words: by argument, the numbers of a constant that grow.
        values: by argument, the whole numbers that grow in what the launch finds there.
        results: by argument, the whole numbers that grow in what the launch leaves there.
        only: the threadgroups along the axis that are run, where all of them would take too long; empty: all.
    """

    groups: int = 0
    axis: int = 0
    bytes: Mapping[str | int, int]
    stretched: Mapping[str | int, tuple[int, int]] = field(default_factory=dict)
    words: Mapping[str | int, Words] = field(default_factory=dict)
    values: Mapping[str | int, Words] = field(default_factory=dict)
    results: Mapping[str | int, Words] = field(default_factory=dict)
    only: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Elements of a buffer: shape, and strides and offset in elements, outermost first (None: dense)."""

    buffer: Buffer
    dtype: DType
    shape: Shape
    strides: Shape | None = None
    offset: int = 0

    @property
    def count(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Same:
    """Two results have equal bits (any NaN equals any NaN): a form against the dense form of its operator."""

    got: View
    want: View


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A result has exactly these bytes (dense elements of the view)."""

    got: View
    want: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A result against torch on the CPU. An `inout` buffer's view among the inputs is what it holds afterwards:
    give a second, `input` Buffer (or `before`) for what it held before.

    Args:
        name: of a family's `references`.
        inputs: by the names that the expression uses: views, numbers, lists of numbers, strings.
        ulp: more than the row's bound, where this launch's accumulation length asks for it.
        scale: an absolute error that is allowed on top (sums: eps * length * magnitude).
    """

    got: View
    name: str
    inputs: Mapping[str, object]
    ulp: float | None = None
    scale: float = 0.0


Check = Same | Known | Reference


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Launches in order, and what must hold after the last one.

    Args:
        label: which case it is: shapes, strides, dtypes.
        varies: why the bits may depend on the order of threads (float atomics); then only the checks hold.
        growth: how its one launch becomes as large as torch makes it (verify_kernels --large).
    """

    label: str
    steps: Sequence[Step]
    checks: Sequence[Check]
    varies: str = ""
    growth: Growth | None = None


def every(length: int, size: int, growth: int) -> Words:
    """Return that all numbers, of `size` bytes each, in so many bytes grow.

    >>> every(8, 4, 1)
    ((0, 4, 1), (4, 4, 1))
    """
    return tuple((at, size, growth) for at in range(0, length, size))


def memory_of(step: Step) -> dict[str | int, Buffer]:
    """Return a launch's memory by argument; behind a table of addresses at byte 8 as `NAME+8`."""
    found: dict[str | int, Buffer] = {}
    for key, value in step.arguments.items():
        if isinstance(value, Buffer):
            found[key] = value
        elif isinstance(value, Addresses):
            found |= {f"{key}+{offset}": buffer for offset, buffer in value.places.items()}
    return found


def dense_strides(shape: Sequence[int]) -> Shape:
    """Return row-major strides.

    >>> dense_strides((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
