"""What one call of build_wheel asks for, and what follows from it without doing anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mps_build.common.environment import Toolchain, fetch_environ
from mps_build.common.errors import HostError
from mps_build.common.interpreters import FoundPython, PythonSearch, find_python
from mps_build.common.recipe.catalogue import patches_root
from mps_build.common.recipe.model import Gate, Libomp, Recipe, WheelContents
from mps_build.inspection.audit import Expectation

from .compiler_cache.store import CacheChoice
from .options import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """Which source is built: read by the fetch and by the patches.

    Attributes:
        origin: where the source comes from: git (`repository` is an address), a release's tarball, or
            the caller's own tree, built as it stands (`repository` is a path).
        commit: the recipe's, or the one given at the command line (nightly, --ref); None for a tarball.
        extra_patches: the caller's, applied after the recipe's.
    """

    recipe: Recipe
    origin: Literal["git", "tarball", "tree"]
    repository: str
    commit: str | None
    extra_patches: tuple[Path, ...] = ()

    @property
    def tag(self) -> str | None:
        """The tag to compare with: only for the recipe's own commit, from the recipe's own repository."""
        own = self.commit == self.recipe.commit and self.repository == self.recipe.source.repository
        return self.recipe.tag if own or self.recipe.source.kind == "embedded" else None

    @property
    def patches(self) -> tuple[Path, ...]:
        """All patches, in order: the recipe's, then the caller's; a caller's own tree gets none."""
        if self.origin == "tree":
            return ()
        return tuple(patches_root() / name for name in self.recipe.patches) + self.extra_patches


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerRequest:
    """With what the source is compiled: read by the environment, by configure and by compile.

    Attributes:
        cross: zig builds for macOS on another system; the toolchain then follows from the environment.
        jobs: compilers at once.
        settings: variables of the caller's (`--set`), name -> value.
        launcher: the compiler cache (ccache, sccache) in front of every compiler.
        cache: how that cache is set.
        interpreters: version -> the Python that makes the build environment; empty finds it when it is needed.
    """

    toolchain: Toolchain
    cross: bool
    jobs: int
    settings: Mapping[str, str] = field(default_factory=dict)
    launcher: Path | None = None
    cache: CacheChoice = field(default_factory=CacheChoice)
    interpreters: Mapping[str, PythonSearch] = field(default_factory=dict)

    def interpreter(self, version: str) -> FoundPython:
        """Return the Python that makes the environment for a version ("3.12", "3.13t").

        Raises:
            BuildEnvironmentError: there is none.
        """
        search = self.interpreters.get(version)
        return search.result() if search else find_python(version, environ=fetch_environ(os.environ))


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelRequest:
    """What the wheel must be: read by the gate, the audit and the delivery.

    Attributes:
        gate: the recipe's, less what --allow-jit-shaders and --without-metal4 lift.
        contents: what the wheel must hold: the recipe's, or its cross part's.
        folder: where it is delivered (`--wheelhouse`).
        label: a word of the caller's in the wheel's local version (`--version-label`).
        lifted: the options that lift a requirement, as they were given.
    """

    gate: Gate
    contents: WheelContents
    folder: Path
    label: str | None = None
    lifted: tuple[str, ...] = ()

    def lifts(self, option: str) -> bool:
        """Return whether an option that lifts a requirement was given, such as `--without-metal4`."""
        return option in self.lifted


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecord:
    """The machine as the receipt describes it.

    Attributes:
        facts: what the doctor found, by the names of its JSON.
        recording: what the probes answered, scrubbed: a file that replays anywhere.
        refusal: why it cannot build; only a dry run goes on with one.
    """

    facts: Mapping[str, Any] = field(default_factory=dict)
    recording: Mapping[str, Any] = field(default_factory=dict)
    refusal: HostError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """One call of build_wheel, checked: which recipe, for which Pythons, and a part for each group of steps.

    Attributes:
        profile: release or develop.
        offline: nothing is fetched; what the cache lacks is an error.
    """

    recipe: Recipe
    pythons: tuple[str, ...]
    profile: Profile
    source: SourceRequest
    compilers: CompilerRequest
    wheel: WheelRequest
    host: HostRecord = field(default_factory=HostRecord)
    offline: bool = False

    @property
    def bundled_libomp(self) -> Libomp | None:
        """The libomp that the wheel bundles, if it is built with OpenMP, for macOS."""
        bundles = self.wheel.gate.openmp and self.compilers.toolchain.name == "xcode"
        return self.recipe.libomp if bundles else None

    @property
    def bundled(self) -> dict[str, str]:
        """Libraries that the wheel copies in, name -> "version sha256"."""
        libomp = self.bundled_libomp
        return {libomp.package: f"{libomp.version} {libomp.sha256}"} if libomp else {}

    def expectation(self) -> Expectation:
        """Return what the audit is given besides the wheel's name."""
        contents, torch = self.wheel.contents, self.wheel.contents.rules == "torch"
        return Expectation(
            distribution=contents.distribution,
            deployment_target=self.recipe.deployment_target,
            metal_sections=dict(contents.metal_sections),
            openmp=contents.openmp if torch else None,
            commit=self.source.commit if torch else None,
            members=contents.members,
            allow_jit_shaders=self.wheel.lifts("--allow-jit-shaders"),
            without_metal4=self.wheel.lifts("--without-metal4"),
        )

    def version(self, *, dirty: bool) -> str | None:
        """Return the version the wheel is built as; None for a project that takes none from outside."""
        if self.recipe.wheel.distribution != "torch" or self.recipe.release is None:
            return None
        patched = bool(self.source.extra_patches)
        label = local_label(self.source.commit, dirty=dirty, patched=patched, label=self.wheel.label)
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
    """Return the local version of a self-built wheel: what it is made of, in PEP 440's characters.

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
