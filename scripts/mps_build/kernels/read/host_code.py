"""Which functions of a wheel's host code ask, before they launch, whether a tensor is too large for 32 bits.

Torch's host code guards large tensors by calls of a few functions. Their callers are read from the machine code of
`libtorch_cpu.dylib`: its symbol table has local functions too, and a call is one instruction (BL, or B at a tail).
"""

from __future__ import annotations

import bisect
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ...common.errors import UsageError
from ...inspection.audit.archive import Member, read_archive
from ...inspection.audit.macho import Section, head_size, name_kind, parse_macho
from ...inspection.audit.stream import Damaged, FolderSource, Source, ZipSource
from ...inspection.audit.symbols import NLIST_SIZE
from ...inspection.limits import Malformed
from .wheel import HEAD_BYTES, cut, files_of

LIBRARY = "libtorch_cpu.dylib"
_ARM64 = 0x0100000C
# Bits of n_type: a debugging entry; the kind, of which "in a section" is 0xE.
_STAB, _KIND, _IN_SECTION = 0xE0, 0x0E, 0x0E
_CALL, _BRANCH = 0x25, 0x05
_MOST_SYMBOLS = 1 << 21
# The constant 2**31 - 1 in a register (without its number), and a shift by 31: a comparison that is no call.
_INLINE = frozenset({0x12B00000, 0xB2407BE0, 0x32007BE0})
_SHIFT_BY_31 = 0xD35FFC00
INLINE = "2**31"
# Instructions that put 2**31 - 1, 2**32 - 1 or 2**32 into x1, the second argument, and how far before a call it is set.
_SECOND = {
    0x12B00001: (1 << 31) - 1,
    0xB2407BE1: (1 << 31) - 1,
    0x32007BE1: (1 << 31) - 1,
    0xB2407FE1: (1 << 32) - 1,
    0x12800001: (1 << 32) - 1,
}
# MOVZ into w1 or x1, without its 16 bits and without where they stand.
_MOVZ = frozenset({0x52800001, 0xD2800001})
_NEAR = 6
# An anonymous namespace ends in a digit that is not of the length behind it.
_ANONYMOUS = b"12_GLOBAL__N_1"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCode:
    """What a wheel's host code was searched for.

    Args:
        calls: by function, which of the guards it calls, itself or in a block of it, each with the largest number that
            it is given as its second argument (0: none that is seen), and ``INLINE`` if it compares with 2**31 itself;
            a function that the symbol table does not name is not there.
        callers: by function, the guards that those ask which call it directly.
        texts: which of some texts of errors it holds.
        reason: why nothing could be read; empty if it could.
    """

    calls: Mapping[str, Mapping[str, int]]
    callers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    reason: str = ""


def read_host_code(wheel: Path, functions: Iterable[str], guards: Iterable[str], texts: Iterable[str]) -> HostCode:
    """Return which of some functions of a wheel's libtorch_cpu call which guards, by their plain names, and which
    of some texts it holds.

    Raises:
        UsageError: the wheel is damaged.
    """
    try:
        with wheel.open("rb") as file:
            return _read(ZipSource(file.fileno()), read_archive(wheel).members, functions, guards, texts)
    except (Damaged, Malformed) as error:
        raise UsageError(f"{wheel}: {LIBRARY} {error}", hint="the file is damaged: fetch it again") from error


def read_installed_code(root: Path, functions: Iterable[str], guards: Iterable[str], texts: Iterable[str]) -> HostCode:
    """Return the same of an installed package's files."""
    return _read(FolderSource(root), files_of(root, "torch"), functions, guards, texts)


def _read(
    source: Source,
    members: Sequence[Member],
    functions: Iterable[str],
    guards: Iterable[str],
    texts: Iterable[str],
) -> HostCode:
    member = next((each for each in members if each.name.rpartition("/")[2] == LIBRARY), None)
    if member is None:
        return HostCode(calls={}, reason=f"it holds no {LIBRARY}")
    head = source.head(member, HEAD_BYTES)
    if name_kind(head) != "macho" or head_size(head) > len(head):
        return HostCode(calls={}, reason=f"{LIBRARY} is not a Mach-O file")
    macho = parse_macho(head)
    text = next((each for each in macho.sections if each.full_name == "__TEXT,__text"), None)
    table = macho.symbols
    if macho.cpu != _ARM64 or text is None or table is None or table.count > _MOST_SYMBOLS:
        return HostCode(calls={}, reason=f"{LIBRARY} is not for arm64, or has no symbols")
    symbols = Section(segment="", name="symbols", offset=table.offset, size=table.count * NLIST_SIZE)
    strings = Section(segment="", name="strings", offset=table.strings.offset, size=table.strings.size)
    held = [each for each in macho.sections if each.name == "__cstring"]
    wanted = [text, symbols, strings, *held]
    found = cut(source, member, wanted)
    if any(len(data) < each.size for each, data in zip(wanted, found, strict=True)):
        raise Malformed("is cut off")
    code, entries, names, *errors = found
    # The first segment begins at byte 0 of the file, and at address 0.
    said = calls_of(code, text.offset, entries, names, functions, guards)
    return replace(said, texts=frozenset(each for each in texts if any(each.encode() in one for one in errors)))


