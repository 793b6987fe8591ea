"""Object code into memory: its sections placed, its relocations done, nothing looked up but the runtime's functions.

LLVM's own loader would resolve a name among all that this process has, and brings LLVM's 100 MB into the process that
runs a stranger's code. The object files are LLVM's, for its large code model; psABI and the ELF for the Arm 64-bit
Architecture say what each relocation means.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

from ...inspection.limits import Malformed

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_X86_64, _AARCH64 = 62, 183
_IN_MEMORY = 2
_WITHOUT_BYTES, _RELOCATIONS, _SYMBOLS = 8, 4, 2
_ELSEWHERE = 0
MOST_BYTES = 64 << 20
# ldr x16, #8; br x16; then the address: for a call farther than 128 MB.
_FAR_CALL = struct.pack("<II", 0x58000050, 0xD61F0200)


@dataclass(frozen=True, slots=True)
class _Section:
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    align: int
    entry: int


class Image:
    """An object file in memory: `size` bytes; `linked` gives them for the address at which they will lie."""

    def __init__(self, data: bytes) -> None:
        try:
            self._read(data)
        except (struct.error, IndexError, ValueError) as error:
            raise Malformed(f"the object code cannot be read: {error}") from error

    def _read(self, data: bytes) -> None:
        magic, kind, self._machine, _, _, _, at, _, _, _, _, size, count, names = _HEADER.unpack_from(data)
        if magic[:6] != b"\x7fELF\x02\x01" or kind != 1 or size != _SECTION.size:
            raise ValueError("it is not an object file of 64 bits")
        self._data = data
        self._sections = [_Section(*_SECTION.unpack_from(data, at + size * each)) for each in range(count)]
        self._places: dict[int, int] = {}
        self.size = 0
        for number, each in enumerate(self._sections):
            if each.flags & _IN_MEMORY and each.size and self._text(names, each.name) != ".eh_frame":  # nothing unwinds
                align = max(each.align, 16)
                self.size = -(-self.size // align) * align
                self._places[number] = self.size
                self.size += each.size
        calls = sum(each.size // _RELOCATION.size for each in self._sections if each.kind == _RELOCATIONS)
        self._stubs_at = self.size = -(-self.size // 16) * 16
        self.size += calls * 16 if self._machine == _AARCH64 else 0
        if self.size > MOST_BYTES:
            raise ValueError(f"it has {self.size} bytes")

    def linked(self, base: int, names: Mapping[str, int], entry: str) -> tuple[bytes, int]:
        """Return the bytes for `base`, and where `entry` begins.

        Args:
            names: addresses of what the code may call.

        Raises:
            Malformed: it needs another name, or a relocation that is not known.
        """
        try:
            return self._linked(base, names, entry)
        except (struct.error, IndexError, ValueError) as error:
            raise Malformed(f"the object code cannot be linked: {error}") from error

    def offset(self, name: str) -> int | None:
        """Return where a function begins in the linked bytes; None for one that is not there.

        Raises:
            Malformed: the table of its names cannot be read.
        """
        try:
            return next((at for each in self._tables() if (at := self._begin(each, name)) is not None), None)
        except (struct.error, IndexError, ValueError) as error:
            raise Malformed(f"the object code cannot be read: {error}") from error

    def _linked(self, base: int, names: Mapping[str, int], entry: str) -> tuple[bytes, int]:
        out = bytearray(self.size)
        for number, at in self._places.items():
            section = self._sections[number]
            if section.kind != _WITHOUT_BYTES:
                out[at : at + section.size] = self._slice(section.offset, section.size)
        begin, stubs = self.offset(entry), self._stubs_at
        for table in self._sections:
            if table.kind != _RELOCATIONS or table.info not in self._places:
                continue
            place, limit = self._places[table.info], self._sections[table.info].size
            symbols = self._sections[table.link]
            for at in range(table.offset, table.offset + table.size, _RELOCATION.size):
                offset, info, addend = _RELOCATION.unpack_from(self._data, at)
                if offset + 4 > limit:
                    raise ValueError("a relocation lies outside of its section")
                target = self._value(symbols, info >> 32, base, names)
                stubs = self._relocate(out, place + offset, info & 0xFFFFFFFF, target + addend, base, stubs)
        if begin is None:
            raise ValueError(f"it has no {entry}")
        return bytes(out), base + begin

    def _slice(self, offset: int, size: int) -> bytes:
        if offset + size > len(self._data):
            raise ValueError("a section lies outside of the file")
        return self._data[offset : offset + size]

    def _tables(self) -> list[_Section]:
        return [each for each in self._sections if each.kind == _SYMBOLS]

    def _begin(self, table: _Section, wanted: str) -> int | None:
        for number in range(table.size // _SYMBOL.size):
            name, _, _, section, value, _ = _SYMBOL.unpack_from(self._data, table.offset + number * _SYMBOL.size)
            if section in self._places and self._name(table, name) == wanted:
                return self._places[section] + int(value)
        return None

    def _value(self, table: _Section, number: int, base: int, names: Mapping[str, int]) -> int:
        name, _, _, section, value, _ = _SYMBOL.unpack_from(self._data, table.offset + number * _SYMBOL.size)
        if section == _ELSEWHERE:
            text = self._name(table, name)
            if text not in names:
                raise ValueError(f"it calls {text}")
            return names[text]
        if section not in self._places:
            raise ValueError("a symbol lies in no section that is loaded")
        return base + self._places[section] + int(value)

    def _name(self, table: _Section, offset: int) -> str:
        return self._text(table.link, offset)

    def _text(self, number: int, offset: int) -> str:
        begin = self._sections[number].offset + offset
        return self._data[begin : self._data.index(b"\0", begin)].decode("utf-8", "replace")

    def _relocate(self, out: bytearray, at: int, kind: int, value: int, base: int, stubs: int) -> int:
        """Write one relocation, and return where the next far call's stub may lie."""
        if self._machine == _X86_64 and kind == 1:  # R_X86_64_64
            struct.pack_into("<Q", out, at, value & 0xFFFFFFFFFFFFFFFF)
            return stubs
        if self._machine != _AARCH64:
            raise ValueError(f"relocation {kind} of machine {self._machine} is not known")
        (word,) = struct.unpack_from("<I", out, at)
        if kind in (282, 283):  # JUMP26, CALL26
            distance = value - base - at
            if not -(1 << 27) <= distance < 1 << 27:
                out[stubs : stubs + 16] = _FAR_CALL + struct.pack("<Q", value)
                distance, stubs = stubs - at, stubs + 16
            word |= distance >> 2 & 0x3FFFFFF
        elif kind in _MOVES:
            word |= (value >> _MOVES[kind] & 0xFFFF) << 5
        elif kind == 275:  # ADR_PREL_PG_HI21
            pages = (value >> 12) - (base + at >> 12)
            if not -(1 << 20) <= pages < 1 << 20:
                raise ValueError("an address is more than 4 GB away")
            word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        elif kind in _LOW_12:
            word |= (value & 0xFFF) >> _LOW_12[kind] << 10
        else:
            raise ValueError(f"relocation {kind} of machine {self._machine} is not known")
        struct.pack_into("<I", out, at, word)
        return stubs


_MOVES = {263: 0, 264: 0, 265: 16, 266: 16, 267: 32, 268: 32, 269: 48}  # MOVW_UABS_G0 to G3
_LOW_12 = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}  # ADD_ABS_LO12_NC, LDST8 to LDST128_ABS_LO12_NC
