"""What a wheel's libraries take from macOS by name, of its system and of Metal's frameworks, and what is not here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.inspection.audit.symbols import Import, read_linked_names
from mps_build.inspection.limits import Malformed

from .table import Row, find_row

# What libc++, its ABI library and the unwinder of ours give; zig's archive of them is whole.
_CXX = ("/usr/lib/libc++.1.dylib", "/usr/lib/libc++abi.dylib")
_UNWINDER = "__Unwind_"
_SYSTEM = ("/usr/lib/", "/System/Library/")
_CLASS = "_OBJC_CLASS_$_"
_METHOD = re.compile(r"^[-+]\[\S+ (.+)\]$")
# What the frameworks that the software Metal stands for give; libSystem, libc++ and the wheel's own are the loader's.
_FRAMEWORKS = re.compile(r"/(?:Metal|MetalPerformanceShaders|MetalPerformanceShadersGraph|Foundation)\.framework/")
# Of CoreFoundation, what the compiler makes of literals.
_LITERALS = re.compile(r"^(?:___NS|_OBJC_CLASS_\$_NS|___CFConstantString)")
_RUNTIME = re.compile(r"/libobjc\.A\.dylib$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The imports of a wheel's libraries.

    Attributes:
        kinds: kind of the table (same, variadic, translated, ...) -> how many names.
        bound: (name, library, kind, why it is refused, else "") of each.
        missing: (name, library) of imports that no row is for; weak ones are left out, since they may be absent.
    """

    kinds: Mapping[str, int]
    bound: tuple[tuple[str, str, str, str], ...]
    missing: tuple[tuple[str, str], ...]


def _is_of_system(name: str, library: str) -> bool:
    """Whether the table must have an import: libc++ and the unwinder are libraries of ours."""
    return library.startswith(_SYSTEM) and library not in _CXX and not name.startswith(_UNWINDER)


def take(imports: Iterable[Import], rows: dict[str, Row]) -> Inventory:
    """Return the inventory of what is taken from macOS."""
    names = {(each.name, each.library, each.is_weak) for each in imports if _is_of_system(each.name, each.library)}
    bound, missing = [], []
    for name, library, is_weak in sorted(names):
        row = find_row(rows, name if name == "dyld_stub_binder" else name.removeprefix("_"))
        if row is not None:
            bound.append((name, library, row.kind, row.target if row.kind == "refused" else ""))
        elif not is_weak:
            missing.append((name, library))
    kinds = Counter(kind for _, _, kind, _ in bound)
    return Inventory(kinds=dict(sorted(kinds.items())), bound=tuple(bound), missing=tuple(missing))


def read_imports(site: Path) -> tuple[Import, ...]:
    """Return all imports of an unpacked wheel's libraries.

    Raises:
        UsageError: a library is damaged.
    """
    found: list[Import] = []
    for path in sorted(path for path in (*site.rglob("*.dylib"), *site.rglob("*-darwin.so")) if path.is_file()):
        try:
            found += read_linked_names(path.read_bytes()).imports
        except Malformed as error:
            raise UsageError(f"{path}: is damaged: {error}") from error
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Names:
    """Classes, other symbols, and selectors."""

    classes: frozenset[str]
    symbols: frozenset[str]
    selectors: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is taken and not there: a message to it, or its use, is an error that names it."""

    classes: tuple[str, ...]
    symbols: tuple[str, ...]
    selectors: tuple[str, ...]
    sent_selectors: int


def names_of(libraries: Iterable[Path]) -> Names:
    """Return what Mach-O libraries take from the frameworks that the software Metal stands for.

    Raises:
        Malformed: one is not a thin Mach-O.
    """
    classes: set[str] = set()
    symbols: set[str] = set()
    selectors: set[str] = set()
    for path in libraries:
        data = path.read_bytes()
        linked, own = read_linked_names(data), _selectors_of(data)
        # Beside them lie the names of what the library defines itself: methods, their properties, and variables.
        selectors |= {each for each in linked.selectors if "," not in each and each.removeprefix("_") not in own}
        for each in linked.imports:
            if not (_FRAMEWORKS.search(each.library) or _RUNTIME.search(each.library) or _LITERALS.match(each.name)):
                continue
            (classes if each.name.startswith(_CLASS) else symbols).add(each.name.removeprefix(_CLASS))
    return Names(frozenset(classes), frozenset(symbols), frozenset(selectors))


def lacking(wanted: Names, library: bytes) -> Lacking:
    """Return what a software Metal, a Mach-O library's bytes, does not have of what a wheel takes.

    Raises:
        Malformed: the library is not a thin Mach-O.
    """
    has = read_linked_names(library).exports
    answered = _selectors_of(library)
    return Lacking(
        classes=tuple(sorted(each for each in wanted.classes if _CLASS + each not in has)),
        symbols=tuple(sorted(each for each in wanted.symbols if each not in has)),
        selectors=tuple(sorted(wanted.selectors - answered)),
        sent_selectors=len(wanted.selectors),
    )


def _selectors_of(library: bytes) -> set[str]:
    return {found[1] for found in map(_METHOD.match, method_names(library)) if found}


def method_names(library: bytes) -> tuple[str, ...]:
    """Return the methods that a Mach-O library defines, as `-[Class selector]`: they are local symbols."""
    return tuple(text.decode("utf-8", "replace") for text in re.findall(rb"\0([-+]\[[^\0]{1,2000}\])(?=\0)", library))
