"""Element types: Metal's names, their bytes, torch's names and the codes that casting kernels are passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["bool", "signed", "unsigned", "float", "complex"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DType:
    """One element type; `code` is c10's ScalarType, `struct` how Python packs one component."""

    name: str
    size: int
    kind: Kind
    torch: str
    code: int
    struct: str = ""

    @property
    def is_exact(self) -> bool:
        """True for booleans and integers, whose results must be equal bit by bit."""
        return self.kind in ("bool", "signed", "unsigned")


_ROWS: tuple[tuple[str, int, Kind, str, int, str], ...] = (
    ("bool", 1, "bool", "bool", 11, "B"),
    ("uchar", 1, "unsigned", "uint8", 0, "B"),
    ("char", 1, "signed", "int8", 1, "b"),
    ("short", 2, "signed", "int16", 2, "h"),
    ("ushort", 2, "unsigned", "uint16", 27, "H"),
    ("int", 4, "signed", "int32", 3, "i"),
    ("uint", 4, "unsigned", "uint32", 28, "I"),
    ("long", 8, "signed", "int64", 4, "q"),
    ("ulong", 8, "unsigned", "uint64", 29, "Q"),
    ("half", 2, "float", "float16", 5, "e"),
    ("bfloat", 2, "float", "bfloat16", 15, ""),
    ("float", 4, "float", "float32", 6, "f"),
    ("half2", 4, "complex", "complex32", 8, "e"),
    ("float2", 8, "complex", "complex64", 9, "f"),
    ("float8_e4m3fn", 1, "float", "float8_e4m3fn", 24, ""),
    ("float8_e5m2", 1, "float", "float8_e5m2", 23, ""),
)
DTYPES = {
    row[0]: DType(name=row[0], size=row[1], kind=row[2], torch=row[3], code=row[4], struct=row[5]) for row in _ROWS
}
_ALIASES = {"int8_t": "char", "uint8_t": "uchar", "int16_t": "short", "uint16_t": "ushort", "int32_t": "int",
            "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "float16": "half", "float32": "float",
            "bfloat16": "bfloat", "bool_": "bool", "size_t": "ulong", "half_t": "half", "bfloat16_t": "bfloat",
            "c10::metal::float8_e4m3fn": "float8_e4m3fn", "c10::metal::float8_e5m2": "float8_e5m2"}  # fmt: skip


def dtype_named(name: str) -> DType | None:
    """Return the element type of a Metal (or C++) name, or None.

    >>> dtype_named("bfloat").torch, dtype_named("void")
    ('bfloat16', None)
    """
    return DTYPES.get(_ALIASES.get(name, name))
