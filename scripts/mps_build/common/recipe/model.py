"""What a recipe declares: which commit, on which host, with which environment, to which wheel."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StrictBool, StringConstraints

from ..git import address_fault


def _requirement(text: str) -> str:
    try:
        Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"is not a requirement: {error}") from error
    return text


def _release_or_word(text: str) -> str:
    if re.fullmatch(r"[a-z][a-z0-9-]*", text):
        return text
    try:
        Version(text)
    except ValueError as error:
        raise ValueError("is neither a version (2.6.0) nor a name (sample, nightly)") from error
    return text


def _address(text: str) -> str:
    if fault := address_fault(text):
        raise ValueError(fault)
    return text


Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
# Python makes no integer of more than 4,300 digits, and no version has that many.
DottedVersion = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,9}(\.[0-9]{1,9})*$")]
PythonVersion = Annotated[str, StringConstraints(pattern=r"^3\.[0-9]{1,4}t?$")]
PatchName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]*\.patch$")]
Line = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\n]+$")]
RequirementLine = Annotated[str, AfterValidator(_requirement)]
RecipeVersion = Annotated[str, AfterValidator(_release_or_word)]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BadXcode(_Declared):
    """Xcode versions known to break this release, `first` and `last` included; without `last`, all from there on."""

    first: DottedVersion
    last: DottedVersion | None = None
    reason: Line
    url: Line


class HostRequirements(_Declared):
    """What the building Mac must have; macOS 12.3 and Xcode 13.3.1 are the least for every recipe."""

    macos: DottedVersion
    """The oldest macOS that the oldest fitting Xcode runs on."""
    xcode: DottedVersion
    """The oldest Xcode that has the least SDK."""
    xcode_official: DottedVersion | None = None
    """The Xcode the official wheel was made with, where the wheel tells."""
    sdk: DottedVersion
    """The least macOS SDK that compiles this release."""
    sdk_evidence: Literal["official", "proved", "inferred", "unverified"]
    metal_compiler: Literal["required", "unused"]
    """`required`: the wheel holds precompiled Metal kernels, so `xcrun metal` must work."""
    metal_toolchain: StrictBool = False
    """The Metal Toolchain component of Xcode 26 is needed (for the Metal 4 copy of the kernels)."""
    bad_xcodes: tuple[BadXcode, ...] = ()


class Source(_Declared):
    """Where the source comes from; `embedded` lies in the folder of the recipe's name beside it."""

    kind: Literal["git", "embedded"] = "git"
    repository: Annotated[str, AfterValidator(_address)] | None = None


class Variable(_Declared):
    """One environment variable of the build, with the reason why it is set."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    value: str
    reason: Line


class Libomp(_Declared):
    """Where libomp.dylib and omp.h come from (never the one that happens to be on the host)."""

    package: str
    version: DottedVersion
    sha256: Sha256
    minos: DottedVersion


class WheelContents(_Declared):
    """What the wheel must hold, for the audit."""

    distribution: str = "torch"
    rules: Literal["torch", "declared"] = "torch"
    openmp: StrictBool
    metal_sections: dict[str, DottedVersion] = Field(default_factory=dict)
    """Metal libraries embedded in libtorch_cpu: section name and the macOS it is compiled for."""
    members: tuple[str, ...] = ()


class Gate(_Declared):
    """What configure must come out with."""

    use_mps: StrictBool = True
    can_compile_metal: StrictBool = False
    can_compile_metal_40: StrictBool = False
    cxx_standard: Literal["14", "17", "20"] | None = None
    """None: not evidenced for this release, so not compared."""
    openmp: StrictBool


class Cross(_Declared):
    """What a host that is not a Mac can build of this recipe, with zig: less, and declared as such.

    A recipe without it is built on a Mac only.
    """

    gate: Gate
    wheel: WheelContents


class Recipe(_Declared):
    """One release, from its commit to what its wheel must hold."""

    schema_version: Literal[1]
    version: RecipeVersion
    tag: str | None
    commit: Commit | None
    """The pin; None only where the caller gives the commit (nightly) or the source is embedded."""
    evidence: Literal["tag", "wheel", "caller", "none"]
    """What says that this commit is the release: its tag, the official wheel, or the caller."""
    unproved: tuple[Line, ...] = ()
    """Facts of this recipe that nobody evidences; the doctor reports each."""
    source: Source
    pythons: tuple[PythonVersion, ...] = Field(min_length=1)
    default_python: PythonVersion
    build_requirements: tuple[RequirementLine, ...] = ()
    """What the locks in build_recipes/locks/ are made from (`nox -s dev -- lock`)."""
    host: HostRequirements
    deployment_target: DottedVersion
    """X.0: pip matches no other macOS arm64 tag."""
    mps_floor: DottedVersion
    """The macOS from which MPS really works."""
    mps_message: DottedVersion | None
    """The macOS that torch's own message names; it is wrong in some releases."""
    backend: Literal["setuptools", "scikit-build-core"]
    environment: tuple[Variable, ...]
    patches: tuple[PatchName, ...] = ()
    """Applied in this order; each lies in patches/."""
    rehearsal_patches: tuple[PatchName, ...] = ()
    """Applied after `patches`, only where the release is rehearsed on Linux; never in a Mac's wheel."""
    companions: dict[str, DottedVersion] = Field(default_factory=dict)
    libomp: Libomp | None = None
    gate: Gate
    wheel: WheelContents
    cross: Cross | None = None

    @property
    def name(self) -> str:
        """The recipe's stem: `v2.6.0`, `nightly` or `sample`."""
        return f"v{self.version}" if self.version[0].isdecimal() else self.version

    @property
    def release(self) -> Version | None:
        """The version to compare with ranges; a nightly's is known only when built."""
        return Version(self.version) if self.version[0].isdecimal() else None

    @property
    def lock_name(self) -> str:
        """The file name of this recipe's lock, in build_recipes/locks/."""
        return f"{self.name}.txt"
