"""A Mach-O header and its load commands, read by hand and bounds-checked: the bytes may be anything.

Only thin 64-bit little-endian files are read, the one kind that an arm64 wheel may hold; fat files, 32-bit ones and ELF
are recognised and named (`name_kind`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..limits import MOST_COMMAND_BYTES, MOST_COMMANDS, MOST_RPATHS, MOST_SECTIONS, Malformed

CPU_NAMES = {0x0100000C: "arm64", 0x01000007: "x86_64", 0x0200000C: "arm64_32", 0x0000000C: "arm", 0x00000007: "i386"}
CPU_ARM64 = 0x0100000C
FILE_TYPES = {1: "object", 2: "executable", 6: "dylib", 8: "bundle", 9: "dylib stub", 10: "dSYM"}
PLATFORM_MACOS = 1


# What `name_kind` calls a compiled file of any system.
COMPILED = frozenset({"macho", "fat Mach-O", "32-bit Mach-O", "big-endian Mach-O", "ELF", "Windows PE"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A run of bytes inside the file."""

    offset: int
    size: int

    @property
    def end(self) -> int:
        """The first byte behind the range."""
        return self.offset + self.size


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section; `offset` 0 means that it takes no room in the file."""

    segment: str
    name: str
    offset: int
    size: int

    @property
    def full_name(self) -> str:
        """Segment and section, as `otool` writes them: "__TEXT,__text"."""
        return f"{self.segment},{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One library that is loaded: strong, weak, reexport, lazy or upward."""

    path: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolTable:
    """Where the symbols lie, and which of them are exported and which undefined."""

    offset: int
    count: int
    strings: Range
    exported: tuple[int, int] = (0, 0)
    undefined: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachO:
    """What one header says."""

    cpu: int
    file_type: int
    flags: int
    commands_end: int
    segments: tuple[tuple[str, Range], ...]
    sections: tuple[Section, ...]
    install_name: str | None = None
    dependencies: tuple[Dependency, ...] = ()
    rpaths: tuple[str, ...] = ()
    platform: int | None = None
    minos: tuple[int, ...] | None = None
    sdk: tuple[int, ...] | None = None
    tools: tuple[tuple[int, str], ...] = ()
    uuid: str | None = None
    symbols: SymbolTable | None = None
    linkedit: dict[str, Range] = field(default_factory=dict)

    @property
    def cpu_name(self) -> str:
        """The CPU type's name, or its number in hexadecimal."""
        return CPU_NAMES.get(self.cpu, f"{self.cpu:#x}")

    @property
    def end(self) -> int:
        """Where the last segment ends: a shorter file is cut off."""
        return max((extent.end for _, extent in self.segments), default=self.commands_end)


def name_kind(head: bytes) -> str:
    """Return what the first bytes announce: `macho`, or a name for what is there instead.

    >>> name_kind(bytes.fromhex("cffaedfe")), name_kind(b"\\x7fELF")
    ('macho', 'ELF')
    """
    magic = head[:4]
    if magic == b"\xcf\xfa\xed\xfe":
        return "macho"
    if magic in (b"\xca\xfe\xba\xbe", b"\xbe\xba\xfe\xca", b"\xca\xfe\xba\xbf", b"\xbf\xba\xfe\xca"):
        return "fat Mach-O"
    if magic in (b"\xce\xfa\xed\xfe", b"\xfe\xed\xfa\xce"):
        return "32-bit Mach-O"
    if magic == b"\xfe\xed\xfa\xcf":
        return "big-endian Mach-O"
    if magic == b"\x7fELF":
        return "ELF"
    if magic.startswith(b"MZ"):
        return "Windows PE"
    if not head:
        return "an empty file"
    # UTF-8 may be cut in the middle of a character, so that its last bytes do not count.
    is_text = head.isascii() or head[:-3].decode("utf-8", "replace").isprintable()
    if is_text and b"\0" not in head:
        return "text"
    return f"bytes {magic.hex(' ')}"


def unpack_version(packed: int) -> tuple[int, ...]:
    """Return X.Y.Z, packed as xxxx.yy.zz; a zero patch level is left out.

    >>> unpack_version(0x000E0500), unpack_version(0x000A0F06)
    ((14, 5), (10, 15, 6))
    """
    major, minor, patch = packed >> 16, packed >> 8 & 0xFF, packed & 0xFF
    return (major, minor, patch) if patch else (major, minor)


def format_version(version: tuple[int, ...] | None) -> str | None:
    """Return `14.0` for (14, 0), None for None."""
    return ".".join(map(str, version)) if version is not None else None


