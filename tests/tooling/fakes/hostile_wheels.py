"""Wheels that were made to hurt: each name of `ATTACKS` writes one, none larger than a few MB on disk."""

from __future__ import annotations

import io
import os
import resource
import struct
import sys
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mps_build.cli import main
from mps_build.commands import audit_wheel  # imported here, where it is shared by all forks
from small_wheels import add_member, macho, torch_cpu, torch_files, write_wheel

NAME = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl"
INFO = "torch-2.15.0.dist-info"
CPU = "torch/lib/libtorch_cpu.dylib"
Attack = Callable[[Path], Path]


def with_files(folder: Path, files: Mapping[str, bytes]) -> Path:
    return write_wheel(folder, {**torch_files(), **files})


def raw_macho(commands: list[bytes], body: bytes = b"", *, at: int = 0) -> bytes:
    """A Mach-O header with these load commands, then `body` from byte `at`."""
    blob = b"".join(commands)
    head = struct.pack("<4sIIIIIII", b"\xcf\xfa\xed\xfe", 0x0100000C, 0, 6, len(commands), len(blob), 0x85, 0) + blob
    return head + bytes(max(at - len(head), 0)) + body


def segment(name: bytes, size: int, sections: list[tuple[bytes, int, int]]) -> bytes:
    packed = b"".join(
        struct.pack("<16s16s2Q8I", each, name, at, length, at, 0, 0, 0, 0, 0, 0, 0) for each, at, length in sections
    )
    return struct.pack("<2I16s4Q4I", 0x19, 72 + len(packed), name, 0, size, 0, size, 5, 5, len(sections), 0) + packed


