"""What steps hand on. Each value exists only if the step that makes it succeeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.environment import Toolchain


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
