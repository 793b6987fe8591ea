"""The names in a Mach-O: the exports trie, which dyld reads, undefined names, what is linked, what is registered.

`TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl(\"abs.out\", …); }` becomes a function that loads the address of each name
and calls `torch::Library::_impl`. Official wheels keep that function's symbol, so the names can be read on any system:
those that torchgen wrote and those that were written by hand, which leave no header.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..limits import MOST_NODES, MOST_OBJECTS, MOST_SYMBOL_BYTES, MOST_UNDEFINED, Malformed
from .macho import CPU_ARM64, MachO, Range, SymbolTable, head_size, load_commands, parse_macho
from .metallib import FunctionList, parse_header

N_OSO = 0x66
NLIST_SIZE = 16
# libtorch_cpu of torch 2.15 has 6 MB of names, the longest of 5 kB; a made-up trie could have petabytes.
MOST_NAME_BYTES, MOST_NAMES_BYTES = 1 << 16, 1 << 27


@dataclass(frozen=True, slots=True)
class Exports:
    """An exports trie, walked only where it is queried: libtorch_cpu exports 35 000 names."""

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
                raise Malformed(
                    f"an edge of the exports trie leads to byte {at} of {len(self.trie)}, or is a second one"
                )
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


_NLIST = struct.Struct("<IBBHQ")
_N_STAB, _N_PRIVATE, _N_TYPE, _N_EXTERNAL = 0xE0, 0x10, 0x0E, 0x01
_WEAK_REFERENCE, _WEAK_DEFINITION = 0x40, 0x80
# Ordinals beyond every library: looked up everywhere, or in the program itself.
_SPECIAL = {0: "itself", 0xFD: "itself", 0xFE: "any library", 0xFF: "the program"}
_COMMANDS = {
    0x02: "LC_SYMTAB",
    0x0B: "LC_DYSYMTAB",
    0x0C: "LC_LOAD_DYLIB",
    0x0D: "LC_ID_DYLIB",
    0x0E: "LC_LOAD_DYLINKER",
    0x18: "LC_LOAD_WEAK_DYLIB",
    0x19: "LC_SEGMENT_64",
    0x1B: "LC_UUID",
    0x1C: "LC_RPATH",
    0x1D: "LC_CODE_SIGNATURE",
    0x1F: "LC_REEXPORT_DYLIB",
    0x22: "LC_DYLD_INFO",
    0x26: "LC_FUNCTION_STARTS",
    0x28: "LC_MAIN",
    0x29: "LC_DATA_IN_CODE",
    0x2A: "LC_SOURCE_VERSION",
    0x32: "LC_BUILD_VERSION",
    0x33: "LC_DYLD_EXPORTS_TRIE",
    0x34: "LC_DYLD_CHAINED_FIXUPS",
}


@dataclass(frozen=True, slots=True)
class Import:
    """A name taken from a library (its install name); weak means that it may be absent."""

    name: str
    library: str
    is_weak: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedNames:
    """One Mach-O's names.

    Attributes:
        exports: name -> whether it is a weak definition (an inline function or a template's).
        selectors: the Objective-C messages it sends.
        commands: the kinds of its load commands, as a tool prints them.
    """

    macho: MachO
    imports: tuple[Import, ...]
    exports: dict[str, bool]
    selectors: frozenset[str]
    commands: frozenset[str]


def read_linked_names(data: bytes) -> LinkedNames:
    """Return the names of a thin 64-bit Mach-O.

    Raises:
        Malformed: it is not one, or its symbol table lies outside of it.
    """
    head = data[: head_size(data)]
    macho = parse_macho(head)
    imports, exports = _symbols(macho, data)
    commands = frozenset(_COMMANDS.get(number, f"{number:#x}") for number, _ in load_commands(head))
    return LinkedNames(
        macho=macho, imports=imports, exports=exports, selectors=_selectors(macho, data), commands=commands
    )


def _selectors(macho: MachO, data: bytes) -> frozenset[str]:
    found: set[str] = set()
    for section in macho.sections:
        if section.full_name == "__TEXT,__objc_methname":
            content = data[section.offset : section.offset + section.size]
            found.update(name.decode("utf-8", "replace") for name in content.split(b"\0") if name)
    return frozenset(found)


def _symbols(macho: MachO, data: bytes) -> tuple[tuple[Import, ...], dict[str, bool]]:
    libraries = [dependency.path for dependency in macho.dependencies]
    imports, exports = [], {}
    for name, kind, description, value in _entries(macho, data):
        if kind & _N_STAB or not kind & _N_EXTERNAL:
            continue
        if kind & _N_TYPE:
            if not kind & _N_PRIVATE:
                exports[name] = bool(description & _WEAK_DEFINITION)
        elif not value:  # a common symbol has a size here
            ordinal = description >> 8
            library = _SPECIAL.get(ordinal) or (libraries[ordinal - 1] if ordinal <= len(libraries) else f"#{ordinal}")
            imports.append(Import(name, library, bool(description & _WEAK_REFERENCE)))
    return tuple(imports), exports


def _entries(macho: MachO, data: bytes) -> Iterator[tuple[str, int, int, int]]:
    table = macho.symbols
    if table is None:
        return
    end = table.offset + table.count * NLIST_SIZE
    if end > len(data) or table.strings.end > len(data):
        raise Malformed("the symbol table lies outside the file")
    strings = data[table.strings.offset : table.strings.end]
    for at, kind, _, description, value in _NLIST.iter_unpack(data[table.offset : end]):
        stop = strings.find(b"\0", at)
        yield strings[at:stop].decode("utf-8", "replace"), kind, description, value


_INIT = re.compile(rb"__ZN[\w$]*?TORCH_LIBRARY_IMPL_init_aten_(\w+?)_\d+ERN5torch7LibraryE\0")
# Library::_impl takes the made kernel; Library::impl is the template around it, where it was not inlined.
_CALLED = re.compile(rb"__ZNO?R5torch7Library(?:5_impl|4impl)[\w$]*\0")
# The kernel's address is stored (from 2.1 on), or a function that makes the kernel is called.
_FALLBACK = re.compile(rb"__ZN[\w$]*?(?:make_boxed_function|makeFromBoxedFunction)\w*?12mps_fallback[\w$]*\0")
_N_STAB, _N_TYPE, _N_SECT = 0xE0, 0x0E, 0x0E
_MOST_CODE_BYTES = 8 << 20
_OPERATOR = re.compile(rb"[A-Za-z_]\w*(?:\.\w+)?")


@dataclass(frozen=True, slots=True)
class Registered:
    """One `m.impl`: the operator, and whether its kernel is the one that falls back to the CPU."""

    operator: str
    falls_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """What one library tells: dispatch key to what each of its registering functions registers; metallibs' names."""

    registered: Mapping[str, tuple[tuple[Registered, ...], ...]]
    kernels: Mapping[str, tuple[str, ...]]


def read_library(data: bytes) -> Library:
    """Return the registrations and the Metal kernels of a thin arm64 Mach-O; other processors give kernels only.

    Raises:
        Malformed: it is not a thin 64-bit Mach-O, or a damaged one.
    """
    macho = parse_macho(data[: head_size(data)])
    return Library(registered=_registered(macho, data), kernels=_kernels(macho, data))


def _kernels(macho: MachO, data: bytes) -> dict[str, tuple[str, ...]]:
    found = {}
    for section in macho.sections:
        content = data[section.offset : section.offset + section.size] if section.offset else b""
        if not content.startswith(b"MTLB"):
            continue
        header = parse_header(content)
        # The list's size leaves out its first four bytes, the count.
        found[section.name] = FunctionList(content[header.list_offset :][: header.list_size + 4]).names()
    return found


def _registered(macho: MachO, data: bytes) -> dict[str, tuple[tuple[Registered, ...], ...]]:
    if macho.cpu != CPU_ARM64 or macho.symbols is None:
        return {}
    text = next((extent for name, extent in macho.segments if name == "__TEXT"), None)
    if text is None or text.offset != 0:
        raise Malformed("its __TEXT does not begin at byte 0, so that addresses are not places in the file")
    strings = data[macho.symbols.strings.offset : macho.symbols.strings.end]
    wanted = {match.start(): match for pattern in (_INIT, _CALLED, _FALLBACK) for match in pattern.finditer(strings)}
    starts: list[tuple[int, str]] = []
    called: set[int] = set()
    fallbacks: set[int] = set()
    for offset, address in _addresses(macho, data, frozenset(wanted)):
        match = wanted[offset]
        if match.re is _INIT:
            starts.append((address, match[1].decode("ascii")))
        else:
            (called if match.re is _CALLED else fallbacks).add(address)
    ends = _function_ends(macho, data)
    found: dict[str, list[tuple[Registered, ...]]] = {}
    for address, key in sorted(set(starts)):
        end = min(ends.get(address, address), address + _MOST_CODE_BYTES, text.end)
        calls = _calls(data, address, end, frozenset(called), frozenset(fallbacks), text.end)
        found.setdefault(key, []).append(tuple(calls))
    return {key: tuple(functions) for key, functions in found.items()}


def _addresses(macho: MachO, data: bytes, wanted: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Yield (name's place in the string table, address) of the defined symbols with one of these names."""
    assert macho.symbols is not None
    begin = macho.symbols.offset
    table = memoryview(data)[begin : begin + macho.symbols.count * NLIST_SIZE]
    for name, kind, _, _, address in _NLIST.iter_unpack(table[: len(table) // NLIST_SIZE * NLIST_SIZE]):
        if name in wanted and not kind & _N_STAB and kind & _N_TYPE == _N_SECT:
            yield name, address


def _function_ends(macho: MachO, data: bytes) -> dict[int, int]:
    """Return, of each function's address, that of the next one (LC_FUNCTION_STARTS)."""
    where = macho.linkedit.get("function_starts")
    packed = data[where.offset : where.end] if where else b""
    ends: dict[int, int] = {}
    at = address = 0
    while at < len(packed):
        delta, at = uleb128(packed, at)
        if delta == 0:  # padding
            break
        if address:
            ends[address] = address + delta
        address += delta
    return ends


def _calls(
    data: bytes, begin: int, end: int, called: frozenset[int], fallbacks: frozenset[int], text_end: int
) -> Iterator[Registered]:
    """Yield what each call of `impl` is given: the name in x1, and whether mps_fallback was stored since the last call.

    Only ADRP, ADR, ADD (how an address is made), STR, STP and BL are read; all else leaves the registers as they are,
    which is enough, for a compiler makes the name's address right before the call.
    """
    registers: dict[int, int] = {}
    falls_back = False
    code = data[begin:end]
    words = struct.iter_unpack("<I", code[: len(code) // 4 * 4])
    for place, (word,) in zip(range(begin, end, 4), words, strict=False):
        target = word & 0x1F
        if word & 0x9F000000 in (0x90000000, 0x10000000):
            distance = (word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3
            distance -= (distance & 1 << 20) << 1
            is_page = bool(word >> 31)
            registers[target] = (place & ~0xFFF) + (distance << 12) if is_page else place + distance
        elif word & 0xFF800000 == 0x91000000:  # ADD (immediate, 64 bits); bit 22 shifts the immediate by 12
            base = registers.get(word >> 5 & 0x1F)
            if base is None:
                registers.pop(target, None)
            else:
                registers[target] = base + ((word >> 10 & 0xFFF) << (12 if word & 1 << 22 else 0))
        elif word & 0xFFC00000 in (0xA9000000, 0xA9800000, 0xA8800000):  # STP
            falls_back |= not fallbacks.isdisjoint((registers.get(target), registers.get(word >> 10 & 0x1F)))
        elif word & 0xFFC00000 == 0xF9000000 or word & 0xFFE00000 == 0xF8000000:  # STR, STUR
            falls_back |= registers.get(target) in fallbacks
        elif word & 0xFC000000 == 0x94000000:  # BL
            distance = (word & 0x3FFFFFF) << 2
            distance -= (distance & 1 << 27) << 1
            falls_back |= place + distance in fallbacks
            if place + distance in called:
                name = _name(data, registers.get(1, -1), text_end)
                if name is not None:
                    yield Registered(name, falls_back)
                falls_back = False


def _name(data: bytes, address: int, text_end: int) -> str | None:
    if not 0 <= address < text_end:
        return None
    text = data[address : data.find(b"\0", address, address + 512)].removeprefix(b"aten::")
    return text.decode("ascii") if _OPERATOR.fullmatch(text) else None
