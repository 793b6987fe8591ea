"""What the steps of a build are given, and what they hand on: it exists only if the step that makes it succeeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.console import Console
from mps_build.common.environment import Toolchain
from mps_build.common.receipts import Ledger
from mps_build.common.workspace import Workspace

from .backend import build_folder
from .build_request import BuildRequest


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
class BuildContext:
    """What every step of one build is given: what is requested, where it works, its receipts, where it reports."""

    request: BuildRequest
    workspace: Workspace
    ledger: Ledger
    console: Console

    def key(self, environment: BuildEnvironment) -> str:
        """Return the receipts' key of an environment: profile and Python, such as `release-3.12`."""
        return f"{self.request.profile}-{environment.python_version}"

    def build_folder(self, tree: SourceTree) -> Path:
        """Return the folder in which CMake and ninja work, which differs by back end and profile."""
        build = self.workspace.build / self.request.profile
        return build_folder(self.request.recipe.backend, source=tree.root, build=build)

    def compiled_folder(self, environment: BuildEnvironment) -> Path:
        """Return the folder of the wheel as it was compiled, before it is finished."""
        return self.workspace.root / "compiled" / self.key(environment)

    @property
    def overrides(self) -> Path:
        """The CMake file of ours that enters every configure of this build."""
        return self.workspace.root / "overrides.cmake"
