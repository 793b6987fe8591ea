"""Symbols of a Mach-O: the exports trie, which dyld reads, and the undefined names of the symbol table."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..malformed import Malformed
from .limits import MOST_NODES, MOST_OBJECTS, MOST_SYMBOL_BYTES, MOST_UNDEFINED
from .macho import Range, SymbolTable

N_OSO = 0x66
NLIST_SIZE = 16
# libtorch_cpu of torch 2.15 has 6 MB of names, the longest of 5 kB; a made-up trie could have petabytes.
MOST_NAME_BYTES, MOST_NAMES_BYTES = 1 << 16, 1 << 27


@dataclass(frozen=True, slots=True)
class Exports:
    """An exports trie, walked only where it is asked: libtorch_cpu exports 35 000 names."""

    trie: bytes = b""

    def __contains__(self, name: bytes) -> bool:
        """Tell whether the trie exports `name`, as dyld looks it up; a broken trie does not lead there."""
        try:
            at = self._find(name) if self.trie else None
            return at is not None and bool(_node(self.trie, at)[0])
        except Malformed:
            return False

    def count(self, *prefixes: bytes) -> int:
        """Return how many names begin with one of `prefixes` (none of them begins with another)."""
        return sum(1 for _ in self.names(*prefixes))

    def names(self, *prefixes: bytes) -> Iterator[bytes]:
        """Yield every name that begins with one of `prefixes`, or every name; in one walk, whatever the trie is.

        Raises:
            Malformed: an edge that leaves the trie, or one that leads to a node a second time.
        """
        if not self.trie:
            return
        visited = bytearray(len(self.trie))
        pending: list[tuple[int, bytes]] = [(0, b"")]
        wanted = prefixes or (b"",)
        budget, nodes = MOST_NAMES_BYTES, 0
        while pending:
            at, name = pending.pop()
            nodes += 1
            if nodes > MOST_NODES:
                raise Malformed(f"the exports trie has more than {MOST_NODES} nodes")
            if at >= len(self.trie) or visited[at]:
                raise Malformed(f"an edge of the exports trie leads to byte {at} of {len(self.trie)}, or there twice")
            visited[at] = 1
            is_name, children = _node(self.trie, at)
            if is_name and name.startswith(wanted):
                yield name
            for label, child in children:
                budget -= len(label)
                longer = name + label
                if longer.startswith(wanted) or any(prefix.startswith(longer) for prefix in wanted):
                    budget -= len(longer)
                    if len(longer) > MOST_NAME_BYTES or budget < 0:
                        raise Malformed("the names of the exports trie have no end")
                    pending.append((child, longer))

    def _find(self, name: bytes) -> int | None:
        at = 0
        while name:
            for label, child in _node(self.trie, at)[1]:
                if label and name.startswith(label):
                    at, name = child, name[len(label) :]
                    break
            else:
                return None
        return at


def _node(trie: bytes, at: int) -> tuple[int, list[tuple[bytes, int]]]:
    """Return whether a name ends at this node (the size of what is stored for it), and its (label, child) edges."""
    size, at = uleb128(trie, at)
    at += size
    if at >= len(trie):
        raise Malformed("a node of the exports trie lies outside of it")
    count = trie[at]
    at += 1
    edges = []
    for _ in range(count):
        end = trie.find(b"\0", at, at + MOST_NAME_BYTES)
        if end < 0:
            raise Malformed("an edge of the exports trie has no end")
        child, following = uleb128(trie, end + 1)
        edges.append((trie[at:end], child))
        at = following
    return size, edges


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
    """Return where the names of the undefined symbols begin in the string table.

    Raises:
        Malformed: they are more than any file imports.
    """
    first, count = table.undefined
    if count > MOST_UNDEFINED:
        raise Malformed(f"{count} undefined symbols; at most {MOST_UNDEFINED} are read")
    data = entries[first * NLIST_SIZE : (first + count) * NLIST_SIZE]
    return tuple(fields[0] for fields in struct.iter_unpack("<I12x", data[: len(data) // NLIST_SIZE * NLIST_SIZE]))


def object_string_offsets(entries: bytes) -> tuple[int, ...]:
    """Return where the paths of the object files that were linked (N_OSO stabs) begin in the string table.

    Raises:
        Malformed: they are more than any file is linked from.
    """
    kinds = entries[4::NLIST_SIZE]
    found: list[int] = []
    at = kinds.find(N_OSO)
    while at >= 0:
        if len(found) == MOST_OBJECTS:
            raise Malformed(f"more than {MOST_OBJECTS} object files; a linked file with so many is not read")
        found.append(int.from_bytes(entries[at * NLIST_SIZE : at * NLIST_SIZE + 4], "little"))
        at = kinds.find(N_OSO, at + 1)
    return tuple(found)


def string_spans(
    offsets: Sequence[int], strings: Range, *, longest: int = MOST_SYMBOL_BYTES, gap: int = 4096
) -> tuple[Range, ...]:
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
