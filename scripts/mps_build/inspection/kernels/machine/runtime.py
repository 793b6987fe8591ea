"""The C runtime by ctypes: launches, guarded buffers, strided copies."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

MATH = ("exp", "exp2", "exp10", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
        "tanh", "asinh", "acosh", "atanh", "sinpi", "cospi", "tanpi", "rsqrt", "pow", "powr", "atan2", "fmod",
        "nextafter")  # fmt: skip
# What compiled code may call: our names, and those that a compiler makes up for conversions.
SYMBOLS = {
    **{f"rt_{name}": f"rt_{name}" for name in MATH},
    **{name: name for name in ("rt_barrier", "rt_simd", "rt_lane", "rt_matrix_row", "rt_matrix_column")},
    **{f"rt_access{space}": "rt_access" for space in (1, 2, 3)},
    "__truncsfhf2": "rt_truncsfhf2",
    "__truncdfhf2": "rt_truncdfhf2",
    "__gnu_f2h_ieee": "rt_truncsfhf2",
    "__truncsfbf2": "rt_truncsfbf2",
    "__truncdfbf2": "rt_truncdfbf2",
    "__extendhfsf2": "rt_extendhfsf2",
}


class Run(ctypes.Structure):
    """runtime.h, `struct run`."""

    _fields_ = [
        ("entry", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
        ("grid", ctypes.c_uint64 * 3),
        ("group", ctypes.c_uint32 * 3),
        ("cooperative", ctypes.c_uint32),
        ("order", ctypes.c_uint32),
        ("poison", ctypes.c_uint32),
        ("flush", ctypes.c_uint32),
        ("track", ctypes.c_uint32),
        ("milliseconds", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("first", ctypes.c_uint64),
        ("count", ctypes.c_uint64),
    ]


class Report(ctypes.Structure):
    """runtime.h, `struct report`."""

    _fields_ = [
        ("status", ctypes.c_int32),
        ("signal", ctypes.c_int32),
        ("address", ctypes.c_uint64),
        ("thread", ctypes.c_uint32 * 3),
        ("divergent", ctypes.c_uint32),
        ("threads", ctypes.c_uint64),
        ("inactive", ctypes.c_uint64),
        ("races", ctypes.c_uint32),
        ("race_kind", ctypes.c_uint32),
        ("race_address", ctypes.c_uint64),
        ("race_threads", ctypes.c_uint32 * 2),
        ("unwritten", ctypes.c_uint64),
    ]


def load_runtime(path: Path) -> Any:
    """Return the runtime's functions with their types."""
    library = ctypes.CDLL(str(path))
    size, pointer = ctypes.c_size_t, ctypes.c_void_p
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rt_run": (ctypes.c_int, [ctypes.POINTER(Run), ctypes.POINTER(Report)]),
        "rt_place": (pointer, [ctypes.c_uint32, size, size, ctypes.c_int]),
        "rt_surround": (None, [ctypes.c_uint32, pointer, size, ctypes.c_int, ctypes.c_int]),
        "rt_spoiled": (ctypes.c_int64, [ctypes.c_uint32, pointer, size, ctypes.c_int, ctypes.c_int]),
        "rt_map_fixed": (ctypes.c_uint64, [ctypes.c_uint64, size]),
        "rt_unmap": (ctypes.c_int, [ctypes.c_uint64, size]),
        "rt_strided": (None, [pointer, pointer, ctypes.c_uint64, ctypes.c_uint32, pointer, pointer, ctypes.c_int]),
        "rt_differs": (ctypes.c_int64, [pointer, pointer, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int]),
        "rt_release": (None, []),
        "rt_fill": (None, [pointer, ctypes.c_char_p, size]),
        "rt_canonical": (None, [pointer, ctypes.c_uint64, ctypes.c_int]),
        "rt_arena_clear": (None, []),
        "rt_arena_add": (None, [pointer, size, ctypes.c_uint32]),
        "rt_shadow_clear": (None, []),
        "rt_shadow_add": (None, [pointer, size, ctypes.c_int]),
    }
    for name, (result, parameters) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, parameters
    return library


def address_of(library: Any, name: str) -> int:
    """Return where a function of the runtime lies."""
    return int(ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0)
