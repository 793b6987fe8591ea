"""Scalars, small vectors, arrays and structs as bytes, in the layout that this kernel's own metadata says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...program.dtypes import dtype_named
from ...program.launch import WrongBinding
from ...program.values import pack as pack_elements
from ...read.metadata import Argument, Field

_VECTOR = re.compile(r"(?:packed_)?(bool|u?char|u?short|u?int|u?long|half|bfloat|float)([234])")


def pack_argument(argument: Argument, value: object) -> bytes:
    """Return the bytes of a constant argument: a number, a sequence, or for a struct a mapping by field name.

    A pointer takes as many elements as there are; a reference is filled up with zeros to its own size.

    Raises:
        WrongBinding: the value does not fit the type.
    """
    if isinstance(value, bytes):
        data = value
    elif argument.fields and isinstance(value, Mapping):
        data = pack_struct(argument.fields, value, argument.size or argument.element)
    elif argument.fields and isinstance(value, Sequence):
        data = _pack_array(argument.fields, value)
    else:
        data = pack_type(argument.type, value, argument.element)
    if argument.size is None:
        return data
    if len(data) > argument.size:
        raise WrongBinding(f"{argument.name} has {argument.size} bytes, and {len(data)} are bound")
    return data.ljust(argument.size, b"\0")


def pack_type(name: str, value: object, element: int = 0) -> bytes:
    """Return a value of a Metal type; a sequence gives one element after the other.

    >>> pack_type("uint3", (1, 2, 3)).hex(), pack_type("long", [1, 2]).hex()
    ('01000000020000000300000000000000', '01000000000000000200000000000000')
    """
    numbers = list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else [value]
    if match := _VECTOR.fullmatch(name):
        if name not in ("half2", "float2") or not all(isinstance(each, complex) for each in numbers):
            return _pack_vector(match[1], int(match[2]), numbers, is_packed=name.startswith("packed"))
        numbers = [part for each in numbers if isinstance(each, complex) for part in (each.real, each.imag)]
    dtype = dtype_named(name)
    if dtype is None:
        whole = [each for each in numbers if isinstance(each, int)]
        if len(whole) < len(numbers) or element not in (1, 2, 4, 8):
            raise WrongBinding(f"{value!r} cannot be packed as {name}")
        return b"".join(each.to_bytes(element, "little", signed=each < 0) for each in whole)
    return pack_elements(dtype, numbers)  # type: ignore[arg-type]


def _pack_vector(scalar: str, width: int, numbers: list[object], *, is_packed: bool) -> bytes:
    """Return vectors of `width`; a vector of three takes four places unless it is packed."""
    if numbers and isinstance(numbers[0], Sequence):
        return b"".join(_pack_vector(scalar, width, list(each), is_packed=is_packed) for each in numbers)  # type: ignore[call-overload]
    places = 4 if width == 3 and not is_packed else width
    padded: list[object] = []
    for begin in range(0, len(numbers), width):
        padded += (numbers[begin : begin + width] + [0] * places)[:places]
    return pack_type(scalar, padded)


def pack_struct(fields: Sequence[Field], values: Mapping[str, object], size: int) -> bytes:
    """Return a struct; fields that are not named are zero.

    Raises:
        WrongBinding: a name that the struct has not.
    """
    data = bytearray(size)
    known = {each.name: each for each in fields}
    for name, value in values.items():
        if name not in known:
            raise WrongBinding(f"the struct has no field {name}; it has {', '.join(known)}")
        packed = _pack_field(known[name], value)
        if len(packed) > known[name].size * max(known[name].length, 1):
            raise WrongBinding(f"field {name} has {known[name].size} bytes, and {len(packed)} are bound")
        data[known[name].offset : known[name].offset + len(packed)] = packed
    return bytes(data)


def _pack_field(field: Field, value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    if field.fields:
        if isinstance(value, Mapping):
            return pack_struct(field.fields, value, field.size)
        return _pack_array(field.fields, value if isinstance(value, Sequence) else [value])
    return pack_type(field.type, value, field.size)


def _pack_array(fields: Sequence[Field], values: Sequence[object]) -> bytes:
    """`metal::array` has one field, `__elems`."""
    if len(fields) != 1:
        raise WrongBinding(f"a sequence for a struct of {len(fields)} fields")
    return pack_type(fields[0].type, values, fields[0].size)


def leaf_of(what: Argument | Field) -> str:
    """Return the type of the first number in an argument or a field: of a vector its component's, of a struct its
    first field's."""
    if what.fields:
        return leaf_of(what.fields[0])
    match = _VECTOR.fullmatch(what.type)
    return match[1] if match and dtype_named(what.type) is None else what.type
