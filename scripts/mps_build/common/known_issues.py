"""Known issues as data: which wrong answers are nobody's news, on which torch, macOS and chip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from . import strict_yaml


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f'not a version range: "{text}" (write it like ">=2.8,<2.9")') from error
    return text


Range = Annotated[str, AfterValidator(_specifier)]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Issue(_Declared):
    """One known issue. A range that is not given holds for all; a fact that is not known fits no range.

    `since` is what is known of its beginning, in words; `outcome` is what its cases do while it holds.
    """

    id: Text
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
    title: Text
    since: Text
    torch: Range | None = None
    macos: Range | None = None
    chips: tuple[Text, ...] | None = None
    virtual: bool | None = None
    devices: tuple[Literal["mps", "cuda", "cpu"], ...] = ("mps",)
    cases: tuple[Text, ...] = Field(min_length=1)
    outcome: Literal["fails", "flaky", "crashes"]
    reason: Text
    fixed_by: Annotated[str, StringConstraints(pattern=r"^patches/\S+\.patch$")] | None = None


class KnownIssues(_Declared):
    """The whole of known_issues.yaml."""

    schema_version: Literal[1]
    issues: tuple[Issue, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What decides which rows hold; None is "not known"."""

    device: str
    torch: str | None
    macos: str | None = None
    chip: str | None = None
    virtual: bool | None = None


def load_issues(path: Path) -> tuple[Issue, ...]:
    """Return every row of the file, or raise a UsageError that lists every fault with its line."""
    return strict_yaml.load(path, KnownIssues).issues


def active_issues(issues: Iterable[Issue], circumstances: Circumstances) -> tuple[Issue, ...]:
    """Return the rows that hold here; a nightly is matched on its release part."""
    return tuple(issue for issue in issues if _holds(issue, circumstances))


def as_suite_reads_them(issues: Iterable[Issue]) -> list[dict[str, Any]]:
    """Return rows in the form that the device suite takes (`--known FILE`): it needs no YAML and no ranges."""
    return [
        {"id": row.id, "link": row.link, "outcome": row.outcome, "reason": row.reason, "cases": list(row.cases)}
        for row in issues
    ]


def _holds(issue: Issue, here: Circumstances) -> bool:
    return (
        here.device in issue.devices
        and within(here.torch, issue.torch)
        and within(here.macos, issue.macos)
        and (issue.chips is None or _chip_fits(here.chip, issue.chips))
        and (issue.virtual is None or here.virtual == issue.virtual)
    )


def within(version: str | None, wanted: str | None) -> bool:
    """True if the release part of `version` (no .dev, no rc, no local part) lies in the range.

    >>> within("2.16.0.dev20261101+cpu", ">=2.16"), within("26.5.2", "<26"), within(None, ">=1")
    (True, False, False)
    """
    if wanted is None:
        return True
    try:
        release = Version(version or "").base_version
    except ValueError:
        return False
    return SpecifierSet(wanted).contains(release)


def _chip_fits(chip: str | None, wanted: tuple[str, ...]) -> bool:
    """True if a family ("M1") or a full name ("M1 Pro") of the row names this chip ("Apple M1 Pro").

    >>> _chip_fits("Apple M1 Pro", ("M1",)), _chip_fits("Apple M10", ("M1",)), _chip_fits(None, ("M1",))
    (True, False, False)
    """
    words = (chip or "").removeprefix("Apple ").split()
    return any(words[: len(name.split())] == name.split() for name in wanted)
