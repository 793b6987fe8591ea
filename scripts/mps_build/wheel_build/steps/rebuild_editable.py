"""Editable -> the same, made anew after an edit: ninja compiles what depends on it, and nothing is packed."""

from __future__ import annotations

import shutil
from pathlib import Path

from mps_build.common.reporter import Reporter

from ..artifacts import Editable
from ..ninja import run_build, run_logged_or_fail

_INSTALLED = ".mps-build-installed"


def rebuild(editable: Editable, *, log: Path, reporter: Reporter) -> int:
    """Make the tree anew after an edit, and return how many steps ninja had.

    Raises:
        CompileError: it does not compile; what was importable before stays so.
    """
    steps = run_build(editable.remake, log=log, reporter=reporter, title="Rebuild")
    if editable.install and not _installed(editable.build):
        run_logged_or_fail(editable.install, log)
        (editable.build / _INSTALLED).touch()
    for library, extension in stale_copies(editable.root, editable.build):
        shutil.copy2(library, extension)
    if editable.extensions and (stale := stale_sources(editable.root, editable.build)):
        reporter.line(f"setup.py compiles again: {', '.join(stale)}")
        run_build(editable.extensions, log=log.with_suffix(".extensions.log"), reporter=reporter, title="Rebuild")
    return steps


def _installed(build: Path) -> bool:
    """True if nothing was built since the last installation."""
    marker, log = build / _INSTALLED, build / ".ninja_log"
    return marker.is_file() and log.is_file() and marker.stat().st_mtime_ns > log.stat().st_mtime_ns


def stale_sources(root: Path, build: Path) -> tuple[str, ...]:
    """Return the files that setuptools compiled and that were edited since: ninja knows nothing of them."""
    stale = set()
    for compiled in build.glob("temp.*/**/*.o"):
        inner = Path(*compiled.relative_to(build).parts[1:])
        for suffix in (".c", ".cpp", ".cc", ".mm"):
            source = root / inner.with_suffix(suffix)
            if source.is_file() and source.stat().st_mtime_ns > compiled.stat().st_mtime_ns:
                stale.add(str(inner.with_suffix(suffix)))
    return tuple(sorted(stale))


def stale_copies(root: Path, build: Path) -> tuple[tuple[Path, Path], ...]:
    """Return (library, extension module) where the second is setup.py's copy of the first, and older.

    functorch/functorch.so is ninja's; it is imported as functorch/_C.so.
    """
    stale = []
    for made in build.glob("lib.*/*/*.so"):
        extension = root.joinpath(*made.relative_to(build).parts[1:])
        library = extension.parent / f"{extension.parent.name}.so"
        both = library.is_file() and extension.is_file() and library != extension
        if both and library.stat().st_mtime_ns > extension.stat().st_mtime_ns:
            stale.append((library, extension))
    return tuple(stale)
