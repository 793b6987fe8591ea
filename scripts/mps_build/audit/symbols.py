"""Symbols of a Mach-O: the exports trie, which dyld reads, and the undefined names of the symbol table."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from .macho import Malformed, Range, SymbolTable

N_STAB, N_OSO = 0xE0, 0x66
NLIST_SIZE = 16
MOST_TRIE_BYTES = 64 << 20
MOST_NAME_BYTES = 1 << 16


def exported_names(trie: bytes) -> Iterator[bytes]:
    """Yield every name in an exports trie.

    Raises:
        Malformed: an edge that leaves the trie, or one that leads to a node a second time.
    """
    if not trie:
        return
    pending: list[tuple[int, bytes]] = [(0, b"")]
    visited = bytearray(len(trie))
    while pending:
        at, prefix = pending.pop()
        if at >= len(trie) or visited[at]:
            raise Malformed(f"an edge of the exports trie leads to byte {at} of {len(trie)}, or there twice")
        visited[at] = 1
        size, at = uleb128(trie, at)
        if size:
            yield prefix
        at += size
        if at >= len(trie):
            raise Malformed("a node of the exports trie lies outside of it")
        children = trie[at]
        at += 1
        for _ in range(children):
            end = trie.find(b"\0", at)
            if end < 0 or len(prefix) + end - at > MOST_NAME_BYTES:
                raise Malformed("an edge of the exports trie has no end")
            label = trie[at:end]
            child, at = uleb128(trie, end + 1)
            pending.append((child, prefix + label))


def uleb128(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at `at` and where the next byte lies."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise Malformed("a number of the exports trie has no end")


def undefined_string_offsets(table: SymbolTable, entries: bytes) -> tuple[int, ...]:
    """Return where the names of the undefined symbols begin in the string table."""
    first, count = table.undefined
    data = entries[first * NLIST_SIZE : (first + count) * NLIST_SIZE]
    return tuple(fields[0] for fields in struct.iter_unpack("<I12x", data[: len(data) // NLIST_SIZE * NLIST_SIZE]))


def object_string_offsets(entries: bytes) -> tuple[int, ...]:
    """Return where the paths of the object files that were linked (N_OSO stabs) begin in the string table."""
    kinds = entries[4::NLIST_SIZE]
    found: list[int] = []
    at = kinds.find(N_OSO)
    while at >= 0 and len(found) < 100_000:
        found.append(int.from_bytes(entries[at * NLIST_SIZE : at * NLIST_SIZE + 4], "little"))
        at = kinds.find(N_OSO, at + 1)
    return tuple(found)


def string_spans(offsets: Sequence[int], strings: Range, *, longest: int = 4096, gap: int = 4096) -> tuple[Range, ...]:
    """Return the runs of the file that hold the strings at `offsets`, near ones joined.

    A string table of libtorch_cpu has 57 MB, of which an audit needs a few hundred kB.
    """
    spans: list[list[int]] = []
    for offset in sorted(set(offsets)):
        if offset >= strings.size:
            raise Malformed(f"a symbol's name at byte {offset} of a string table of {strings.size}")
        end = min(offset + longest, strings.size)
        if spans and offset <= spans[-1][1] + gap:
            spans[-1][1] = end
        else:
            spans.append([offset, end])
    return tuple(Range(offset=strings.offset + begin, size=end - begin) for begin, end in spans)
