"""A zip file read in the one way that leaves no doubt: whatever two readers could read differently is a fault.

Python's zipfile, pip's unpackers, libarchive and Finder disagree on prepended data, on names that the local header and
the directory spell differently, on duplicate names, on a zip64 record that contradicts the plain one. A wheel that is
read in two ways can be audited in one and installed in the other, so none of that is tolerated here: neither in the
records around the members nor in their names.
"""

from __future__ import annotations

import os
import re
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import NamedTuple

from mps_build.common.files import open_regular

from ..limits import (
    MOST_DIRECTORY_BYTES,
    MOST_FAULTS,
    MOST_LOCAL_EXTRA_BYTES,
    MOST_MEMBERS,
    MOST_NAME_BYTES,
    MOST_RATIO,
    MOST_UNPACKED_BYTES,
    RATIO_MATTERS_FROM_BYTES,
)

# Parts without backslash, colon and control character, none empty, none `.` or `..`, none longer than APFS takes.
_PLAIN = re.compile(r"(?:(?!\.{1,2}(?:/|$))[^/\\:\x00-\x1f\x7f]+/)*(?!\.{1,2}$)[^/\\:\x00-\x1f\x7f]+/?")
MOST_PART_BYTES = 255


# Whatever keeps one of many names, a line each, from being plain; one regex for all takes ten times as long.
_ODD = ("\\", ":", "//", "\n/", "/\n", "\n\n", "\n./", "\n../", "/./", "/../", "/.\n", "/..\n", "\n.\n", "\n..\n")


def name_faults(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (rule, name, evidence) for every name that some reader would place elsewhere, or over another.

    Time and memory grow with the names' length, whatever they are.
    """
    if not _are_plain(names):
        yield from _faults(names)


def file_key(name: str) -> str:
    """Return what two names have in common that are one file on a Mac: APFS minds neither case nor normalisation.

    >>> file_key("Caf\\u00e9") == file_key("cafe\\u0301")
    True
    """
    if name.isascii():
        return name.lower()
    # Unicode 3.13, D145: the canonical caseless match.
    decomposed = unicodedata.normalize("NFD", name).casefold()
    return unicodedata.normalize("NFD", decomposed)


def _are_plain(names: Sequence[str]) -> bool:
    """Tell at once that nothing is wrong with 13 000 names."""
    text = "\n" + "\n".join(names) + "\n"
    # What is not ASCII is seldom, and takes the slow way: case, normalisation and invisible characters.
    if not text.isascii() or any(odd in text for odd in _ODD) or not "".join(names).isprintable():
        return False
    if any(len(name) > MOST_PART_BYTES for name in names):
        return False
    # `/` is put below every other character, so that what lies in a folder stands right behind the folder's own name.
    ordered = sorted(text[1:-1].lower().replace("/", "\0").split("\n"))
    return not any(
        after.startswith(before) and after[len(before) :][:1] in ("", "\0") for before, after in pairwise(ordered)
    )


def _faults(names: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    by_key: dict[str, str] = {}
    seen: set[str] = set()
    for name in names:
        key = file_key(name.rstrip("/"))
        if name in seen:
            yield "Z1", name, "is there two times"
        elif key in by_key:
            yield (
                "Z1",
                name,
                f"is the same file as {by_key[key]} where case does not count, nor Unicode normalisation (macOS)",
            )
        seen.add(name)
        by_key[key] = name
        if not _PLAIN.fullmatch(name):
            yield "Z2", name, "is not a plain path inside the wheel"
        elif odd := _odd_character(name):
            yield "Z2", name, f"has {odd} in its name, which shows nothing or turns the text round"
        elif any(len(part.encode("utf-8", "replace")) > MOST_PART_BYTES for part in name.split("/")):
            yield "Z2", name, f"has a part of more than {MOST_PART_BYTES} bytes, which no file system of macOS takes"
    placed = {key.replace("/", "\0"): name for key, name in by_key.items()}
    for before, after in pairwise(sorted(placed)):
        if after.startswith(before + "\0") and not placed[before].endswith("/"):
            yield "Z1", placed[before], "is a file and a folder"


def _odd_character(name: str) -> str | None:
    """Return the first character that shows nothing or turns the text: controls, bidirectional marks, separators."""
    odd = next((each for each in name if not each.isprintable()), None)
    return f"U+{ord(odd):04X}" if odd else None


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
