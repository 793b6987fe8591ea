"""Which operators a compiled library registers with PyTorch's dispatcher, read from its machine code.

`TORCH_LIBRARY_IMPL(aten, MPS, m) { m.impl("abs.out", …); }` becomes a function that loads the address of each name
and calls `torch::Library::_impl`. Official wheels keep that function's symbol, so the names can be read on any
system: those that torchgen wrote and those that were written by hand, which leave no header.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..malformed import Malformed
from .load_commands import head_size, parse_macho
from .macho import CPU_ARM64, MachO
from .metallib import FunctionList, parse_header
from .symbols import NLIST_SIZE, uleb128

_INIT = re.compile(rb"__ZN[\w$]*?TORCH_LIBRARY_IMPL_init_aten_(\w+?)_\d+ERN5torch7LibraryE\0")
# Library::_impl takes the made kernel; Library::impl is the template around it, where it was not inlined.
_CALLED = re.compile(rb"__ZNO?R5torch7Library(?:5_impl|4impl)[\w$]*\0")
# The kernel's address is stored (from 2.1 on), or a function that makes the kernel is called.
_FALLBACK = re.compile(rb"__ZN[\w$]*?(?:make_boxed_function|makeFromBoxedFunction)\w*?12mps_fallback[\w$]*\0")
_NLIST = struct.Struct("<IBBHQ")
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
