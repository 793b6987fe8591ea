"""What steps hand on. Each value exists only if the step that makes it succeeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.environment import Toolchain
from mps_build.common.process import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """A source tree at the pinned commit, submodules included.

    `commit` is None for a tarball. `dirty` names changed files and `state` is a digest of
    those changes: empty for a tree we checked out ourselves.
    """

    root: Path
    origin: str
    commit: str | None
    submodules: Mapping[str, str]
    epoch: int
    dirty: tuple[str, ...] = ()
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildEnvironment:
    """A venv with the locked build requirements, and the whole environment that the build sees."""

    python: Path
    python_version: str
    environ: Mapping[str, str]
    reasons: Mapping[str, str]
    tools: Mapping[str, str]
    toolchain: Toolchain


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A finished wheel file."""

    path: Path
    size: int
    sha256: str


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
