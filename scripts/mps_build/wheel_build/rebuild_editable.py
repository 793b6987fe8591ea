"""An editable build that stands: remembered between two runs, and made anew after an edit by ninja alone.

Light on purpose: the loop of edit and import must not wait for recipes to be read and hosts to be probed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.process import Command
from mps_build.common.receipts import digest_of
from mps_build.common.reporting import Reporter
from mps_build.common.workspace import Workspace, work_folder

from .ninja import run_build, run_logged_or_fail
from .options import BuildOptions

_SCHEMA = 1
# What neither the tree nor the venv depends on.
_PASSING = ("jobs", "offline", "wheelhouse", "given")
_OF_THE_CALLER = ("DEVELOPER_DIR", "SDKROOT", "MACOSX_DEPLOYMENT_TARGET")
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
            **{name: _summary(command, environ) for name, command in commands.items()},
        }


def editable_of(document: Mapping[str, Any]) -> Editable:
    """Return the build that `Editable.document` described."""
    environ = document["environ"]

    def command(name: str) -> Command | None:
        row = document[name]
        if row is None:
            return None
        return Command(
            argv=tuple(row["argv"]),
            cwd=Path(row["cwd"]) if row["cwd"] else None,
            environ={**environ, **row["more"]},
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


def _summary(command: Command | None, environ: Mapping[str, str]) -> dict[str, Any] | None:
    if command is None:
        return None
    more = {name: value for name, value in (command.environ or {}).items() if environ.get(name) != value}
    return {"argv": list(command.argv), "cwd": str(command.cwd) if command.cwd else None, "more": more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """One editable build that stands: where it works, what it is, and how it is made anew."""

    workspace: Workspace
    editable: Editable
    module: str
    recipe: str


def remember(options: BuildOptions, found: Remembered, *, watched: Iterable[Path]) -> None:
    """Keep a build for the next run with the same options.

    Args:
        watched: files whose change means that the whole way must be gone again: recipe, lock, patches, Xcode.
    """
    document = {
        "schema": _SCHEMA,
        "tool": __version__,
        "workspace": str(found.workspace.root),
        "module": found.module,
        "recipe": found.recipe,
        "watched": {str(path): _stamp(path) for path in watched},
        "editable": found.editable.document(),
    }
    write_whole(_place(options), json.dumps(document, indent=2) + "\n")


def recall(options: BuildOptions) -> Remembered | None:
    """Return the build that these options made last time, if nothing that it rests on has changed."""
    try:
        document = read_json(_place(options))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or (document.get("schema"), document.get("tool")) != (_SCHEMA, __version__):
        return None
    if any(_stamp(Path(path)) != stamp for path, stamp in document["watched"].items()):
        return None
    editable = editable_of(document["editable"])
    # The interpreter is a link, which in a rehearsal points into the root.
    if not (os.path.lexists(editable.python) and (editable.build / "build.ninja").is_file()):
        return None
    return Remembered(
        workspace=Workspace(root=Path(document["workspace"])),
        editable=editable,
        module=document["module"],
        recipe=document["recipe"],
    )


def forget(options: BuildOptions) -> None:
    """Let the next run go the whole way: this one began it."""
    _place(options).unlink(missing_ok=True)


def _place(options: BuildOptions) -> Path:
    given: Mapping[str, Any] = {
        name: _plain(value) for name, value in asdict(options).items() if name not in _PASSING and value is not None
    }
    where = {name: os.environ[name] for name in _OF_THE_CALLER if name in os.environ}
    return work_folder() / "editable" / f"{digest_of([given, where, str(Path.cwd())])[:16]}.json"


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _stamp(path: Path) -> list[int] | None:
    """Return what changes with a file: time and size; None where it is not there."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return [status.st_mtime_ns, status.st_size]


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
