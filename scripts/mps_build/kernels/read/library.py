"""The Metal libraries of a wheel, and the functions that each lists.

Apple documents none of the container; the layout was read from the metallibs of torch 2.6 to 2.15
(and agrees with https://github.com/YuAo/MetalLibraryArchive).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ...inspection.audit.metallib import parse_header
from ...inspection.limits import Malformed

_TABLE = struct.Struct("<9Q")
_TABLE_OFFSET = 16
_BITCODE_MAGIC = (b"\xde\xc0\x17\x0b", b"BC\xc0\xde")
KERNEL_TYPE = 2
# The library that macOS 14 and 15 open, and every macOS before the tensor operations of Metal 4.
BASIC = "metal_basic"
MOST_BITCODE_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One record of a metallib.

    Args:
        name: the kernel's name.
        kind: 2 is a kernel (vertex and fragment functions have others).
        offset: where its bitcode begins, in bytes from the metallib's first.
        size: bytes of its bitcode.
        air: version of AIR, and of the Metal language.
        fault: why it cannot be read; empty if it can.
    """

    name: str
    kind: int
    offset: int
    size: int
    air: tuple[int, int] = (0, 0)
    metal: tuple[int, int] = (0, 0)
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """A metallib: its section's name, the OS it was compiled for, its functions and its bytes."""

    name: str
    os_version: tuple[int, int]
    functions: tuple[Function, ...]
    data: bytes

    def bitcode(self, function: Function) -> bytes:
        """Return the bitcode of one function."""
        return self.data[function.offset : function.offset + function.size]


def parse_library(name: str, data: bytes) -> Library:
    """Return the library in a section's bytes. A function that is cut off has a `fault`; the others stand.

    Raises:
        Malformed: the header or the list of functions cannot be read.
    """
    header = parse_header(data)
    bitcode = _TABLE.unpack_from(data, _TABLE_OFFSET)[7]
    functions = tuple(_function(record, bitcode, data) for record in _records(data, header.list_offset))
    return Library(name=name, os_version=header.os_version, functions=functions, data=data)


def _records(data: bytes, offset: int) -> Iterator[dict[bytes, bytes]]:
    """Yield each record's tags. The list's stated size leaves its own count out, so the records' own sizes count."""
    if offset + 4 > len(data):
        raise Malformed(f"the list of functions begins at byte {offset} of {len(data)}")
    (count,) = struct.unpack_from("<I", data, offset)
    position = offset + 4
    if count * 8 > len(data):
        raise Malformed(f"{count} functions in {len(data)} bytes")
    for number in range(count):
        if position + 4 > len(data):
            raise Malformed(f"function {number} of {count} lies outside the {len(data)} bytes")
        (size,) = struct.unpack_from("<I", data, position)
        end = position + size
        if size < 8 or end > len(data):
            raise Malformed(f"function {number} of {count} has size {size} at byte {position} of {len(data)}")
        yield _tags(data[position + 4 : end])
        position = end


def _tags(record: bytes) -> dict[bytes, bytes]:
    tags, position = {}, 0
    while position + 6 <= len(record) and record[position : position + 4] != b"ENDT":
        (length,) = struct.unpack_from("<H", record, position + 4)
        tags[record[position : position + 4]] = record[position + 6 : position + 6 + length]
        position += 6 + length
    return tags


def _function(tags: dict[bytes, bytes], bitcode: int, data: bytes) -> Function:
    name = tags.get(b"NAME", b"").rstrip(b"\0").decode("utf-8", "backslashreplace")
    offsets, size_tag, versions = tags.get(b"OFFT", b""), tags.get(b"MDSZ", b""), tags.get(b"VERS", b"")
    kind = int.from_bytes(tags.get(b"TYPE", b""), "little")
    if not name or len(offsets) != 24 or len(size_tag) != 8:
        return Function(name=name or "?", kind=kind, offset=0, size=0, fault="its record lacks NAME, OFFT or MDSZ")
    offset, size = bitcode + struct.unpack("<3Q", offsets)[2], struct.unpack("<Q", size_tag)[0]
    fault = ""
    if size > MOST_BITCODE_BYTES or offset + size > len(data):
        fault = f"its {size} bytes of bitcode at byte {offset} lie outside the {len(data)} bytes of the library"
    elif data[offset : offset + 4] not in _BITCODE_MAGIC:
        fault = f"its bitcode begins with {data[offset : offset + 4].hex(' ')}"
    numbers = struct.unpack("<4H", versions) if len(versions) == 8 else (0, 0, 0, 0)
    return Function(
        name=name, kind=kind, offset=offset, size=size, air=numbers[:2], metal=numbers[2:], fault=fault
    )  # fmt: skip
