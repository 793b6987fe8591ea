"""Small Mach-O libraries, made here byte by byte: one with chained fixups, one with the older opcodes."""

from __future__ import annotations

import struct
from collections.abc import Sequence

PAGE = 0x1000
TEXT, DATA, LINKS = 0, PAGE, 2 * PAGE
ARM64, DYLIB = 0x0100000C, 6
SYSTEM = "/usr/lib/libSystem.B.dylib"
EXPORT, CALLED, TAKEN = "_own_function", "_malloc", "_environ"


def uleb(number: int) -> bytes:
    """Return a number as ULEB128."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


def _segment(name: str, address: int, size: int, offset: int, protection: int, sections: Sequence[bytes] = ()) -> bytes:
    body = struct.pack(
        "<16sQQQQiiII", name.encode(), address, PAGE, offset, size, protection, protection, len(sections), 0
    )
    return _command(0x19, body + b"".join(sections))


def _section(name: str, segment: str, address: int, size: int, kind: int = 0, first: int = 0, stride: int = 0) -> bytes:
    return struct.pack(
        "<16s16sQQIIIIIIII", name.encode(), segment.encode(), address, size, address, 2, 0, 0, kind, first, stride, 0
    )


def _command(kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


def _named(kind: int, name: str) -> bytes:
    return _command(kind, struct.pack("<IIII", 24, 0, 0x10000, 0x10000) + name.encode() + b"\0")


def exports_trie(name: str, address: int) -> bytes:
    """Return a trie with one name, in two steps."""
    terminal = uleb(0) + uleb(address)
    middle_at, leaf_at = 8, 24
    root = bytes((0, 1)) + name[:4].encode() + b"\0" + uleb(middle_at)
    middle = bytes((0, 1)) + name[4:].encode() + b"\0" + uleb(leaf_at)
    leaf = uleb(len(terminal)) + terminal + bytes((0,))
    return root.ljust(middle_at, b"\0") + middle.ljust(leaf_at - middle_at, b"\0") + leaf


def chained_fixups() -> tuple[bytes, bytes]:
    """Return the fixups of the link data, and the words of the data segment that they begin at."""
    names = b"\0" + CALLED.encode() + b"\0" + TAKEN.encode() + b"\0"
    imports = struct.pack("<II", 1 | 1 << 9, 0xFE | (2 + len(CALLED)) << 9)  # of the first library; of any
    starts_at = 32
    segment = struct.pack("<IHHQIHH", 24, PAGE, 6, DATA, 0, 1, 0)
    starts = struct.pack("<IIII", 3, 0, 16, 0) + segment
    imports_at = starts_at + len(starts)
    head = struct.pack("<IIIIIII", 0, starts_at, imports_at, imports_at + len(imports), 2, 1, 0)
    step = 8 // 4 << 51
    words = (
        TEXT + 0x800 | step,
        1 << 63 | step,
        1 << 63 | 1 | 16 << 24,
    )  # a pointer to code; a bind; one with an addend
    return head.ljust(starts_at, b"\0") + starts + imports + names, struct.pack("<QQQ", *words)


def opcodes() -> tuple[bytes, bytes, bytes, bytes]:
    """Return rebases, binds and lazy binds that say the same, and the data segment's words."""
    rebases = bytes((0x11, 0x21)) + uleb(0) + bytes((0x51, 0))
    bind = bytes((0x51, 0x3E, 0x40)) + TAKEN.encode() + b"\0" + bytes((0x60, 16, 0x71)) + uleb(16) + bytes((0x90, 0))
    lazy = bytes((0x71,)) + uleb(8) + bytes((0x11, 0x40)) + CALLED.encode() + b"\0" + bytes((0x90, 0))
    return rebases, bind, lazy, struct.pack("<QQQ", TEXT + 0x800, 0, 0)


def small_image(*, chained: bool = True, file_type: int = DYLIB, processor: int = ARM64) -> bytes:
    """Return a library with code, data, one export, an import that is called and one that is taken as an object."""
    links = bytearray()

    def link(data: bytes) -> tuple[int, int]:
        at = LINKS + len(links)
        links.extend(data + bytes(-len(data) % 8))
        return at, len(data)

    trie = link(exports_trie(EXPORT, 0x800))
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in (EXPORT, CALLED, TAKEN))
    places = [1, 2 + len(EXPORT), 3 + len(EXPORT) + len(CALLED)]
    rows = struct.pack("<IBBHQ", places[0], 0x0F, 1, 0, 0x800)
    rows += struct.pack("<IBBHQ", places[1], 0x01, 0, 0x0100, 0) + struct.pack("<IBBHQ", places[2], 0x01, 0, 0xFE00, 0)
    symbols, texts, indirect = link(rows), link(strings), link(struct.pack("<I", 1))
    if chained:
        table, data = chained_fixups()
        fixups = [_command(0x80000034, struct.pack("<II", *link(table)))]
        fixups += [_command(0x80000033, struct.pack("<II", *trie))]
    else:
        rebases, bind, lazy, data = opcodes()
        ranges = (*link(rebases), *link(bind), 0, 0, *link(lazy), *trie)
        fixups = [_command(0x80000022, struct.pack("<10I", *ranges))]
    code = [_section("__text", "__TEXT", 0x800, 64), _section("__stubs", "__TEXT", 0x840, 12, 8, 0, 12)]
    code += [_section("__init_offsets", "__TEXT", 0x850, 4, 0x16)]
    threads = [_section("__data", "__DATA", DATA, 24), _section("__thread_vars", "__DATA", DATA + 32, 24, 0x13)]
    commands = [
        _segment("__TEXT", TEXT, PAGE, 0, 5, code),
        _segment("__DATA", DATA, PAGE, DATA, 3, threads),
        _segment("__LINKEDIT", LINKS, len(links), LINKS, 1),
        _named(0x0D, "@rpath/libsmall.dylib"),
        _named(0x0C, SYSTEM),
        _command(0x8000001C, struct.pack("<I", 12) + b"@loader_path\0"),
        _command(0x02, struct.pack("<IIII", symbols[0], 3, *texts)),
        _command(0x0B, struct.pack("<18I", *([0] * 12), indirect[0], 1, 0, 0, 0, 0)),
        *fixups,
    ]
    body = b"".join(commands)
    head = struct.pack("<IIIIIIII", 0xFEEDFACF, processor, 0, file_type, len(commands), len(body), 0, 0)
    first = (head + body).ljust(0x850, b"\0") + struct.pack("<I", 0x800)
    return first.ljust(PAGE, b"\0") + data.ljust(PAGE, b"\0") + bytes(links)


def universal(image: bytes) -> bytes:
    """Return a universal file whose second part is the image."""
    offset = 4 * PAGE
    rows = struct.pack(">IIIII", 7, 3, PAGE, 16, 12) + struct.pack(">IIIII", ARM64, 0, offset, len(image), 12)
    return (struct.pack(">II", 0xCAFEBABE, 2) + rows).ljust(offset, b"\0") + image
