"""A large launch in torch's words.

Its numbers, for the conditions under which torch makes it (families/shared/large.py), and the call that leads to it,
with tensors of the shapes that the launch has.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..families.shared.contracts import Kernel
from ..families.shared.large import Number, holds
from ..families.shared.pack import leaf_of
from ..machine.shift import Shift, grown, sizes_of
from ..program.dtypes import dtype_named
from ..program.launch import Buffer, Program, Reference, Same, Shape, Step, View, WrongBinding, dense_strides, memory_of
from .large_host import Host, Tensor
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


_PLACE = re.compile(r"\{(\w+)(?:\[(\d)\])?\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A buffer of a launch: by which key the launch has it, what the kernel calls it, its elements' type and bytes."""

    key: str | int
    name: str
    type: str
    element: int
    buffer: Buffer


def named(kernel: Kernel, step: Step) -> Iterator[Memory]:
    """Yield a launch's memory with its names; behind a table of addresses it is called as the table's field is."""
    for key, buffer in memory_of(step).items():
        own, _, offset = str(key).partition("+")
        argument = next(
            each for each in kernel.metadata.arguments if key in (each.name, each.index) or own == each.name
        )
        if not offset:
            yield Memory(key=key, name=argument.name, type=argument.type, element=argument.element, buffer=buffer)
            continue
        fields = [each for each in argument.fields if each.offset <= int(offset)]
        name, kind = (fields[-1].name, leaf_of(fields[-1])) if fields else (argument.name, "")
        dtype = dtype_named(kind)
        yield Memory(key=key, name=name, type=kind, element=dtype.size if dtype else 1, buffer=buffer)


def tensors_of(kernel: Kernel, move: Move, shift: Shift) -> list[Tensor]:
    """Return the tensors of a large launch: every buffer of elements, with its shape as far as a view tells it."""
    sizes, found = sizes_of(move.step, shift), []
    for each in named(kernel, move.step):
        view, size = _view(move.program, each.buffer), sizes[each.key]
        dtype = view.dtype if view else dtype_named(each.type)
        element = each.element or (dtype.size if dtype else 1)
        if dtype is not None and each.element in (0, 1):
            element = dtype.size
        shape = _shape(move.program, each.buffer, shift, each.key, size) or (-(-size // element),)
        found.append(Tensor(name=each.name, size=size, shape=shape, element=element))
    return found


def call_of(kernel: Kernel, move: Move, tensors: Sequence[Tensor], template: str, numbers: Mapping[str, Number]) -> str:
    """Return the rule's call with the tensors and the numbers of a launch in it."""
    by_name = {each.name: each for each in tensors}

    def text(match: re.Match[str]) -> str:
        name = match[1]
        if name in by_name:
            return _empty(kernel, move, by_name[name])
        if name.endswith("_shape") and name.removesuffix("_shape") in by_name:
            return str(by_name[name.removesuffix("_shape")].shape)
        number = numbers.get(name)
        if isinstance(number, tuple) and match[2]:
            return str(number[int(match[2])])
        return str(number) if isinstance(number, int) else kernel.parts.get(name, match[0])

    return _PLACE.sub(text, template)


def _empty(kernel: Kernel, move: Move, tensor: Tensor) -> str:
    memory = next(each for each in named(kernel, move.step) if each.name == tensor.name)
    view = _view(move.program, memory.buffer)
    dtype = view.dtype if view else dtype_named(memory.type)
    name = f"torch.{dtype.torch}" if dtype else f"…{tensor.element} bytes"
    made = f"torch.empty({tensor.shape}, dtype={name}, device='mps')"
    if view is None or len(tensor.shape) != len(view.shape):
        return made  # its shape is not known: as many elements as its storage has
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    if strides == dense_strides(view.shape):
        return made
    whole = f"torch.empty({tensor.elements}, dtype={name}, device='mps')"
    return f"{whole}.as_strided({tensor.shape}, {strides})"


def _views(program: Program) -> Iterator[View]:
    for check in program.checks:
        yield check.got
        if isinstance(check, Same):
            yield check.want
        elif isinstance(check, Reference):
            yield from (each for each in check.inputs.values() if isinstance(each, View))


def _view(program: Program, buffer: Buffer) -> View | None:
    return next((each for each in _views(program) if each.buffer is buffer), None)


def _shape(program: Program, buffer: Buffer, shift: Shift, key: str | int, size: int) -> Shape | None:
    """Return a view's shape with its outermost dimension as long as the launch has it; None if it is not known."""
    view = _view(program, buffer)
    if view is None or not view.shape or not all(view.shape):
        return None
    if size == buffer.size or shift.stretched.get(key):
        return view.shape
    strides = view.strides if view.strides is not None else dense_strides(view.shape)
    outermost = max(range(len(strides)), key=lambda d: strides[d])
    step, grown = strides[outermost] * view.dtype.size, size - buffer.size
    if step <= 0 or grown % step:
        return None
    return tuple(n + grown // step if d == outermost else n for d, n in enumerate(view.shape))


def strides_text(move: Move, shift: Shift) -> str:
    """Return which tensors are views with a longer stride, in words; empty if none is."""
    parts = []
    for key, (piece, by) in shift.stretched.items():
        parts.append(f"{key} a view with {piece + by * shift.units} bytes from one row to the next")
    return ", ".join(parts)
