"""A metallib's header and its list of functions: for which OS it was compiled, how many kernels, their names.

Apple documents none of this; the layout was read from the metallibs of torch 2.6 to 2.15, and agrees with
what others found (https://github.com/YuAo/MetalLibraryArchive).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..limits import MOST_FUNCTIONS, Malformed

HEADER = struct.Struct("<4s3H2B2H9Q")
_SIZE = struct.Struct("<I")
PLATFORM_MACOS = 0x8001
MOST_LIST_BYTES = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MetallibHeader:
    """The first 88 bytes."""

    platform: int
    os_version: tuple[int, int]
    file_size: int
    list_offset: int
    list_size: int


def parse_header(data: bytes) -> MetallibHeader:
    """Return the header.

    Raises:
        Malformed: no `MTLB`, or cut off.
    """
    if len(data) < HEADER.size:
        raise Malformed(f"{len(data)} bytes hold no metallib header")
    magic, platform, _, _, _, _, major, minor, file_size, list_offset, list_size, *_ = HEADER.unpack_from(data)
    if magic != b"MTLB":
        raise Malformed(f"begins with {magic.hex(' ')}, not MTLB")
    if list_size > MOST_LIST_BYTES or list_offset < HEADER.size or list_offset + list_size > file_size:
        raise Malformed(f"says {list_size} bytes of functions at byte {list_offset} of {file_size}")
    return MetallibHeader(
        platform=platform, os_version=(major, minor), file_size=file_size, list_offset=list_offset, list_size=list_size
    )


@dataclass(frozen=True, slots=True)
class FunctionList:
    """The list of functions: its count, then one record of tags for each; 19 000 of them in torch 2.15."""

    data: bytes

    def __len__(self) -> int:
        return int.from_bytes(self.data[:4], "little")

    def check(self) -> None:
        """Raise Malformed unless the records are there, one after the other."""
        self._ends()

    def names(self) -> tuple[str, ...]:
        """Return every function's name, in the order of the file."""
        begin, names = 4, []
        for end in self._ends():
            names.append(_name(self.data, begin + 4, end))
            begin = end
        return tuple(names)

    def _ends(self) -> list[int]:
        """Return where each record ends."""
        data, position, count, whole = self.data, 4, len(self), len(self.data)
        if whole < 4 or count * 8 > whole or count > MOST_FUNCTIONS:
            raise Malformed(f"{count} functions in {whole} bytes")
        ends: list[int] = []
        size_at = _SIZE.unpack_from
        while len(ends) < count and position + 4 <= whole:
            (size,) = size_at(data, position)
            position += size
            if size < 8 or position > whole:
                raise Malformed(f"function {len(ends)} of {count} has size {size} at byte {position - size} of {whole}")
            ends.append(position)
        if len(ends) < count:
            raise Malformed(f"{len(ends)} of {count} functions in {whole} bytes")
        return ends


def _name(data: bytes, begin: int, end: int) -> str:
    while begin + 6 <= end and data[begin : begin + 4] != b"ENDT":
        length = int.from_bytes(data[begin + 4 : begin + 6], "little")
        if begin + 6 + length > end:
            break
        if data[begin : begin + 4] == b"NAME":
            return data[begin + 6 : begin + 6 + length].rstrip(b"\0").decode("utf-8", "backslashreplace")
        begin += 6 + length
    raise Malformed(f"a function without a name at byte {begin}")
