"""A zip file read in the one way that leaves no doubt: whatever two readers could read differently is a fault.

Python's zipfile, pip's unpackers, libarchive and Finder disagree on prepended data, on names that the
local header and the directory spell differently, on duplicate names, on a zip64 record that contradicts
the plain one. A wheel that is read in two ways can be audited in one and installed in the other, so
none of that is tolerated here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mps_build.common.files import open_regular

from .limits import (
    MOST_DIRECTORY_BYTES,
    MOST_FAULTS,
    MOST_LOCAL_EXTRA_BYTES,
    MOST_MEMBERS,
    MOST_NAME_BYTES,
    MOST_RATIO,
    MOST_UNPACKED_BYTES,
    RATIO_MATTERS_FROM_BYTES,
)
from .zip_names import name_faults
from .zip_records import Directory, Unreadable, descriptor_length, parse_extra, read_at, read_directory

CENTRAL = struct.Struct("<4s6H3L5H2L")
LOCAL = struct.Struct("<4s5H3L2H")
STORED, DEFLATED = 0, 8
ENCRYPTED_FLAGS = 0x0001 | 0x0040 | 0x2000
HAS_DESCRIPTOR, NAME_IS_UTF8 = 0x0008, 0x0800
# Flags that change nothing of what is read: the deflate level (bits 1, 2), a descriptor, UTF-8 names.
KNOWN_FLAGS = 0x0006 | HAS_DESCRIPTOR | NAME_IS_UTF8
SATURATED = 0xFFFFFFFF

SPECIAL_KINDS = {0o12: "symbolic link", 0o01: "pipe", 0o02: "device", 0o06: "device", 0o14: "socket"}


class Member(NamedTuple):
    """One file of the archive, as the directory and its own header agree to describe it (13 000 of them: a tuple)."""

    name: str
    size: int
    packed: int
    crc: int
    method: int
    mode: int
    data_offset: int

    @property
    def is_directory(self) -> bool:
        """True for an entry that stands for a folder."""
        return self.name.endswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is wrong with the archive: in which member, and how it shows."""

    rule: str
    member: str | None
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """The members in the order of their data, and every fault of the structure."""

    members: tuple[Member, ...]
    faults: tuple[Fault, ...]
    is_readable: bool


def read_archive(path: Path) -> Archive:
    """Return what the archive holds; never raises for what the file holds."""
    with open_regular(path) as file:
        descriptor = file.fileno()
        try:
            directory = read_directory(descriptor, os.fstat(descriptor).st_size, most_bytes=MOST_DIRECTORY_BYTES)
            if directory.count > MOST_MEMBERS:
                raise Unreadable(f"{directory.count} members; at most {MOST_MEMBERS} are read")
            placed, odd = _read_members(descriptor, directory)
        except Unreadable as error:
            fault = Fault(rule="Z1", member=None, evidence=str(error))
            return Archive(members=(), faults=(fault,), is_readable=False)
    placed.sort(key=lambda entry: entry[1])
    members = tuple(member for member, _, _ in placed)
    faults = [Fault(rule="Z1", member=None, evidence=evidence) for evidence in directory.faults]
    faults += [Fault(rule="Z1", member=name, evidence=evidence) for name, evidence in odd]
    faults += islice(_layout_faults(placed, directory), MOST_FAULTS)
    named = islice(name_faults([member.name for member in members]), MOST_FAULTS)
    faults += [Fault(rule=rule, member=name, evidence=evidence) for rule, name, evidence in named]
    faults += islice(_kind_faults(members), MOST_FAULTS)
    faults += islice(_bomb_faults(members), MOST_FAULTS)
    # Unsafe names and links are read on (nothing is unpacked here); an ambiguous structure is not.
    return Archive(members=members, faults=tuple(faults), is_readable=all(fault.rule != "Z1" for fault in faults))


Placed = tuple[Member, int, int]
"""A member, where its local header begins, and where its data and descriptor end."""


