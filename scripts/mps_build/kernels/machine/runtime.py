"""The C runtime by ctypes: launches, guarded buffers, strided copies."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from ..code.compiled import LIBRARY_CALLS, SYMBOLS


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
        ("row", ctypes.c_void_p),
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
        "rt_load_code": (ctypes.c_int, [ctypes.c_uint64, ctypes.c_char_p, size]),
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


def addresses(library: Any) -> dict[str, int]:
    """Return where the functions lie that compiled code may call, by the names that it uses."""
    names = {**SYMBOLS, **{name: name for name in LIBRARY_CALLS}}  # the runtime is linked against libm
    return {
        name: int(ctypes.cast(getattr(library, function), ctypes.c_void_p).value or 0)
        for name, function in names.items()
    }
