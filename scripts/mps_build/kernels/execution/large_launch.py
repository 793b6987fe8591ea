"""The numbers of a large launch, for the conditions under which torch makes it (families/shared/large.py)."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping

from ..families.shared.contracts import Kernel
from ..families.shared.large import Number, holds
from ..machine.shift import Shift, grown
from ..program.dtypes import dtype_named
from ..program.errors import WrongBinding
from ..program.launch import Buffer
from .large_host import Host
from .moves import Move

_VECTOR = re.compile(r"([a-z]+)([234])")


def is_made(host: Host, kernel: Kernel, move: Move, shift: Shift) -> bool:
    """Return whether the host makes a launch, as far as its rule says; True where it says nothing."""
    try:
        return not host.when or holds(host.when, numbers_of(kernel, move, shift))
    except WrongBinding:
        return False  # a length does not fit its word


def numbers_of(kernel: Kernel, move: Move, shift: Shift) -> Mapping[str, Number]:
    """Return a launch's constants by name, `groups`, `element` by argument, and the numbers in the kernel's name."""
    step = move.step
    groups = [-(-threads // size) for threads, size in zip(step.grid, step.threadgroup, strict=True)]
    groups[shift.axis] += shift.groups
    found: dict[str, Number] = {name: int(text) for name, text in kernel.parts.items() if (text or "").isdecimal()}
    elements = {}
    for argument in kernel.metadata.arguments:
        key = argument.name if argument.name in step.arguments else argument.index
        value = step.arguments.get(key)
        if isinstance(value, Buffer):
            elements[argument.name] = argument.element or 1
        elif isinstance(value, bytes):
            data = grown(value, shift.words.get(key, ()), shift.units)
            if (number := _number(argument.type, data)) is not None:
                found[argument.name] = number
    return {**found, "groups": tuple(groups), "element": elements}


def _number(kind: str, data: bytes) -> int | tuple[int, ...] | None:
    """Return a whole number, or those of a vector or an array; None for anything else.

    >>> _number("int2", bytes([5, 0, 0, 0, 7, 0, 0, 0])), _number("bool", b"\\1"), _number("Params", b"")
    ((5, 7), 1, None)
    """
    match = _VECTOR.fullmatch(kind)
    is_vector = match is not None and dtype_named(kind) is None
    dtype = dtype_named(match[1]) if match is not None and is_vector else dtype_named(kind)
    if dtype is None or not dtype.is_exact or len(data) < dtype.size:
        return None
    numbers = struct.unpack(f"<{len(data) // dtype.size}{dtype.struct}", data[: len(data) // dtype.size * dtype.size])
    return numbers[: int(match[2])] if match is not None and is_vector else numbers[0] if len(numbers) == 1 else numbers