def _read_members(descriptor: int, directory: Directory) -> tuple[list[Placed], list[tuple[str, str]]]:
    placed: list[Placed] = []
    odd: list[tuple[str, str]] = []
    data, position, extra_left = directory.data, 0, MOST_LOCAL_EXTRA_BYTES
    for _ in range(directory.count):
        if data[position : position + 4] != b"PK\1\2" or position + CENTRAL.size > len(data):
            raise Unreadable(f"no directory entry where one should begin (byte {directory.offset + position})")
        fields = CENTRAL.unpack_from(data, position)
        flags, method, name_length, offset = fields[3], fields[4], fields[10], fields[16]
        end = position + CENTRAL.size + name_length + fields[11] + fields[12]
        if end > len(data):
            raise Unreadable("the directory ends in the middle of an entry")
        if name_length > MOST_NAME_BYTES:
            raise Unreadable(f"a name of {name_length} bytes; macOS takes {MOST_NAME_BYTES}")
        raw = data[position + CENTRAL.size : position + CENTRAL.size + name_length]
        # Nearly all of 13 000 members are as plain as can be: one comparison tells, and saves a quick audit's time.
        plain_header = b"PK\3\4" + data[position + 6 : position + 30] + b"\0\0" + raw
        is_plain = method == DEFLATED and not (flags or fields[11] or fields[13]) and raw.isascii() and b"\0" not in raw
        if is_plain and os.pread(descriptor, len(plain_header), offset) == plain_header:  # offset has 32 bits
            begin = offset + len(plain_header)
            member = Member(raw.decode(), fields[9], fields[8], fields[7], method, fields[15] >> 16, begin)
            placed.append((member, offset, begin + fields[8]))
        else:
            placed.append(_read_member(descriptor, data[position:end], odd))
            member, begins, _ = placed[-1]
            extra_left -= member.data_offset - begins - LOCAL.size - name_length
            if extra_left < 0:
                raise Unreadable(f"more than {MOST_LOCAL_EXTRA_BYTES} bytes of extra fields before the members' data")
            if len(odd) > MOST_FAULTS:
                raise Unreadable(f"more than {MOST_FAULTS} faults, the first: {odd[0][0]} {odd[0][1]}")
        position = end
    if position != len(data):
        odd.append(("", f"{len(data) - position} bytes follow the last directory entry"))
    return placed, odd


def _read_member(descriptor: int, entry: bytes, faults: list[tuple[str, str]]) -> Placed:
    """Return the member of one directory entry; what is wrong with it goes to `faults`."""
    fields = CENTRAL.unpack_from(entry)
    flags, method, crc, packed, size, name_length, extra_length = fields[3], fields[4], *fields[7:12]
    disk, attributes, offset = fields[13], fields[15], fields[16]
    raw = entry[CENTRAL.size : CENTRAL.size + name_length]
    odd: list[str] = []
    name = _name(raw, flags, odd)
    if extra_length:
        extra = parse_extra(entry[CENTRAL.size + name_length :][:extra_length], raw, odd)
        size, packed, offset = extra.resolve(size, packed, offset, odd)
    if flags or method != DEFLATED or disk:
        odd += _odd_storage(flags, method, disk, is_equal=size == packed)
    header = read_at(descriptor, LOCAL.size + name_length, offset)
    # The same nine fields in the same layout: version, flags, method, time, date, CRC, sizes, length of the name.
    is_same = header[4:28] == entry[6:30] and header[30:] == raw and header[:4] == b"PK\3\4"
    if not is_same:
        odd += _differences(header, entry, raw)
    data_offset = offset + LOCAL.size + name_length
    if local_extra_length := int.from_bytes(header[28:30], "little"):
        local_extra = parse_extra(read_at(descriptor, local_extra_length, data_offset), raw, odd)
        if local_extra.zip64 is not None:
            odd += _wide_differences(header, local_extra.zip64, size=size, packed=packed)
        data_offset += local_extra_length
    end = data_offset + packed
    if flags & HAS_DESCRIPTOR and not odd:
        end += descriptor_length(descriptor, end, crc=crc, packed=packed, size=size, faults=odd)
    if odd:
        faults += [(name, evidence) for evidence in odd[:MOST_FAULTS]]
    return Member(name, size, packed, crc, method, attributes >> 16, data_offset), offset, end


def _name(raw: bytes, flags: int, odd: list[str]) -> str:
    if raw.isascii():
        name = raw.decode("ascii")
    else:
        if not flags & NAME_IS_UTF8:
            odd.append("has a name that is not ASCII and not marked as UTF-8")
        try:
            name = raw.decode("utf-8")
        except UnicodeDecodeError:
            name = raw.decode("utf-8", "backslashreplace")
            odd.append("has a name that is not UTF-8")
    if "\0" in name:
        odd.append("has a NUL in its name, where some readers end it")
    return name


