"""Text stubs (.tbd) of macOS's libraries, from what an official wheel imports: a linker then knows these names only.

So a stub is a check too: a name that the official wheel does not import stops the link.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mps_build.common.files import write_whole

from .model import load_frameworks, version

# Install name -> the library's versions by release, and its symbols by the releases that import them ("2.6.0 2.13.0").
IMPORTS = Path(__file__).with_name("imports.json")
_CLASS = "_OBJC_CLASS_$_"
_META = "_OBJC_METACLASS_$_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stubs:
    """Folders for `-F` (frameworks) and `-L` (libraries)."""

    frameworks: Path
    libraries: Path


def known_releases() -> tuple[str, ...]:
    """Return the releases whose official wheels' imports are on record, oldest first."""
    return tuple(sorted({release for row in _imports().values() for release in row["versions"]}, key=version))


def imports_of(release: str) -> dict[str, dict[str, Any]]:
    """Return install name -> {current, compatibility, weak, symbols} of the release on record that is nearest below.

    2.7.1 is answered by 2.6.0's: what a newer release adds is in the declarations.
    """
    names = known_releases()
    older = [name for name in names if version(name) <= version(release)]
    chosen = (older or [names[0]])[-1]
    return {
        library: {
            **row["versions"][chosen],
            "symbols": sorted(
                name for group, found in row["symbols"].items() if chosen in group.split() for name in found
            ),
        }
        for library, row in _imports().items()
        if chosen in row["versions"]
    }


@cache
def _imports() -> dict[str, dict[str, Any]]:
    read: dict[str, dict[str, Any]] = json.loads(IMPORTS.read_text(encoding="utf-8"))
    return read


def write_stubs(
    folder: Path, *, release: str, extra: Mapping[str, Iterable[str]] | None = None, declared: bool = False
) -> Stubs:
    """Write a stub for each library that the official wheel of `release` imports from.

    Frameworks come to `folder`/System/Library/Frameworks/X.framework/X.tbd, the others to `folder`/usr/lib.

    Args:
        extra: more names for a library (its file's name without .dylib: "libc++.1", "Metal"), with their underscore.
        declared: True adds what our declarations name beyond the wheel's imports, for code that is newer than it.
    """
    frameworks, libraries = folder / "System/Library/Frameworks", folder / "usr/lib"
    more = {name: set(names) for name, names in (extra or {}).items()}
    if declared:
        for name, names in _declared().items():
            more.setdefault(name, set()).update(names)
    for install_name, row in imports_of(release).items():
        name = install_name.rsplit("/", 1)[1].removesuffix(".dylib")
        text = tbd(install_name, row, more.get(name, ()))
        if ".framework/" in install_name:
            write_whole(frameworks / f"{name}.framework" / f"{name}.tbd", text)
        else:
            for each in {name, *_other_names(name)}:
                write_whole(libraries / f"{each}.tbd", text)
    return Stubs(frameworks=frameworks, libraries=libraries)


def _other_names(name: str) -> tuple[str, ...]:
    return {"libSystem.B": ("libSystem",), "libc++.1": ("libc++",), "libobjc.A": ("libobjc",)}.get(name, ())


def tbd(install_name: str, row: Mapping[str, Any], more: Iterable[str] = ()) -> str:
    """Return the text of one stub (tapi, version 4)."""
    names = {*row["symbols"], *more}
    classes = {name.removeprefix(_CLASS) for name in names if name.startswith(_CLASS)}
    classes |= {name.removeprefix(_META) for name in names if name.startswith(_META)}
    plain = {name for name in names if not name.startswith((_CLASS, _META))}
    lines = [
        "--- !tapi-tbd",
        "tbd-version: 4",
        "targets: [ arm64-macos ]",
        f"install-name: '{install_name}'",
        f"current-version: {row['current']}",
        f"compatibility-version: {row['compatibility']}",
        "exports:",
        "  - targets: [ arm64-macos ]",
    ]
    if plain:
        lines.append(f"    symbols: [ {', '.join(_quoted(name) for name in sorted(plain))} ]")
    if classes:
        lines.append(f"    objc-classes: [ {', '.join(sorted(classes))} ]")
    if not plain and not classes:
        lines = lines[:-2]
    return "\n".join([*lines, "...", ""])


def _quoted(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f"'{name}'"


def _declared() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for framework in load_frameworks():
        home = "libSystem.B" if framework.name == "os" else framework.name
        for each in framework.classes:
            found.setdefault(each.library or home, set()).add(_CLASS + each.name)
        for function in framework.functions:
            found.setdefault(home, set()).add(f"_{function.name}")
        for name in framework.data:
            found.setdefault(home, set()).add(f"_{name}")
    return found
