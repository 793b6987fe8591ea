"""What one Mach-O takes from others and gives to them: imports with library and weak mark, exports, selectors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from ..malformed import Malformed
from .load_commands import head_size, load_commands, parse_macho
from .macho import MachO
from .symbols import NLIST_SIZE

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
