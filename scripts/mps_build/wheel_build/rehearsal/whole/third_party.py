"""Libraries that Debian's tree takes from the system and no Mac's copy is at hand for: which names are wanted of them.

What PyTorch's objects want and nobody has goes into a stand-in that traps when it is called: the wheel links, and the
report names what is not real in it. A name that belongs to no library known here stops the rehearsal.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

# Library -> how its names begin: a C prefix, or a namespace as mangled names spell it.
_LIBRARIES: Mapping[str, str] = {
    "protobuf": r"6google8protobuf",
    "onnx": r"4onnx",
    "cpp-httplib": r"7httplib",
    "fmt": r"3fmt",
    "sleef": r"^_Sleef_",
    "cpuinfo": r"^_cpuinfo_",
    "pthreadpool": r"^_pthreadpool_",
}
_PATTERNS = {library: re.compile(pattern) for library, pattern in _LIBRARIES.items()}
# Left to be looked up when the module is loaded, as on a Mac: the interpreter has them.
_PYTHON = re.compile(r"^__?Py[A-Z_]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the objects want and nobody has: names of each library, and names that belong to none known here."""

    libraries: Mapping[str, tuple[str, ...]]
    unknown: tuple[str, ...]


def wanted_names(undefined: Iterable[str], *, had: Iterable[str]) -> Wanted:
    """Return which names are missing, by library.

    Args:
        undefined: what objects refer to.
        had: what objects, system libraries and libraries that are built here define.

    >>> wanted_names(["_malloc", "_Sleef_expd2_u10", "_PyErr_Clear", "_what"], had=["_malloc"])
    Wanted(libraries={'sleef': ('_Sleef_expd2_u10',)}, unknown=('_what',))
    """
    found: dict[str, list[str]] = defaultdict(list)
    unknown = []
    for name in sorted(set(undefined) - set(had)):
        library = library_of(name)
        if library:
            found[library].append(name)
        elif not _PYTHON.match(name):
            unknown.append(name)
    return Wanted(libraries={library: tuple(names) for library, names in sorted(found.items())}, unknown=tuple(unknown))


def library_of(name: str) -> str | None:
    """Return the library that a symbol is of: the first whose namespace or prefix stands in it.

    >>> library_of("__ZN4onnx7checker11check_modelERKN6google8protobuf7MessageE")
    'onnx'
    >>> library_of("__ZTVN6google8protobuf7MessageE")
    'protobuf'
    """
    places = {library: match.start() for library, pattern in _PATTERNS.items() if (match := pattern.search(name))}
    return min(places, key=lambda library: places[library], default=None)


def stand_in_source(names: Sequence[str], demangled: Sequence[str]) -> str:
    """Return assembler text (arm64, Mach-O) that defines the names: functions trap, data is 64 zero bytes.

    Args:
        demangled: each name as a person reads it, in the same order; a function has its parameters there.

    >>> print(stand_in_source(["_f"], ["f()"]))
    .section __TEXT,__text,regular,pure_instructions
    .globl _f
    .p2align 2
    _f:
      brk #0x1
    <BLANKLINE>
    """
    functions = [name for name, text in zip(names, demangled, strict=True) if _is_function(name, text)]
    data = [name for name in names if name not in set(functions)]
    lines = [".section __TEXT,__text,regular,pure_instructions"] if functions else []
    for name in functions:
        lines += [f".globl {_quoted(name)}", ".p2align 2", f"{_quoted(name)}:", "  brk #0x1"]
    lines += [".section __DATA,__data"] if data else []
    for name in data:
        lines += [f".globl {_quoted(name)}", ".p2align 3", f"{_quoted(name)}:", "  .space 64"]
    return "\n".join([*lines, ""])


def _is_function(name: str, demangled: str) -> bool:
    return not name.startswith("__Z") or "(" in demangled


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[\w.$]+", name) else f'"{name}"'
