"""Registrations read from machine code: a Mach-O in miniature, assembled here word by word."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import dataclass

import pytest
from mps_build.inspection.audit.symbols import Registered, read_library
from mps_build.inspection.limits import Malformed

CODE, STRINGS = 0x1000, 0x2000
IMPL = b"__ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE"
BOXED = b"__ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN2atL12mps_fallbackERKNS_14OperatorHandleEEEEvv"
ERROR = b"__ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN2atL18mps_error_fallbackERKNS_14OperatorHandleEEEEvv"
MAKES = b"__ZN5torch11CppFunction21makeFromBoxedFunctionIXadL_ZN2at12mps_fallbackERKN3c1014OperatorHandleEEEES0_v"
IMPL_AT, BOXED_AT, ERROR_AT, MAKES_AT = 0x1F00, 0x1F10, 0x1F20, 0x1F30


def init(key: str, number: int) -> bytes:
    name = f"TORCH_LIBRARY_IMPL_init_aten_{key}_{number}"
    return f"__ZN2at12_GLOBAL__N_1{len(name)}{name}ERN5torch7LibraryE".encode()


@dataclass
class Assembler:
    """Words of arm64 code from CODE on; only the instructions that the compilers of the wheels use there."""

    words: list[int]

    @property
    def place(self) -> int:
        return CODE + 4 * len(self.words)

    def address(self, register: int, value: int) -> None:
        """ADRP and ADD."""
        pages = (value >> 12) - (self.place >> 12)
        self.words += [
            0x90000000 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5 | register,
            0x91000000 | (value & 0xFFF) << 10 | register << 5 | register,
        ]

    def near(self, register: int, value: int) -> None:
        """ADR, as the linker writes where the address is near."""
        distance = value - self.place
        self.words.append(0x10000000 | (distance & 3) << 29 | (distance >> 2 & 0x7FFFF) << 5 | register)

    def call(self, value: int) -> None:
        self.words.append(0x94000000 | (value - self.place) >> 2 & 0x3FFFFFF)

    def store_pair(self, first: int, second: int) -> None:
        self.words.append(0xA9000000 | second << 10 | 31 << 5 | first)

    def store(self, register: int) -> None:
        self.words.append(0xF9000000 | 31 << 5 | register)


def library(
    code: Assembler, texts: bytes, symbols: dict[bytes, int], starts: list[int], *, cpu: int = 0x0100000C
) -> bytes:
    """Return a dylib with __TEXT at byte 0, the code, C strings, symbols and function starts."""
    body = bytearray(0x3000)
    packed = b"".join(struct.pack("<I", word) for word in code.words)
    body[CODE : CODE + len(packed)] = packed
    body[STRINGS : STRINGS + len(texts)] = texts
    names, entries = bytearray(b"\0"), b""
    for name, address in symbols.items():
        entries += struct.pack("<IBBHQ", len(names), 0x0E, 1, 0, address)
        names += name + b"\0"
    symbols_at = len(body)
    body += entries
    names_at = len(body)
    body += names
    deltas, previous = b"", 0
    for start in starts:
        delta, previous = start - previous, start
        while delta > 0x7F:
            deltas += bytes([delta & 0x7F | 0x80])
            delta >>= 7
        deltas += bytes([delta])
    starts_at = len(body)
    body += deltas + b"\0"
    segment = struct.pack("<II16sQQQQIIII", 0x19, 72, b"__TEXT", 0, 0x3000, 0, 0x3000, 5, 5, 0, 0)
    commands = [
        segment,
        struct.pack("<6I", 0x02, 24, symbols_at, len(symbols), names_at, len(names)),
        struct.pack("<4I", 0x26, 16, starts_at, len(deltas) + 1),
    ]
    header = struct.pack("<8I", 0xFEEDFACF, cpu, 0, 6, len(commands), sum(map(len, commands)), 0, 0)
    body[: len(header) + sum(map(len, commands))] = header + b"".join(commands)
    return bytes(body)


def texts(*names: str) -> tuple[bytes, dict[str, int]]:
    packed, places = b"", {}
    for name in names:
        places[name] = STRINGS + len(packed)
        packed += name.encode() + b"\0"
    return packed, places


SYMBOLS = {IMPL: IMPL_AT, BOXED: BOXED_AT, ERROR: ERROR_AT, MAKES: MAKES_AT}


def test_names_and_fallbacks_are_read_from_the_code_that_registers_them() -> None:
    packed, places = texts("abs.out", "svd", "conv", "aten::cast", "old", "sgn")
    code = Assembler([])
    code.address(1, places["abs.out"])  # the kernel is an ordinary one
    code.call(IMPL_AT)
    code.address(21, BOXED_AT)  # kept in a register for several calls
    code.store_pair(31, 21)
    code.address(1, places["svd"])
    code.call(IMPL_AT)
    code.near(1, places["conv"])
    code.call(IMPL_AT)
    code.store(21)
    code.address(1, places["aten::cast"])
    code.call(IMPL_AT)
    code.call(MAKES_AT)  # up to 2.0 a function makes the kernel
    code.address(1, places["old"])
    code.call(IMPL_AT)
    code.address(8, ERROR_AT)
    code.store(8)
    code.address(1, places["sgn"])
    code.call(IMPL_AT)
    end = code.place
    read = read_library(library(code, packed, {**SYMBOLS, init("MPS", 2): CODE}, [CODE, end, IMPL_AT]))

    assert read.registered == {
        "MPS": (
            (
                Registered("abs.out", False),
                Registered("svd", True),
                Registered("conv", False),
                Registered("cast", True),
                Registered("old", True),
                Registered("sgn", False),
            ),
        )
    }


def test_each_function_ends_where_the_next_begins_and_is_reported_by_its_key() -> None:
    packed, places = texts("first", "second", "third")
    code = Assembler([])
    code.address(1, places["first"])
    code.call(IMPL_AT)
    middle = code.place
    code.address(1, places["second"])
    code.call(IMPL_AT)
    other = code.place
    code.address(1, places["third"])
    code.call(IMPL_AT)
    symbols = {**SYMBOLS, init("MPS", 1): CODE, init("MPS", 2): middle, b"_other": other}
    read = read_library(library(code, packed, symbols, [CODE, middle, other, IMPL_AT]))

    assert [[each.operator for each in function] for function in read.registered["MPS"]] == [["first"], ["second"]]


def test_what_is_no_operators_name_and_what_leaves_the_file_is_not_reported() -> None:
    packed, places = texts("not a name", "good")
    code = Assembler([])
    code.address(1, places["not a name"])
    code.call(IMPL_AT)
    code.address(1, 0x7FFFF000)
    code.call(IMPL_AT)
    code.address(1, places["good"])
    code.call(IMPL_AT)
    read = read_library(library(code, packed, {**SYMBOLS, init("CPU", 1): CODE}, [CODE, IMPL_AT]))

    assert read.registered == {"CPU": ((Registered("good", False),),)}


def test_code_of_another_processor_is_left_alone() -> None:
    read = read_library(library(Assembler([]), b"", {**SYMBOLS, init("MPS", 1): CODE}, [CODE], cpu=0x01000007))

    assert read.registered == {}


def test_a_file_that_is_no_mach_o_or_is_cut_off_is_said() -> None:
    with pytest.raises(Malformed):
        read_library(b"\x7fELF" + bytes(100))
    whole = library(Assembler([]), b"", {**SYMBOLS, init("MPS", 1): CODE}, [CODE])
    with pytest.raises(Malformed):
        read_library(whole[:60])
    for size in range(200, len(whole), 997):  # nothing but Malformed, wherever it ends
        with contextlib.suppress(Malformed):
            read_library(whole[:size])