HEADER = struct.Struct("<4sIIIIIII")

_LOADS = {0x0C: "strong", 0x18: "weak", 0x1F: "reexport", 0x20: "lazy", 0x23: "upward"}
_REQ_DYLD = 0x80000000
_LINKEDIT = {
    0x1D: "signature",
    0x33: "exports_trie",
    0x34: "chained_fixups",
    0x26: "function_starts",
    0x29: "data_in_code",
}
_VERSION_MIN_MACOSX, _BUILD_VERSION = 0x24, 0x32


def head_size(head: bytes) -> int:
    """Return how many bytes of the file hold the header and all load commands.

    Raises:
        Malformed: the header is cut off, or announces more than any real file has.
    """
    if len(head) < HEADER.size:
        raise Malformed(f"{len(head)} bytes hold no Mach-O header")
    count, size = HEADER.unpack_from(head)[4:6]
    if size > MOST_COMMAND_BYTES or count > MOST_COMMANDS or count * 8 > size:
        raise Malformed(f"{count} load commands in {size} bytes")
    return HEADER.size + int(size)


def parse_macho(head: bytes) -> MachO:
    """Return the header and load commands.

    Raises:
        Malformed: with what does not fit.
    """
    if name_kind(head) != "macho":
        raise Malformed(f"no thin 64-bit Mach-O: {name_kind(head)}")
    end = head_size(head)
    if end > len(head):
        raise Malformed(f"the load commands end at byte {end}, the file at {len(head)}")
    _, cpu, _, file_type, count, _, flags, _ = HEADER.unpack_from(head)
    reading = _Reading()
    for number, body in _commands(head[:end], count):
        reading.take(number, body)
    _check_sections(reading.sections)
    return MachO(
        cpu=cpu,
        file_type=file_type,
        flags=flags,
        commands_end=end,
        segments=tuple(reading.segments),
        sections=tuple(reading.sections),
        dependencies=tuple(reading.dependencies),
        rpaths=tuple(reading.rpaths),
        symbols=reading.symbol_table(),
        linkedit=reading.linkedit,
        install_name=reading.install_name,
        platform=reading.platform,
        minos=reading.minos,
        sdk=reading.sdk,
        tools=tuple(reading.tools),
        uuid=reading.uuid,
    )


def _check_sections(sections: list[Section]) -> None:
    """Raise Malformed unless each section is there once and has its bytes for itself."""
    names = {section.full_name for section in sections}
    if len(names) < len(sections):
        repeated = next(name for name in names if sum(each.full_name == name for each in sections) > 1)
        raise Malformed(f"has two sections {repeated}")
    placed = sorted((section.offset, section.size, section.full_name) for section in sections if section.offset)
    end, last = 0, ""
    for offset, size, name in placed:
        if size and offset < end:
            raise Malformed(f"its section {name} overlaps {last}")
        end, last = max(end, offset + size), name