def calls_of(
    code: bytes, begin: int, entries: bytes, names: bytes, functions: Iterable[str], guards: Iterable[str]
) -> HostCode:
    """Return which functions call which guards, and which their callers call.

    Args:
        code: of `__text`, which lies at address `begin`.
        entries: of the symbol table; `names`: its strings.
    """
    placed = [
        (value, name)
        for name, kind, _, _, value in struct.iter_unpack("<IBBHQ", entries[: len(entries) // NLIST_SIZE * NLIST_SIZE])
        if not kind & _STAB and kind & _KIND == _IN_SECTION
    ]
    where: dict[int, list[int]] = {}
    for value, name in placed:
        where.setdefault(name, []).append(value)
    text = _Text(
        words=array("I", code[: len(code) // 4 * 4]),
        begin=begin,
        starts=sorted({value for value, _ in placed}),
        targets={at: guard for guard in guards for at in _addresses(guard, names, where, cold=False)},
    )
    found, own = {}, {}
    for function in functions:
        if begins := _addresses(function, names, where):
            calls: dict[str, int] = {}
            for at in begins:
                own[at] = function
                for guard, number in text.guards_of(at).items():
                    calls[guard] = max(number, calls.get(guard, 0))
            found[function] = calls
    return HostCode(calls=found, callers=text.callers(own))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """Machine code: its instructions, where it begins and each function does, and where the guards are."""

    words: Sequence[int]
    begin: int
    starts: Sequence[int]
    targets: Mapping[int, str]

    def guards_of(self, at: int) -> dict[str, int]:
        """Return what a function at an address asks (HostCode.calls)."""
        place = bisect.bisect_right(self.starts, at)
        end = self.starts[place] if place < len(self.starts) else self.begin + 4 * len(self.words)
        if not self.begin <= at < end <= self.begin + 4 * len(self.words):
            return {}
        words = self.words[(at - self.begin) // 4 : (end - self.begin) // 4]
        calls: dict[str, int] = {}
        for number, word in enumerate(words):
            if word >> 26 in (_CALL, _BRANCH):
                guard = self.targets.get(_target(word, at + 4 * number))
                if guard is not None:
                    calls[guard] = max(_second(words[max(number - _NEAR, 0) : number]), calls.get(guard, 0))
            elif _compares(word):
                calls[INLINE] = 0
        return calls

    def callers(self, own: Mapping[int, str]) -> dict[str, frozenset[str]]:
        """Return the guards that functions ask which call others directly, by the called one's name."""
        found: dict[str, set[str]] = {}
        guards_at: dict[int, dict[str, int]] = {}
        calls = (number for number, word in enumerate(self.words) if word >> 26 == _CALL)
        for number in calls:
            at = self.begin + 4 * number
            function = own.get(_target(self.words[number], at))
            if function is not None:
                start = self.starts[bisect.bisect_right(self.starts, at) - 1]
                if start not in guards_at:
                    guards_at[start] = self.guards_of(start)
                found.setdefault(function, set()).update(set(guards_at[start]) - {INLINE})
        return {function: frozenset(guards) for function, guards in found.items()}


def _target(word: int, at: int) -> int:
    """Return where a call or jump at an address goes."""
    offset = word & 0x3FFFFFF
    return at + 4 * (offset - ((offset >> 25) << 26))


def _addresses(function: str, names: bytes, where: Mapping[int, Sequence[int]], *, cold: bool = True) -> list[int]:
    """Return where a function, its instances and its blocks begin: mangled, a name follows its own length.

    Args:
        function: its name, and behind a space its arguments as they are mangled, if those are meant alone.
        cold: also the parts that the compiler moved out of it; equal ones of several functions are one.
    """
    found: list[int] = []
    name, _, arguments = function.partition(" ")
    wanted = f"{len(name)}{name}{arguments}".encode()
    at = names.find(wanted)
    while at >= 0:
        begin, end = names.rfind(b"\0", 0, at) + 1, names.find(b"\0", at)
        rest = names[at + len(wanted) : end]
        before = names[max(at - len(_ANONYMOUS), 0) : at]
        is_whole = before.endswith(_ANONYMOUS) or not before[-1:].isdigit()
        if is_whole and (not arguments or not rest) and (cold or b".cold" not in rest):
            found += where.get(begin, ())
        at = names.find(wanted, at + 1)
    return found


def _compares(word: int) -> bool:
    """Return whether an instruction looks like a comparison with 2**31; a second argument of a guard is none."""
    return word not in _SECOND and (word & ~0x1F in _INLINE or word & ~0x3FF == _SHIFT_BY_31)


def _second(words: Sequence[int]) -> int:
    """Return the number that the last of some instructions put into x1; 0 if none does.

    >>> _second([0x12B00001]), _second([0xD2C00021]), _second([0x52A40001]), _second([0xAA0203E1])
    (2147483647, 4294967296, 536870912, 0)
    """
    for word in reversed(words):
        if word in _SECOND:
            return _SECOND[word]
        if word & ~0x7FFFE0 in _MOVZ:
            return (word >> 5 & 0xFFFF) << 16 * (word >> 21 & 3)
    return 0
