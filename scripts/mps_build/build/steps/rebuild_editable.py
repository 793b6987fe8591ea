"""Editable -> the same, made anew after an edit: ninja compiles what depends on it, and nothing is packed."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.errors import CompileError
from mps_build.common.process import Command, CommandFailed, Reporter, run_logged

from .compile_wheel import run_build

_INSTALLED = ".mps-build-installed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Editable:
    """A tree that is imported where it lies, and how it is made anew.

    Attributes:
        python: the interpreter that imports it.
        remake: ninja, which compiles what an edit touched and nothing else.
        install: what brings it to where it is imported from, if ninja's own `install` does not.
        extensions: setup.py's part, for the few files that ninja knows nothing of; None from 2.14 on.
    """

    root: Path
    build: Path
    python: Path
    remake: Command
    install: Command | None
    extensions: Command | None

    def document(self) -> dict[str, Any]:
        """Return it as JSON, to be read by `editable_of`."""
        commands = {"remake": self.remake, "install": self.install, "extensions": self.extensions}
        paths = {"root": str(self.root), "build": str(self.build), "python": str(self.python)}
        environ = dict(self.remake.environ or {})
        return {
            **paths,
            "environ": environ,
            **{name: _told(command, environ) for name, command in commands.items()},
        }


def editable_of(document: Mapping[str, Any]) -> Editable:
    """Return what `Editable.document` told."""
    environ = document["environ"]

    def command(name: str) -> Command | None:
        told = document[name]
        if told is None:
            return None
        return Command(
            argv=tuple(told["argv"]),
            cwd=Path(told["cwd"]) if told["cwd"] else None,
            environ={**environ, **told["more"]},
        )

    remake = command("remake")
    assert remake is not None
    return Editable(
        root=Path(document["root"]),
        build=Path(document["build"]),
        python=Path(document["python"]),
        remake=remake,
        install=command("install"),
        extensions=command("extensions"),
    )


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
        reporter.line(f"setup.py compiles anew: {', '.join(stale)}")
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


def run_logged_or_fail(command: Command, log: Path) -> None:
    """Run a command; raise a CompileError with its last lines if it fails."""
    try:
        run_logged(command, log=log)
    except CommandFailed as failure:
        text = "\n".join(failure.tail[-6:])
        raise CompileError(f"{failure}:\n{text}", hint=f"the whole output is in {log}") from failure


def _told(command: Command | None, environ: Mapping[str, str]) -> dict[str, Any] | None:
    if command is None:
        return None
    more = {name: value for name, value in (command.environ or {}).items() if environ.get(name) != value}
    return {"argv": list(command.argv), "cwd": str(command.cwd) if command.cwd else None, "more": more}
