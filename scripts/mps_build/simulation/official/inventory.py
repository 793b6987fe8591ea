"""What the libraries of a wheel take from macOS, and how each name is bound here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.inspection.audit.linked_names import Import, read_linked_names
from mps_build.inspection.malformed import Malformed

from .table import Row, find_row

# What libc++, its ABI library and the unwinder of ours give; zig's archive of them is whole.
_CXX = ("/usr/lib/libc++.1.dylib", "/usr/lib/libc++abi.dylib")
_UNWINDER = "__Unwind_"
_SYSTEM = ("/usr/lib/", "/System/Library/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The imports of a wheel's libraries.

    Attributes:
        kinds: kind of the table (same, variadic, translated, ...) -> how many names.
        missing: (name, library) of imports that no row is for; weak ones are left out, since they may be absent.
    """

    kinds: Mapping[str, int]
    missing: tuple[tuple[str, str], ...]


def is_of_system(name: str, library: str) -> bool:
    """Whether the table must have an import: libc++ and the unwinder are libraries of ours."""
    return library.startswith(_SYSTEM) and library not in _CXX and not name.startswith(_UNWINDER)


def take(imports: Iterable[Import], rows: dict[str, Row]) -> Inventory:
    """Return the inventory of what is taken from macOS."""
    names = {(each.name, each.library, each.is_weak) for each in imports if is_of_system(each.name, each.library)}
    kinds: Counter[str] = Counter()
    missing = []
    for name, library, is_weak in sorted(names):
        row = find_row(rows, name if name == "dyld_stub_binder" else name.removeprefix("_"))
        if row is not None:
            kinds[row.kind] += 1
        elif not is_weak:
            missing.append((name, library))
    return Inventory(kinds=dict(sorted(kinds.items())), missing=tuple(missing))


def libraries_of(site: Path) -> tuple[Path, ...]:
    """Return the Mach-O files of an unpacked wheel."""
    found = [*site.rglob("*.dylib"), *site.rglob("*-darwin.so")]
    return tuple(sorted(path for path in found if path.is_file()))


def read_imports(site: Path) -> tuple[Import, ...]:
    """Return all imports of an unpacked wheel's libraries.

    Raises:
        UsageError: a library is damaged.
    """
    found: list[Import] = []
    for path in libraries_of(site):
        try:
            found += read_linked_names(path.read_bytes()).imports
        except Malformed as error:
            raise UsageError(f"{path}: is damaged: {error}") from error
    return tuple(found)
