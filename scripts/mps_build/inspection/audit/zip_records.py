"""The records around a zip's members: where the directory lies, zip64, extra fields, data descriptors."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

END = struct.Struct("<4s4H2LH")
END64 = struct.Struct("<4sQ2H2L4Q")
LOCATOR = struct.Struct("<4sLQL")
SATURATED_16, SATURATED_32 = 0xFFFF, 0xFFFFFFFF
ZIP64_EXTRA, UNICODE_PATH_EXTRA = 0x0001, 0x7075


class Unreadable(Exception):
    """The file cannot be read as a zip at all."""


def read_at(descriptor: int, size: int, offset: int) -> bytes:
    """Return what lies there; nothing at an offset that no file has (a zip64 record may say 2**64 - 1)."""
    return os.pread(descriptor, size, offset) if offset < 1 << 62 else b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """The central directory: where it lies, how many entries it says it has, its bytes, what is odd about it."""

    offset: int
    count: int
    data: bytes
    faults: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """What an entry's extra field holds for us: the 64-bit sizes, if it has some."""

    zip64: bytes | None

    def resolve(self, size: int, packed: int, offset: int, faults: list[str]) -> tuple[int, int, int]:
        """Return the three numbers, the saturated ones from the zip64 field, which must hold those and no other."""
        saturated = [number == SATURATED_32 for number in (size, packed, offset)]
        if self.zip64 is None:
            return size, packed, offset
        if len(self.zip64) != 8 * sum(saturated):
            faults.append("has a zip64 field that some readers obey and others ignore")
            return size, packed, offset
        wide = iter(struct.unpack(f"<{sum(saturated)}Q", self.zip64))
        size, packed, offset = (
            next(wide) if is_wide else number for is_wide, number in zip(saturated, (size, packed, offset), strict=True)
        )
        return size, packed, offset


def read_directory(descriptor: int, file_size: int, *, most_bytes: int) -> Directory:
    """Return the central directory; the one end record must be the last thing in the file.

    Raises:
        Unreadable: no end record, or a directory outside the file.
    """
    if file_size < END.size:
        raise Unreadable("the file is empty" if not file_size else f"{file_size} bytes are too few for a zip file")
    begin = max(0, file_size - END.size - 0xFFFF - LOCATOR.size - END64.size)
    tail = os.pread(descriptor, file_size - begin, begin)
    last = tail.rfind(b"PK\5\6")
    if last < 0 or last + END.size > len(tail):
        raise Unreadable("has no end record: no zip, or cut off")
    _, disk, first_disk, on_disk, count, size, offset, comment = END.unpack_from(tail, last)
    faults = []
    behind = len(tail) - last - END.size
    if behind != comment:
        # Readers that look for a record that fits its comment, and readers that take the last one, part here.
        faults.append(f"{behind} bytes follow the end record, which announces {comment}")
    at = begin + last
    if disk or first_disk or on_disk != count:
        faults.append("says that it is one part of several")
    locator = tail[last - LOCATOR.size : last] if last >= LOCATOR.size else b""
    if locator.startswith(b"PK\6\7"):
        count, size, offset, at = _zip64(descriptor, locator, at, (count, size, offset), faults)
    elif count == SATURATED_16 or SATURATED_32 in (size, offset):
        raise Unreadable("announces a zip64 record that is not there")
    if offset + size > at:
        raise Unreadable("its directory lies outside the file")
    if offset + size != at:
        raise Unreadable(f"{at - offset - size} bytes more than the end record says: prepended or inserted")
    if size > most_bytes:
        raise Unreadable(f"its directory has {size} bytes; at most {most_bytes} are read")
    data = os.pread(descriptor, size, offset)
    if b"PK\5\6" in data or b"PK\5\6" in tail[last + 4 :]:
        faults.append("has two end records")
    return Directory(offset=offset, count=count, data=data, faults=tuple(faults))


def _zip64(
    descriptor: int, locator: bytes, end: int, plain: tuple[int, int, int], faults: list[str]
) -> tuple[int, int, int, int]:
    """Return (count, size, offset) of the zip64 record and where it begins; it must not contradict the plain one."""
    _, disk, at, disks = LOCATOR.unpack(locator)
    expected = end - LOCATOR.size - END64.size
    record = os.pread(descriptor, END64.size, expected) if expected >= 0 else b""
    if at != expected or len(record) < END64.size or not record.startswith(b"PK\6\6"):
        raise Unreadable("its zip64 record is not where its locator says")
    _, length, _, _, record_disk, first_disk, on_disk, count, size, offset = END64.unpack(record)
    if disk or disks > 1 or record_disk or first_disk or on_disk != count or length != END64.size - 12:
        faults.append("has an odd zip64 record")
    for wide, narrow, saturated in zip(
        (count, size, offset), plain, (SATURATED_16, SATURATED_32, SATURATED_32), strict=True
    ):
        if narrow not in (wide, saturated):
            faults.append(f"the zip64 record says {wide} where the end record says {narrow}")
    return count, size, offset, expected


def parse_extra(data: bytes, name: bytes, faults: list[str]) -> Extra:
    """Return the extra field's zip64 part; what makes readers differ goes to `faults`."""
    zip64 = None
    position = 0
    while position + 4 <= len(data):
        kind, length = struct.unpack_from("<2H", data, position)
        body = data[position + 4 : position + 4 + length]
        if len(body) < length:
            break
        if kind == ZIP64_EXTRA:
            if zip64 is not None:
                faults.append("has two zip64 fields")
            zip64 = body
        elif kind == UNICODE_PATH_EXTRA and body[5:] != name:
            faults.append(f"has a second name, {body[5:].decode('utf-8', 'backslashreplace')!r}")
        position += 4 + length
    if position != len(data):
        faults.append("has an extra field that does not add up")
    return Extra(zip64=zip64)


def descriptor_length(descriptor: int, at: int, *, crc: int, packed: int, size: int, faults: list[str]) -> int:
    """Return the length of the data descriptor at `at`, which must repeat what the directory says."""
    data = read_at(descriptor, 24, at)
    for layout in ("<4xLLL", "<LLL", "<4xLQQ", "<LQQ"):
        length = struct.calcsize(layout)
        signed = layout.startswith("<4x")
        is_there = len(data) >= length and signed == data.startswith(b"PK\7\10")
        if is_there and struct.unpack_from(layout, data) == (crc, packed, size):
            return length
    faults.append("has a data descriptor that says other than the directory")
    return 0
