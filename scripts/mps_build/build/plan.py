"""What one call of build_wheel asks for, and what follows from it without doing anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.interpreters import FoundPython, PythonSearch, find_python
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.recipe.model import Gate, Libomp, Recipe, WheelContents
from mps_build.inspection.audit import Expectation

from .compiler_cache.store_relay import Store
from .options import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One call of build_wheel, checked: which recipe, for which Pythons, how.

    Attributes:
        origin: where the source comes from: git (`repository` is an address), a release's tarball, or
            the caller's own tree, built as it stands (`repository` is a path).
        commit: the recipe's, or the one given at the command line (nightly, --ref); None for a tarball.
        gate: the recipe's, less what --allow-jit-shaders and --without-metal4 lift.
        contents: what the wheel must hold: the recipe's, or its cross part's.
        interpreters: version -> the Python that makes the build environment; empty finds it when it is needed.
        cross: zig builds for macOS on another system; the toolchain then follows from the environment.
        jobs: compilers at once.
        label: a word of the caller's in the wheel's local version (`--version-label`).
        launcher: the compiler cache (ccache, sccache) in front of every compiler.
        cache_variables, cache_dropped: how it is set, and what of the caller's settings is left out.
        cache_upstream: the fleet's Redis, which a relay of ours stands in front of while the build runs.
        host: what the receipt says of the machine.
        recording: what its probes answered, scrubbed: a file that replays anywhere.
    """

    recipe: Recipe
    pythons: tuple[str, ...]
    origin: Literal["git", "tarball", "tree"]
    repository: str
    commit: str | None
    profile: Profile
    gate: Gate
    contents: WheelContents
    toolchain: Toolchain
    cross: bool
    jobs: int
    wheelhouse: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    extra_patches: tuple[Path, ...] = ()
    label: str | None = None
    lifted: tuple[str, ...] = ()
    launcher: Path | None = None
    cache_variables: Mapping[str, str] = field(default_factory=dict)
    cache_dropped: tuple[str, ...] = ()
    cache_warnings: tuple[str, ...] = ()
    cache_upstream: Store | None = None
    offline: bool = False
    host: Mapping[str, Any] = field(default_factory=dict)
    recording: Mapping[str, Any] = field(default_factory=dict)
    interpreters: Mapping[str, PythonSearch] = field(default_factory=dict)

    @property
    def tag(self) -> str | None:
        """The tag to compare with: only for the recipe's own commit, from the recipe's own repository."""
        own = self.commit == self.recipe.commit and self.repository == self.recipe.source.repository
        return self.recipe.tag if own or self.recipe.source.kind == "embedded" else None

    @property
    def bundled_libomp(self) -> Libomp | None:
        """The libomp that the wheel brings along, if it is built with OpenMP, for macOS."""
        return self.recipe.libomp if self.gate.openmp and self.toolchain.name == "xcode" else None

    @property
    def bundled(self) -> dict[str, str]:
        """Libraries that the wheel copies in, name -> "version sha256"."""
        libomp = self.bundled_libomp
        return {libomp.package: f"{libomp.version} {libomp.sha256}"} if libomp else {}

    @property
    def patches(self) -> tuple[Path, ...]:
        """All patches, in order: the recipe's, then the caller's; a caller's own tree gets none."""
        if self.origin == "tree":
            return ()
        return tuple(patches_root() / name for name in self.recipe.patches) + self.extra_patches

    def interpreter(self, version: str) -> FoundPython:
        """Return the Python that makes the environment for a version.

        Raises:
            BuildEnvironmentError: there is none.
        """
        search = self.interpreters.get(version)
        return search.result() if search else find_python(version, environ=fetch_environ(os.environ))

    def expectation(self) -> Expectation:
        """Return what the audit is given besides the wheel's name."""
        contents, torch = self.contents, self.contents.rules == "torch"
        return Expectation(
            distribution=contents.distribution,
            deployment_target=self.recipe.deployment_target,
            metal_sections=dict(contents.metal_sections),
            openmp=contents.openmp if torch else None,
            commit=self.commit if torch else None,
            members=contents.members,
            allow_jit_shaders="--allow-jit-shaders" in self.lifted,
            without_metal4="--without-metal4" in self.lifted,
        )

    def version(self, *, dirty: bool) -> str | None:
        """Return the version the wheel is built as; None for a project that takes none from outside."""
        if self.recipe.wheel.distribution != "torch" or self.recipe.release is None:
            return None
        label = local_label(self.commit, dirty=dirty, patched=bool(self.extra_patches), label=self.label)
        return f"{self.recipe.version}+{label}"


def gate_of(gate: Gate, *, allow_jit_shaders: bool, without_metal4: bool) -> Gate:
    """Return a gate with the lifted keys taken off."""
    lifted: dict[str, bool] = {}
    if allow_jit_shaders:
        lifted |= {"can_compile_metal": False, "can_compile_metal_40": False}
    if without_metal4:
        lifted["can_compile_metal_40"] = False
    return gate.model_copy(update=lifted)


def local_label(commit: str | None, *, dirty: bool, patched: bool, label: str | None) -> str:
    """Return the local version of a self-built wheel: what it is made of, in PEP 440's letters.

    >>> local_label("1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340", dirty=False, patched=False, label=None)
    'mps.g1eba9b3'
    >>> local_label("1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340", dirty=True, patched=True, label="topk")
    'mps.g1eba9b3.patched.dirty.topk'
    """
    parts = ["mps", f"g{commit[:7]}" if commit else "tarball"]
    parts += ["patched"] if patched else []
    parts += ["dirty"] if dirty else []
    parts += [label] if label else []
    return ".".join(parts)