def load_commands(head: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number (without dyld's mark) and the bytes of each load command.

    Raises:
        Malformed: one of them does not fit.
    """
    yield from _commands(head[: head_size(head)], HEADER.unpack_from(head)[4])


def _commands(head: bytes, count: int) -> Iterator[tuple[int, bytes]]:
    position = HEADER.size
    for index in range(count):
        if position + 8 > len(head):
            raise Malformed(f"load command {index} of {count} lies outside the load commands")
        number, size = struct.unpack_from("<II", head, position)
        if size < 8 or size % 4 or position + size > len(head):
            raise Malformed(f"load command {index} ({number:#x}) has size {size}")
        yield number & ~_REQ_DYLD, head[position : position + size]
        position += size
    if position != len(head):
        raise Malformed(f"{len(head) - position} bytes are left after the last load command")


class _Reading:
    """What the load commands read so far declare."""

    def __init__(self) -> None:
        self.segments: list[tuple[str, Range]] = []
        self.sections: list[Section] = []
        self.dependencies: list[Dependency] = []
        self.rpaths: list[str] = []
        self.tools: list[tuple[int, str]] = []
        self.linkedit: dict[str, Range] = {}
        self.install_name: str | None = None
        self.platform: int | None = None
        self.minos: tuple[int, ...] | None = None
        self.sdk: tuple[int, ...] | None = None
        self.uuid: str | None = None
        self._symtab: tuple[int, ...] | None = None
        self._dysymtab: tuple[int, ...] = (0, 0, 0, 0, 0, 0)

    def take(self, number: int, body: bytes) -> None:
        try:
            self._take(number, body)
        except struct.error as error:
            raise Malformed(f"load command {number:#x} is too short ({len(body)} bytes)") from error

    def _take(self, number: int, body: bytes) -> None:
        if number in _LOADS:
            self.dependencies.append(Dependency(path=_text(body), kind=_LOADS[number]))
        elif number == 0x0D:
            self.install_name = _text(body)
        elif number == 0x1C:
            self.rpaths.append(_text(body))
            if len(self.rpaths) > MOST_RPATHS:
                raise Malformed(f"more than {MOST_RPATHS} search paths (LC_RPATH)")
        elif number == 0x1B:
            self.uuid = body[8:24].hex()
        elif number == 0x19:
            self._segment(body)
        else:
            self._take_number(number, body)

    def _take_number(self, number: int, body: bytes) -> None:
        if number == _BUILD_VERSION:
            self._build_version(body)
        elif number == _VERSION_MIN_MACOSX and self.platform is None:
            minos, sdk = struct.unpack_from("<II", body, 8)
            self.minos, self.sdk = unpack_version(minos), unpack_version(sdk)
        elif number == 0x02:
            self._symtab = struct.unpack_from("<4I", body, 8)
        elif number == 0x0B:
            self._dysymtab = struct.unpack_from("<6I", body, 8)
        elif number == 0x22:  # LC_DYLD_INFO: the trie is the last of its five ranges
            offset, size = struct.unpack_from("<II", body, 40)
            if size:
                self.linkedit.setdefault("exports_trie", Range(offset=offset, size=size))
        elif number in _LINKEDIT:
            offset, size = struct.unpack_from("<II", body, 8)
            if _LINKEDIT[number] == "signature" and "signature" in self.linkedit:
                raise Malformed("has two code signatures")
            self.linkedit[_LINKEDIT[number]] = Range(offset=offset, size=size)

    def _segment(self, body: bytes) -> None:
        name = _fixed(body[8:24])
        _, _, offset, size, _, _, count, _ = struct.unpack_from("<4Q2i2I", body, 24)
        if 72 + 80 * count != len(body):
            raise Malformed(f"segment {name} says {count} sections in {len(body)} bytes")
        self.segments.append((name, Range(offset=offset, size=size)))
        if len(self.sections) + count > MOST_SECTIONS:
            raise Malformed(f"{len(self.sections) + count} sections; symbols can name {MOST_SECTIONS}")
        for index in range(count):
            at = 72 + 80 * index
            section_size, section_offset = struct.unpack_from("<QI", body, at + 40)
            (flags,) = struct.unpack_from("<I", body, at + 64)
            is_zero_fill = flags & 0xFF in (0x01, 0x0C, 0x12)
            self.sections.append(
                Section(
                    segment=_fixed(body[at + 16 : at + 32]),
                    name=_fixed(body[at : at + 16]),
                    offset=0 if is_zero_fill else section_offset,
                    size=section_size,
                )
            )

    def _build_version(self, body: bytes) -> None:
        platform, minos, sdk, count = struct.unpack_from("<4I", body, 8)
        if 24 + 8 * count > len(body):
            raise Malformed(f"LC_BUILD_VERSION says {count} tools in {len(body)} bytes")
        # A zippered dylib has one for macOS and one for Catalyst: macOS decides, whatever the order.
        if self.platform is None or platform == PLATFORM_MACOS:
            self.platform, self.minos, self.sdk = platform, unpack_version(minos), unpack_version(sdk)
            self.tools = [
                (tool, ".".join(map(str, unpack_version(version))))
                for tool, version in struct.iter_unpack("<II", body[24 : 24 + 8 * count])
            ]

    def symbol_table(self) -> SymbolTable | None:
        if self._symtab is None:
            return None
        offset, count, strings_offset, strings_size = self._symtab
        _, _, exported_first, exported_count, undefined_first, undefined_count = self._dysymtab
        for first, number in ((exported_first, exported_count), (undefined_first, undefined_count)):
            if first + number > count:
                raise Malformed(f"symbols {first} to {first + number} of {count}")
        return SymbolTable(
            offset=offset,
            count=count,
            strings=Range(offset=strings_offset, size=strings_size),
            exported=(exported_first, exported_count),
            undefined=(undefined_first, undefined_count),
        )


def _text(body: bytes) -> str:
    (offset,) = struct.unpack_from("<I", body, 8)
    if not 12 <= offset < len(body):
        raise Malformed(f"a name begins at byte {offset} of a load command of {len(body)}")
    return body[offset:].partition(b"\0")[0].decode("utf-8", "backslashreplace")


def _fixed(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("utf-8", "backslashreplace")