def _odd_storage(flags: int, method: int, disk: int, *, is_equal: bool) -> Iterator[str]:
    if flags & ENCRYPTED_FLAGS:
        yield "is encrypted"
    elif flags & ~KNOWN_FLAGS:
        yield f"has flags {flags:#06x} that no wheel needs"
    if method not in (STORED, DEFLATED):
        yield f"uses compression method {method}; only stored and deflated are read by every installer"
    if method == STORED and not is_equal:
        yield "is stored, with two sizes"
    if disk:
        yield f"lies on disk {disk}"


def _differences(header: bytes, entry: bytes, raw: bytes) -> Iterator[str]:
    """Yield what a member's own header says other than the directory."""
    if len(header) < LOCAL.size or not header.startswith(b"PK\3\4"):
        yield "has no header where the directory says it begins"
        return
    ours, theirs = CENTRAL.unpack_from(entry)[3:11], LOCAL.unpack_from(header)[2:10]
    if header[LOCAL.size :] != raw or theirs[7] != ours[7]:
        other = header[LOCAL.size :][: theirs[7]].decode("utf-8", "backslashreplace")
        yield f"is called {other!r} in its own header"
    labels = ("flags", "compression method", "modification time", "modification date", "CRC", "packed size", "size")
    for label, in_directory, in_header in zip(labels, ours, theirs, strict=False):
        is_length = label in {"CRC", "packed size", "size"}
        is_deferred = is_length and ours[0] & HAS_DESCRIPTOR and in_header == 0
        # zip64: the extra field of the header holds it (`_wide_differences`); 20 bytes are its least length.
        is_wide = label in {"packed size", "size"} and in_header == SATURATED and LOCAL.unpack_from(header)[10] >= 20
        if in_header != in_directory and not is_deferred and not is_wide:
            yield f"has {label} {in_directory} in the directory, {in_header} in its own header"


def _wide_differences(header: bytes, zip64: bytes, *, size: int, packed: int) -> Iterator[str]:
    """Yield what the zip64 field of a member's own header says other than the directory."""
    narrow_packed, narrow_size = LOCAL.unpack_from(header)[7:9]
    # APPNOTE 4.5.3: both sizes must be there. Old zipfile modules write them without need, beside plain ones.
    is_same = zip64 == struct.pack("<QQ", size, packed)
    if not is_same or narrow_size not in (size, SATURATED) or narrow_packed not in (packed, SATURATED):
        yield "has a zip64 field in its own header that does not repeat the directory"


def _layout_faults(placed: list[Placed], directory: Directory) -> Iterator[Fault]:
    """Yield gaps and overlaps; `placed` is sorted by where the local headers begin."""
    end, last = 0, "the beginning of the file"
    for member, begins, ends in placed:
        if begins < end:
            yield Fault(rule="Z1", member=member.name, evidence=f"overlaps {last}")
        elif begins > end:
            yield Fault(rule="Z1", member=member.name, evidence=f"{begins - end} bytes lie unused after {last}")
        end, last = max(end, ends), member.name
    if end != directory.offset:
        how = f"{directory.offset - end} bytes lie unused" if end < directory.offset else "the directory overlaps"
        yield Fault(rule="Z1", member=None, evidence=f"{how} after {last}")


def _kind_faults(members: tuple[Member, ...]) -> Iterator[Fault]:
    if SPECIAL_KINDS.keys().isdisjoint({member.mode >> 12 for member in members}):
        return
    for member in members:
        if kind := SPECIAL_KINDS.get(member.mode >> 12):
            yield Fault(rule="Z3", member=member.name, evidence=f"is a {kind} (mode {member.mode:#o})")


def _bomb_faults(members: tuple[Member, ...]) -> Iterator[Fault]:
    total = sum(member.size for member in members)
    if total > MOST_UNPACKED_BYTES:
        yield Fault(
            rule="Z1", member=None, evidence=f"unpacks to {total} bytes; at most {MOST_UNPACKED_BYTES} are read"
        )
    for member in members:
        if member.size > RATIO_MATTERS_FROM_BYTES and member.size > MOST_RATIO * max(member.packed, 1):
            yield Fault(
                rule="Z1", member=member.name, evidence=f"{member.packed} bytes unpack to {member.size}: a zip bomb"
            )
