"""The findings that official wheels of old releases are known for: data, in official_exceptions.yaml."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mps_build.common import strict_yaml

from .model import Finding

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