def raw_zip(names: Iterator[str], data: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            add_member(archive, name, data)
    return stream.getvalue()


def written(folder: Path, data: bytes) -> Path:
    path = folder / NAME
    path.write_bytes(data)
    return path


# Text files.


def tag_product(folder: Path) -> Path:
    part = ".".join(f"a{index}" for index in range(9_000))
    return with_files(folder, {f"{INFO}/WHEEL": f"Wheel-Version: 1.0\nTag: {part}-{part}-{part}\n".encode()})


def folded_metadata(folder: Path) -> Path:
    return with_files(folder, {f"{INFO}/METADATA": b"Name: torch\nVersion: 2.15.0\nSummary: a\n" + b" b\n" * 600_000})


def folded_metadata_in_bounds(folder: Path) -> Path:
    return with_files(folder, {f"{INFO}/METADATA": b"Name: torch\nVersion: 2.15.0\nSummary: a\n" + b" b\n" * 300_000})


def long_metadata(folder: Path) -> Path:
    return with_files(folder, {f"{INFO}/METADATA": b"Name: torch\nVersion: 2.15.0\nSummary: a\n" + b" b\n" * 9_000_000})


def version_py(folder: Path) -> Path:
    return with_files(folder, {"torch/version.py": b"__version__ = '2.15.0'\na:" + b" " * 400_000 + b"\n"})


def version_py_lines(folder: Path) -> Path:
    return with_files(folder, {"torch/version.py": b"__version__ = '2.15.0'\n" + b"a: \t= '" * 200_000})


def record_rows(folder: Path) -> Path:
    return write_wheel(folder, torch_files(), record=b"a\n" * 12_000_000)


def record_quotes(folder: Path) -> Path:
    return write_wheel(folder, torch_files(), record=b'"' + b"a\n" * 8_000_000)


def long_version(folder: Path) -> Path:
    return with_files(folder, {f"{INFO}/METADATA": f"Name: torch\nVersion: {'9' * 5_000}\n".encode()})


def long_version_of_strange_name(folder: Path) -> Path:
    path = long_version(folder)
    return path.rename(folder / "strange.whl")


def cmake_files(folder: Path) -> Path:
    """Millions of paths, which are a warning; and no WHEEL's tag, so that it is rejected."""
    text = b"".join(b"/tmp/%x " % index for index in range(300_000))
    files = {f"torch/share/cmake/{index}.cmake": text for index in range(24)}
    return with_files(folder, {**files, f"{INFO}/WHEEL": b"Wheel-Version: 1.0\n"})


# Names.


def deep_name(folder: Path) -> Path:
    return written(folder, raw_zip(iter(["a/" * 32_000 + "b"])))


def deep_names(folder: Path) -> Path:
    return written(folder, raw_zip("a/" * 500 + str(index) for index in range(14_000)))


def many_members(folder: Path) -> Path:
    return written(folder, raw_zip(str(index) for index in range(70_000)))


# Mach-O.


def overlapping_metallibs(folder: Path) -> Path:
    size = 40 << 20
    head = struct.pack("<4s3H2B2H9Q", b"MTLB", 0x8001, 2, 7, 0, 0x81, 14, 0, size, 88, size - 100, *[0] * 6)
    body = head + bytes(size - len(head))
    sections = [(f"metal_{index}".encode(), 1 << 15, size) for index in range(200)]
    return with_files(folder, {CPU: raw_macho([segment(b"__TEXT", size, sections)], body, at=1 << 15)})


def many_metallibs(folder: Path) -> Path:
    """Lists that do not overlap, in many files: 40 MB each."""
    size = 40 << 20
    head = struct.pack("<4s3H2B2H9Q", b"MTLB", 0x8001, 2, 7, 0, 0x81, 14, 0, size, 88, (24 << 20), *[0] * 6)
    records = struct.pack("<I", 3_000_000) + struct.pack("<I4s", 8, b"ENDT") * ((24 << 17) - 1)
    body = (head + records).ljust(size, b"\0")
    image = raw_macho([segment(b"__TEXT", size, [(b"metal_basic", 1 << 15, size)])], body, at=1 << 15)
    return with_files(folder, {f"torch/lib/lib{index}.dylib": image for index in range(12)})


def object_paths(folder: Path) -> Path:
    return with_files(folder, {CPU: symbols_of(0x66, 19_000, strings=8 << 20)})


def undefined_names(folder: Path) -> Path:
    return with_files(folder, {CPU: symbols_of(0x01, 1_000_000, strings=16 << 20)})


def undefined_names_in_bounds(folder: Path) -> Path:
    return with_files(folder, {CPU: symbols_of(0x01, 190_000, strings=16 << 20)})


def symbols_of(kind: int, count: int, *, strings: int) -> bytes:
    """Symbols whose names are all different places of one string without an end."""
    at, step = 1 << 15, max(strings // count, 1)
    entries = b"".join(struct.pack("<IBBHQ", index * step, kind, 0, 0, 0) for index in range(count))
    body = entries + b"x" * strings
    undefined = count if kind == 0x01 else 0
    commands = [
        segment(b"__TEXT", len(body), []),
        struct.pack("<6I", 0x02, 24, at, count, at + len(entries), strings),
        struct.pack("<20I", 0x0B, 80, 0, 0, 0, 0, 0, undefined, *[0] * 12),
    ]
    return raw_macho(commands, body, at=at)


def many_sections(folder: Path) -> Path:
    commands = [segment(b"__TEXT", 1 << 20, [(f"metal_{index}".encode(), 0, 0) for index in range(13_000)])]
    image = raw_macho(commands, bytes(1 << 16))
    return with_files(folder, {f"torch/lib/lib{index}.dylib": image for index in range(100)})


def many_loads(folder: Path) -> Path:
    text = b"@rpath/" + b"a" * 200 + b"\0"
    load = (struct.pack("<6I", 0x0C, 24 + 208, 24, 0, 0, 0) + text).ljust(232, b"\0")
    rpaths = [
        struct.pack("<3I", 0x8000001C, 32, 12) + f"@loader_path/{index}".encode().ljust(20, b"\0")
        for index in range(60)
    ]
    image = raw_macho([*rpaths, *[load] * 900])
    return with_files(folder, {f"torch/lib/lib{index}.dylib": image for index in range(200)})


def large_trie(folder: Path) -> Path:
    """A chain of nodes, each with one edge to the next: no name, no end for a long time."""
    # A node is 8 bytes: sixteen of them differ in the lowest byte of where the next one is, and in nothing else.
    lowest = [b"\0\1a\0" + bytes((at | 0x80,)) for at in range(0, 0x80, 8)]
    upper = (bytes((at & 0x7F | 0x80, at >> 7 & 0x7F | 0x80, at >> 14)) for at in range((16_000_000 >> 7) + 1))
    chain = b"".join(each.join([*lowest, b""]) for each in upper)
    return with_files(folder, {CPU: trie_of(chain[8 : 8 + 16_000_000] + b"\2\0\0\0")})


def bushy_trie(folder: Path) -> Path:
    """Nodes of 200 empty edges each: 4 million of them, no label has a character."""
    parts, at, edges = [], 0, 200
    size = 2 + edges * 5
    for _ in range(4_000):
        at += size
        leaves = [at] + [0] * (edges - 1)
        parts.append(bytes((0, edges)) + b"".join(b"\0" + padded(each) for each in leaves))
    return with_files(folder, {CPU: trie_of(b"".join(parts) + b"\2\0\0\0")})


def full_trie(folder: Path) -> Path:
    """As many nodes as are walked, all on the way to every wanted prefix."""
    inner, width = 780, 255
    first_leaf = inner * (2 + width * 6)
    parts = []
    child = 0
    for _node in range(inner):
        edges = b""
        for _edge in range(width):
            child += 1
            at = child * (2 + width * 6) if child < inner else first_leaf + 2 * (child - inner)
            edges += b"_\0" + padded(at)
        parts.append(bytes((0, width)) + edges)
    return with_files(folder, {CPU: trie_of(b"".join(parts) + b"\0\0" * (inner * width))})


def endless_labels(folder: Path) -> Path:
    """Every byte a node, whose label goes on to the end of the trie."""
    return with_files(folder, {CPU: trie_of(b"\0\1" * (8 << 20) + b"\0\0")})


def trie_of(trie: bytes) -> bytes:
    at = 1 << 15
    commands = [segment(b"__TEXT", len(trie), []), struct.pack("<4I", 0x80000033, 16, at, len(trie))]
    return raw_macho(commands, trie, at=at)


def padded(number: int) -> bytes:
    return bytes((number & 0x7F | 0x80, number >> 7 & 0x7F | 0x80, number >> 14 & 0x7F | 0x80, number >> 21 & 0x7F))


def overlapping_blobs(folder: Path) -> Path:
    size = 24 << 20
    blobs = b"".join(struct.pack(">2I", 0x10000 + index, 12 + 8 * 60) for index in range(60))
    head = struct.pack(">3I", 0xFADE0CC0, size, 60) + blobs
    body = (head + struct.pack(">2I", 0xFADE0B01, size - len(head))).ljust(size, b"\0")
    commands = [segment(b"__TEXT", size, []), struct.pack("<4I", 0x1D, 16, 1 << 15, size)]
    return with_files(folder, {CPU: raw_macho(commands, body, at=1 << 15)})


def compiler_flags(folder: Path) -> Path:
    text = b" -DUSE_MPS" + b" a" * (12 << 20)
    return with_files(folder, {CPU: macho(replace(torch_cpu(), sections={"__cstring": text}))})


def two_cstrings(folder: Path) -> Path:
    body = b"a\0b\0" * 4
    return with_files(
        folder, {CPU: raw_macho([segment(b"__TEXT", 1 << 12, [(b"__cstring", 4096, 8)] * 2)], body, at=4096)}
    )


def two_metallibs(folder: Path) -> Path:
    sections = [(b"metal_basic", 4096, 200), (b"metal_basic", 4296, 200)]
    return with_files(folder, {CPU: raw_macho([segment(b"__TEXT", 1 << 12, sections)], bytes(400), at=4096)})


# The archive's numbers.


def zip64(folder: Path, *, offset: int = 0, packed: int = 0xFFFFFFFF, size: int = 10) -> Path:
    """One member whose zip64 field gives such numbers."""
    name = b"a.so"
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 45, 0, 0, 0, 33, 0, 10, 10, len(name), 0) + name + bytes(10)
    extra = struct.pack("<2H2Q", 1, 16, packed, offset)
    central = struct.pack(
        "<4s6H3L5H2L",
        b"PK\1\2",
        45,
        45,
        0,
        0,
        0,
        33,
        0,
        0xFFFFFFFF,
        size,
        len(name),
        len(extra),
        0,
        0,
        0,
        0,
        0xFFFFFFFF,
    )
    central += name + extra
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(central), len(local), 0)
    return written(folder, local + central + end)


