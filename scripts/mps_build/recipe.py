"""What a recipe declares: which commit, on which host, with which environment, to which wheel."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DottedVersion = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
PythonVersion = Annotated[str, StringConstraints(pattern=r"^3\.\d+t?$")]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BadXcode(_Declared):
    """Xcode versions known to break this release: from `first` to `last`, both included."""

    first: DottedVersion
    last: DottedVersion
    reason: str
    url: str


class HostRequirements(_Declared):
    """What the building Mac must have; the mission's floor (12.3, 13.3.1) holds besides."""

    macos: DottedVersion
    xcode: DottedVersion
    xcode_official: DottedVersion | None = None
    sdk: DottedVersion
    sdk_evidence: Literal["official", "proved", "inferred", "unverified"]
    metal_compiler: Literal["required", "unused"]
    metal_toolchain: bool = False
    bad_xcodes: tuple[BadXcode, ...] = ()


class Source(_Declared):
    """Where the source comes from; `embedded` lies in the folder of the recipe's name beside it."""

    kind: Literal["git", "embedded"] = "git"
    repository: str | None = None


class Variable(_Declared):
    """One environment variable of the build, with the reason why it is set."""

    name: Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
    value: str
    reason: str


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
    openmp: bool
    metal_sections: dict[str, DottedVersion] = Field(default_factory=dict)
    members: tuple[str, ...] = ()


class Gate(_Declared):
    """What configure must come out with."""

    use_mps: bool = True
    can_compile_metal: bool = False
    can_compile_metal_40: bool = False
    cxx_standard: Literal["14", "17", "20"] | None = None
    openmp: bool


class Recipe(_Declared):
    """One release, from its commit to what its wheel must hold."""

    schema_version: Literal[1]
    version: str
    tag: str | None
    commit: Commit | None
    evidence: Literal["tag", "wheel", "caller", "none"]
    unproved: tuple[str, ...] = ()
    source: Source
    pythons: tuple[PythonVersion, ...] = Field(min_length=1)
    default_python: PythonVersion
    host: HostRequirements
    deployment_target: DottedVersion
    mps_floor: DottedVersion
    mps_message: DottedVersion | None
    backend: Literal["setuptools", "scikit-build-core"]
    environment: tuple[Variable, ...]
    patches: tuple[str, ...] = ()
    companions: dict[str, DottedVersion] = Field(default_factory=dict)
    libomp: Libomp | None = None
    gate: Gate
    wheel: WheelContents

    @property
    def name(self) -> str:
        """The recipe's stem: `v2.6.0`, `nightly` or `sample`."""
        return f"v{self.version}" if re.match(r"\d", self.version) else self.version

    @property
    def release(self) -> Version | None:
        """The version to compare with ranges; a nightly's is known only when built."""
        return Version(self.version) if re.match(r"\d", self.version) else None
