"""What a Mach-O header says, as values, and how its first bytes name it."""

from __future__ import annotations

from dataclasses import dataclass, field

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
    # UTF-8 may be cut in the middle of a letter, so that its last bytes do not count.
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