def zip_bomb(folder: Path) -> Path:
    """300 times 45 MB of nothing: no member has a ratio that matters alone."""
    return written(folder, deflated_zip([f"torch/data/{index}.bin" for index in range(50)], bytes(45 << 20)))


def within_bounds(folder: Path) -> Path:
    """As many zeros as are unpacked at most."""
    return written(folder, deflated_zip([f"torch/data/{index}.bin" for index in range(42)], bytes(45 << 20)))


def deflated_zip(names: list[str], data: bytes) -> bytes:
    """The same data under each name, deflated once."""
    packed, crc = zlib.compress(data, 6)[2:-4], zlib.crc32(data)
    body, directory = bytearray(), b""
    for name in names:
        numbers = struct.pack("<5H3L2H", 20, 0, 8, 0, 33, crc, len(packed), len(data), len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + numbers + struct.pack("<3H2L", 0, 0, 0, 0, len(body))
        directory += name.encode()
        body += b"PK\3\4" + numbers + name.encode() + packed
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, len(names), len(names), len(directory), len(body), 0)
    return bytes(body) + directory + end


def local_extras(folder: Path) -> Path:
    """Every entry points to the same local header, with an extra field of 64 kB."""
    extra = struct.pack("<2H", 9, 0) * 16_000
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, 5, len(extra)) + b"00000" + extra
    entries = b"".join(
        struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0) + b"%05d" % index
        for index in range(50_000)
    )
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 50_000, 50_000, len(entries), len(local), 0)
    return written(folder, local + entries + end)


