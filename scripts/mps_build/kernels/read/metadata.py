"""What a kernel's own metadata says: its arguments in order, their types, sizes and struct layouts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...inspection.limits import Malformed
from ..program.dtypes import DTYPES

# Where the runtime keeps each built-in argument, in 32-bit words (runtime.h has the same table), and its components.
BUILTINS = {
    "thread_position_in_grid": (0, 3),
    "threadgroup_position_in_grid": (3, 3),
    "thread_position_in_threadgroup": (6, 3),
    "threads_per_threadgroup": (9, 3),
    "threadgroups_per_grid": (12, 3),
    "threads_per_grid": (15, 3),
    "thread_index_in_simdgroup": (18, 1),
    "simdgroup_index_in_threadgroup": (19, 1),
    "thread_index_in_threadgroup": (20, 1),
    "simdgroups_per_threadgroup": (21, 1),
    "threads_per_simdgroup": (22, 1),
    "thread_execution_width": (22, 1),
    "dispatch_threads_per_threadgroup": (23, 3),
}
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!\{(.*)\}$", re.MULTILINE)
_NODE_OF_KERNELS = re.compile(r"^!air\.kernel = !\{(.*)\}$", re.MULTILINE)
_ARRAY = re.compile(r'^%"struct\.metal::array[.\d]*" = type \{ \[(\d+) x', re.MULTILINE)
_SWITCH = re.compile(r"^ *switch i\d+ [^\[]*\[([^\]]*)\]", re.MULTILINE)
_CASE = re.compile(r"i\d+ (-?\d+), label")
_FEWEST_CASES = 8
_TOKEN = re.compile(r'\s*(?:!"((?:[^"\\]|\\.)*)"|!(\d+)|i\d+ (-?\d+)|(null)|ptr @("[^"]*"|[\w.$-]+)|[^,]+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a parameter struct: offset and size in bytes; `length` is that of an array, 0 for none."""

    name: str
    type: str
    offset: int
    size: int
    length: int
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument.

    Args:
        kind: `buffer`, `indirect_buffer`, or the name of a built-in (`thread_position_in_grid` …).
        type: the C++ name; `void` for untyped memory; a functor's `decltype(…)` for some results.
        slot: the buffer's index; None for built-ins.
        access: `read`, `write`, `read_write`: the most it may do.
        space: 1 device, 2 constant, 3 threadgroup (the host sets its length).
        size: exact bytes of what a C++ reference refers to; None for a pointer.
        element: bytes of what the pointer points to (0 for `void`); `align` its alignment.
        fields: the layout of a struct.
    """

    index: int
    name: str
    kind: str
    type: str
    slot: int | None = None
    access: str = ""
    space: int = 0
    size: int | None = None
    element: int = 0
    align: int = 1
    fields: tuple[Field, ...] = ()

    @property
    def is_buffer(self) -> bool:
        """True if the argument is bound to a buffer slot."""
        return self.slot is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """A kernel's arguments, and what else its code says of how it is called.

    Args:
        max_threads: the most threads of a threadgroup that it was compiled for.
        arrays: lengths of the `metal::array` types it knows: how many elements a thread takes.
        types: codes of the element types between which it chooses, if it reads or writes any type (a large switch).
    """

    function: str
    arguments: tuple[Argument, ...]
    max_threads: int | None
    arrays: tuple[int, ...] = ()
    types: tuple[int, ...] = ()


def parse_metadata(text: str) -> Metadata:
    """Return what `!air.kernel` says.

    Args:
        text: a module, printed by LLVM.

    Raises:
        Malformed: there is not exactly one kernel, or its node is not as Metal's compiler writes it.
    """
    metadata = text[text.find("\n!") :]  # LLVM prints it last; what a search need not look through takes no time
    nodes = dict(_NODE.findall(metadata))
    kernels = _NODE_OF_KERNELS.findall(metadata)
    if len(kernels) != 1 or not re.fullmatch(r"!\d+", kernels[0]):
        raise Malformed("the module does not hold exactly one kernel")
    arrays = tuple(int(length) for length in _ARRAY.findall(text[: text.find("\ndefine ")]))
    try:
        kernel = _kernel(list(_tokens(nodes[kernels[0][1:]])), nodes, arrays)
        return replace(kernel, types=_types(text))
    except (KeyError, IndexError, ValueError, StopIteration) as error:
        raise Malformed(f"the kernel's metadata cannot be read ({error!r})") from error


def _types(text: str) -> tuple[int, ...]:
    """Return the cases of the switches over element types: they have all common types, and nothing else."""
    codes = {dtype.code for dtype in DTYPES.values()}
    found = _SWITCH.findall(text) if " switch i" in text else []
    switches = [set(map(int, _CASE.findall(cases))) for cases in found]
    return tuple(sorted(set().union(*(each for each in switches if len(each) >= _FEWEST_CASES and each <= codes))))


Token = tuple[str, str]


def _tokens(text: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        string, node, number, null, function = match.groups()
        if string is not None:
            yield "string", string
        elif node is not None:
            yield "node", node
        elif number is not None:
            yield "number", number
        elif null or function:
            yield "symbol", (function or "null").strip('"')
        elif match[0].strip():
            yield "other", match[0].strip()


def _kernel(parts: list[Token], nodes: dict[str, str], arrays: tuple[int, ...]) -> Metadata:
    most = None
    for _, node in parts[3:]:
        option = list(_tokens(nodes[node]))
        if option[0] == ("string", "air.max_work_group_size"):
            most = int(option[1][1])
    references = [node for _, node in _tokens(nodes[parts[2][1]])]
    arguments = tuple(_argument(list(_tokens(nodes[node])), nodes) for node in references)
    return Metadata(function=parts[0][1], arguments=arguments, max_threads=most, arrays=arrays)


def _argument(parts: list[Token], nodes: dict[str, str]) -> Argument:
    values: dict[str, str] = {}
    words: set[str] = set()
    position = 2
    while position < len(parts):
        word = parts[position][1]
        words.add(word)
        follows = parts[position + 1] if position + 1 < len(parts) else ("", "")
        if word == "air.location_index":
            values[word] = follows[1]
            position += 3
        elif follows[0] in ("number", "node") or word in ("air.arg_type_name", "air.arg_name"):
            values[word] = follows[1]
            position += 2
        else:
            position += 1
    layout = values.get("air.struct_type_info")
    size = values.get("air.buffer_size")
    access = next((each for each in ("read_write", "read", "write") if f"air.{each}" in words), "")
    return Argument(
        index=int(parts[0][1]),
        kind=parts[1][1].removeprefix("air."),
        name=values.get("air.arg_name", ""),
        type=values.get("air.arg_type_name", ""),
        slot=int(values["air.location_index"]) if "air.location_index" in values else None,
        access=access,
        space=int(values.get("air.address_space", 0)),
        size=int(size) if size is not None else None,
        element=int(values.get("air.arg_type_size", 0)),
        align=int(values.get("air.arg_type_align_size", 1)),
        fields=_fields(list(_tokens(nodes[layout])), nodes) if layout else (),
    )


def _fields(parts: list[Token], nodes: dict[str, str]) -> tuple[Field, ...]:
    """Return a struct's fields: offset, size, array length, type, name; a nested layout stands before its field."""
    fields, position = [], 0
    while position < len(parts):
        nested: tuple[Field, ...] = ()
        if parts[position] == ("string", "air.struct_type_info"):
            nested = _fields(list(_tokens(nodes[parts[position + 1][1]])), nodes)
            position += 2
        if position + 5 > len(parts):
            break  # `air.indirect_argument` and its kin may follow the last field
        offset, size, length, type_name, name = (value for _, value in parts[position : position + 5])
        fields.append(
            Field(name=name, type=type_name, offset=int(offset), size=int(size), length=int(length), fields=nested)
        )
        position += 5
        while position < len(parts) and parts[position][1] in ("air.indirect_argument",):
            position += 2
    return tuple(fields)


_MOST_ARGUMENTS, _MOST_BYTES, _MOST_FIELDS = 128, 1 << 20, 4096


def is_bounded(metadata: Metadata) -> bool:
    """Return whether a kernel's metadata has sizes that a kernel can have: what a contract packs is as large."""
    numbers = [metadata.max_threads or 0, *metadata.arrays, *metadata.types]
    fields = [field for each in metadata.arguments for field in _every(each.fields)]
    for each in metadata.arguments:
        numbers += [each.index, each.slot or 0, each.space, each.size or 0, each.element, each.align]
    for field in fields:
        numbers += [field.offset, field.size, field.length]
    return (
        len(metadata.arguments) <= _MOST_ARGUMENTS
        and len(fields) <= _MOST_FIELDS
        and all(0 <= number <= _MOST_BYTES for number in numbers)
        and sorted(each.index for each in metadata.arguments) == list(range(len(metadata.arguments)))
    )


def _every(fields: tuple[Field, ...]) -> Iterator[Field]:
    for each in fields:
        yield each
        yield from _every(each.fields)
