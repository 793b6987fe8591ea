"""What a torch release must hold, by its version (evidence: the 18 official wheels of 1.12 to 2.15).

The findings that official wheels of old releases are known for are data, in official_exceptions.yaml.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mps_build.common import strict_yaml
from mps_build.common.wheels.naming import normalise, release_of

from .model import Expectation, Finding

Version = tuple[int, ...]
TORCH_CPU = "torch/lib/libtorch_cpu.dylib"
# What another distribution may take from an installed torch instead of bringing it along.
TORCH_LIBRARIES = (
    *(f"libtorch{part}.dylib" for part in ("", "_cpu", "_python", "_global_deps")),
    "libc10.dylib",
    "libshm.dylib",
)
# They use an installed torch, whether their METADATA asks for one or not (torchaudio 2.11 does not).
COMPANIONS = frozenset({"torchvision", "torchaudio", "torchtext", "torchcodec"})
NEWEST_KNOWN: Version = (2, 15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the rules demand of one wheel.

    `metal` maps a section to the OS it must be compiled for, `tolerated` to the reason why its absence is
    no error; `is_torch` turns torch's own rules on.
    """

    is_torch: bool
    release: Version = ()
    metal: Mapping[str, Version] = field(default_factory=dict)
    allow_jit_shaders: bool = False
    without_metal4: bool = False
    least_sdk: Version | None = None
    openmp: bool | None = None
    commit: str | None = None
    members: tuple[str, ...] = ()
    external_libraries: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    deployment_target: Version | None = None
    is_declared: bool = False


def wanted_of(distribution: str, version: str, expectation: Expectation | None, requires: tuple[str, ...]) -> Wanted:
    """Return what a wheel of this name must hold; `requires` are its Requires-Dist lines."""
    release = release_of(version)
    is_torch = normalise(distribution) == "torch"
    requested = expectation or Expectation(distribution=distribution)
    if requested.metal_sections is not None:
        metal: dict[str, Version] = {name: release_of(os) for name, os in requested.metal_sections.items()}
    else:
        metal = metal_sections_of(release) if is_torch else {}
    names = (re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line.strip()) for line in requires)
    needs_torch = normalise(distribution) in COMPANIONS or any(
        name is not None and normalise(name[0]) == "torch" for name in names
    )
    external = requested.external_libraries or (TORCH_LIBRARIES if needs_torch and not is_torch else ())
    openmp = requested.openmp if requested.openmp is not None else (release >= (2, 2) if is_torch else None)
    return Wanted(
        is_torch=is_torch,
        release=release,
        metal=metal,
        allow_jit_shaders=requested.allow_jit_shaders,
        without_metal4=requested.without_metal4,
        least_sdk=_least_sdk(release, metal, requested) if is_torch else None,
        openmp=openmp,
        commit=requested.commit,
        members=requested.members,
        external_libraries=external,
        requires=requested.requires,
        deployment_target=release_of(requested.deployment_target) if requested.deployment_target else None,
        is_declared=expectation is not None,
    )


def metal_sections_of(release: Version) -> dict[str, Version]:
    """Return the embedded metallibs of a torch release and the OS at which the release opens each.

    Read in the machine code of `BundledShaderLibrary::getLibrary`; the newest known release stands for newer ones.
    """
    sections: dict[str, Version] = {}
    if release >= (2, 6):
        sections["metal_basic"] = (13, 0) if release < (2, 9) else (14, 0)
    if (2, 6) <= release < (2, 9):
        sections["metal_bfloat"] = (14, 0)
    if release >= (2, 12):
        sections["metal_40"] = (26, 0) if release < (2, 14) else (26, 2)
    return sections


def _least_sdk(release: Version, metal: Mapping[str, Version], requested: Expectation) -> Version:
    if "metal_40" in metal and not requested.without_metal4 and not requested.allow_jit_shaders:
        return (26, 0)
    return (13, 3) if release >= (2, 2) else (12, 3)


Minor = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+$")]


class OfficialException(BaseModel):
    """One defect that was shipped: in which releases, by which rule, where, and how it shows (patterns)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    releases: tuple[Minor, ...] = Field(min_length=1)
    rule: str
    member: str | None = None
    evidence: str
    reason: str


class OfficialExceptions(BaseModel):
    """The whole file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    exceptions: tuple[OfficialException, ...]


def load_exceptions() -> tuple[OfficialException, ...]:
    """Return the named exceptions."""
    path = Path(__file__).with_name("official_exceptions.yaml")
    return strict_yaml.load(path, OfficialExceptions).exceptions


def find_exception(
    exceptions: tuple[OfficialException, ...], finding: Finding, release: tuple[int, ...]
) -> OfficialException | None:
    """Return the exception that this finding of this release is known by."""
    minor = ".".join(map(str, release[:2]))
    for exception in exceptions:
        if minor in exception.releases and exception.rule == finding.rule:
            is_there = exception.member is None or fnmatchcase(finding.member or "", exception.member)
            if is_there and fnmatchcase(finding.evidence, exception.evidence):
                return exception
    return None