ATTACKS: Mapping[str, tuple[Attack, str]] = {
    "tag_product": (tag_product, "tags; at most 4096"),
    "folded_metadata": (folded_metadata, "at most 1048576 are read"),
    "folded_metadata_in_bounds": (folded_metadata_in_bounds, "more than 10000 lines"),
    "long_metadata": (long_metadata, "at most 1048576 are read"),
    "version_py": (version_py, "git_version"),
    "version_py_lines": (version_py_lines, "git_version"),
    "record_rows": (record_rows, "more than 65000 rows"),
    "record_quotes": (record_quotes, "no CSV"),
    "long_version": (long_version, "9999"),
    "long_version_of_strange_name": (long_version_of_strange_name, "strange.whl is not"),
    "cmake_files": (cmake_files, "Tag: none"),
    "deep_name": (deep_name, "a name of 64001 bytes"),
    "deep_names": (deep_names, "at most 8000000 are read"),
    "many_members": (many_members, "70000 members"),
    "overlapping_metallibs": (overlapping_metallibs, "overlaps"),
    "many_metallibs": (many_metallibs, "functions"),
    "object_paths": (object_paths, "33554432 bytes"),
    "undefined_names": (undefined_names, "1000000 undefined symbols"),
    "undefined_names_in_bounds": (undefined_names_in_bounds, "33554432 bytes"),
    "many_sections": (many_sections, "load commands"),
    "many_loads": (many_loads, "load commands"),
    "large_trie": (large_trie, "does not export"),
    "bushy_trie": (bushy_trie, "does not export"),
    "endless_labels": (endless_labels, "does not export"),
    "overlapping_blobs": (overlapping_blobs, "overlap"),
    "compiler_flags": (compiler_flags, "metal_basic"),
    "two_cstrings": (two_cstrings, "two sections __TEXT,__cstring"),
    "two_metallibs": (two_metallibs, "two sections __TEXT,metal_basic"),
    "zip64_offset_63": (lambda folder: zip64(folder, offset=(1 << 63) - 1, packed=10), "no header where"),
    "zip64_offset_64": (lambda folder: zip64(folder, offset=(1 << 64) - 1, packed=10), "no header where"),
    "zip64_packed": (lambda folder: zip64(folder, packed=(1 << 64) - 100), "packed size"),
    "within_bounds": (within_bounds, '"members": 42'),
    "full_trie": (full_trie, "does not export"),
    "zip_bomb": (zip_bomb, "at most 2000000000 are read"),
    "local_extras": (local_extras, "extra fields"),
}


def audit_within(wheel: Path, folder: Path, address_space: int) -> None:
    """Run the command within so many bytes of address space, and end with its status.

    `folder` gets what is printed (stdout, stderr), audit.json, and the seconds of processor time: what a busy machine
    makes of them is not the wheel's.
    """
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    for descriptor, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT), descriptor)
    began = time.process_time()
    status = main(audit_wheel.__name__.rpartition(".")[2], [str(wheel), "--json", str(folder / "audit.json")])
    (folder / "seconds").write_text(str(time.process_time() - began), encoding="utf-8")
    sys.exit(status)
