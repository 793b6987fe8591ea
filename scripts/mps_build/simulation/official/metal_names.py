"""What a wheel's libraries ask of Metal's frameworks by name, and what of it the software Metal does not have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mps_build.inspection.audit.linked_names import read_linked_names

_CLASS = "_OBJC_CLASS_$_"
_METHOD = re.compile(r"^[-+]\[\S+ (.+)\]$")
# What the frameworks that the software Metal stands for give; libSystem, libc++ and the wheel's own are the loader's.
_FRAMEWORKS = re.compile(r"/(?:Metal|MetalPerformanceShaders|MetalPerformanceShadersGraph|Foundation)\.framework/")
# Of CoreFoundation, what the compiler makes of literals.
_LITERALS = re.compile(r"^(?:___NS|_OBJC_CLASS_\$_NS|___CFConstantString)")
_RUNTIME = re.compile(r"/libobjc\.A\.dylib$")


@dataclass(frozen=True, slots=True)
class Names:
    """Classes, other symbols, and selectors."""

    classes: frozenset[str]
    symbols: frozenset[str]
    selectors: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is asked for and not there: a message to it, or its use, is an error that names it."""

    classes: tuple[str, ...]
    symbols: tuple[str, ...]
    selectors: tuple[str, ...]
    asked_selectors: int

    @property
    def share(self) -> float:
        """Of the selectors that the wheel sends, the share (0 to 1) that some class answers."""
        return 1 - len(self.selectors) / self.asked_selectors if self.asked_selectors else 1.0


def names_of(libraries: Iterable[Path]) -> Names:
    """Return what Mach-O libraries take from the frameworks that the software Metal stands for.

    Raises:
        Malformed: one is not a thin Mach-O.
    """
    classes: set[str] = set()
    symbols: set[str] = set()
    selectors: set[str] = set()
    for path in libraries:
        linked = read_linked_names(path.read_bytes())
        selectors |= linked.selectors
        for each in linked.imports:
            if not (_FRAMEWORKS.search(each.library) or _RUNTIME.search(each.library) or _LITERALS.match(each.name)):
                continue
            (classes if each.name.startswith(_CLASS) else symbols).add(each.name.removeprefix(_CLASS))
    return Names(frozenset(classes), frozenset(symbols), frozenset(selectors))


def lacking(wanted: Names, library: bytes) -> Lacking:
    """Return what a software Metal, a Mach-O library's bytes, does not have of what is wanted.

    Raises:
        Malformed: the library is not a thin Mach-O.
    """
    has = read_linked_names(library).exports
    answered = {found[1] for found in map(_METHOD.match, method_names(library)) if found}
    return Lacking(
        classes=tuple(sorted(each for each in wanted.classes if _CLASS + each not in has)),
        symbols=tuple(sorted(each for each in wanted.symbols if each not in has)),
        selectors=tuple(sorted(wanted.selectors - answered)),
        asked_selectors=len(wanted.selectors),
    )


def method_names(library: bytes) -> tuple[str, ...]:
    """Return the methods that a Mach-O library defines, as `-[Class selector]`: they are local symbols."""
    return tuple(text.decode("utf-8", "replace") for text in re.findall(rb"\0([-+]\[[^\0]{1,2000}\])(?=\0)", library))
