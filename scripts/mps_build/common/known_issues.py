"""Known issues as data: which wrong answers are nobody's news, and from which macOS on each torch's MPS works."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from . import strict_yaml

# First release of each era. Floor: what MPSDevice's constructor asks for, read in the machine code of every wheel from
# 1.12.1 to 2.15.0 (2.15 declares 15.0 and enforces nothing). Message: the sentence in libtorch_cpu; up to 2.14 it is
# said whenever there is no device, whatever the system: https://github.com/pytorch/pytorch/issues/177819
_FLOORS = (("1.12", "12.3"), ("2.5", "13.0"), ("2.9", "14.0"), ("2.15", "15.0"))
_MESSAGES = (("1.12", "12.3"), ("2.6", "13.0"), ("2.9", "14.0"), ("2.15", "15.0"))


def macos_floor(torch: str) -> str | None:
    """Return the oldest macOS on which this torch's MPS works; None for a torch without MPS, or an unknown version.

    >>> macos_floor("2.5.1"), macos_floor("2.15.0.dev20260915"), macos_floor("1.11.0")
    ('13.0', '15.0', None)
    """
    return _of(torch, _FLOORS)


def said_floor(torch: str) -> str | None:
    """Return the macOS that this torch's own message names.

    >>> said_floor("2.5.1")
    '12.3'
    """
    return _of(torch, _MESSAGES)


def highest_floor_behind(said: str) -> str | None:
    """Return the highest floor of the releases whose message names this macOS; None if none names it.

    >>> highest_floor_behind("12.3"), highest_floor_behind("13.0")
    ('13.0', '13.0')
    """
    starts = sorted({first for first, _ in (*_FLOORS, *_MESSAGES)}, key=Version)
    floors = [macos_floor(first) for first in starts if said_floor(first) == said]
    return max(filter(None, floors), key=Version, default=None)


def is_too_old(macos: str, torch: str) -> bool:
    """True if this macOS is older than the floor of this torch.

    >>> is_too_old("12.7.6", "2.5.1"), is_too_old("12.7.6", "2.4.1"), is_too_old("26.1", "2.15.0")
    (True, False, False)
    """
    floor = macos_floor(torch)
    return floor is not None and Version(macos) < Version(floor)


def _of(torch: str, eras: tuple[tuple[str, str], ...]) -> str | None:
    try:
        release = Version(Version(torch).base_version)
    except ValueError:
        return None
    return next((floor for first, floor in reversed(eras) if release >= Version(first)), None)


def _specifier(text: str) -> str:
    try:
        SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(f'not a version range: "{text}" (write it like ">=2.8,<2.9")') from error
    return text


def _expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


Range = Annotated[str, AfterValidator(_specifier)]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Expression = Annotated[Text, AfterValidator(_expression)]
HostLine = Annotated[str, StringConstraints(pattern=r"^[\w./+-]+\.(?:mm|cpp|h|metal|py)(?::\d+(?:-\d+)?)?$")]
DrawnCase = Annotated[str, StringConstraints(pattern=r"^\w+:\w+:\d{1,12}$")]
Kind = Literal["bug", "apple", "limit"]
Where = Literal["mac", "simulated", "official"]
Patterns = Annotated[tuple[Text, ...], Field(min_length=1)]


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Issue(_Declared):
    """One known issue. A range that is not given holds for all; a fact that is not known fits no range.

    Attributes:
        kind: `bug` of PyTorch, `apple` for a bug of Apple's, `limit` of our software Metal.
        where: on Macs, on the simulated device, on the official wheel simulated. Not given: a bug of PyTorch's shows in
            all of them, one of Apple's on Macs alone, a limit in both simulations.
        lines: places in the release's tree that are wrong.
        since: what is known of its beginning, in words.
        cases: ids or shell patterns of regressions and scenarios. operators: names of descriptions, or patterns: the
            row speaks of their drawn cases.
        transformation, dtype: of drawn cases; patterns. levels: other levels of the drawn call by factor, both patterns
            (`"layout*|producer": ["!dense"]`; `!` is not).
        says: a regular expression that is found in each line of what the case says is wrong.
        shown_by: ids of drawn cases that were seen to be wrong so: where it is looked for in other releases.
        outcome: what its cases do while it holds; `flaky`: they may pass as well.
    """

    id: Text
    kind: Kind = "bug"
    title: Text
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    lines: tuple[HostLine, ...] = ()
    since: Text | None = None
    torch: Range | None = None
    macos: Range | None = None
    chips: tuple[Text, ...] | None = None
    virtual: bool | None = None
    devices: tuple[Literal["mps", "cuda", "cpu"], ...] = ("mps",)
    where: tuple[Where, ...] | None = None
    cases: Patterns | None = None
    operators: Patterns | None = None
    transformation: Patterns | None = None
    dtype: Patterns | None = None
    levels: Mapping[Text, Patterns] | None = None
    says: Expression | None = None
    shown_by: tuple[DrawnCase, ...] = ()
    outcome: Literal["fails", "flaky", "crashes"]
    reason: Text
    fixed_by: Annotated[str, StringConstraints(pattern=r"^patches/\S+\.patch$")] | None = None

    @model_validator(mode="after")
    def _check_row(self) -> Issue:
        if not self.cases and not self.operators:
            raise ValueError(f"{self.id}: speaks of nothing: give `cases`, or `operators` for drawn cases")
        drawn = [name for name in ("transformation", "dtype", "levels") if getattr(self, name)]
        if drawn and not self.operators:
            raise ValueError(f"{self.id}: `{drawn[0]}` is of drawn cases: give `operators` beside it")
        if stranger := next((one for one in self.shown_by if not _is_one_of(one, self.drawn)), None):
            raise ValueError(f"{self.id}: `shown_by` {stranger} is no case of its `operators` and `transformation`")
        if self.outcome == "crashes" and (self.dtype or self.levels):
            raise ValueError(
                f"{self.id}: nobody knows `dtype` or `levels` of a case that ended its process: "
                "use `operators`, `transformation` and `says`"
            )
        if self.kind != "limit" and not (self.link or self.lines):
            raise ValueError(f"{self.id}: a bug needs a `link`, or `lines` of the code that is wrong (File.mm:12-20)")
        if self.kind == "limit" and "mac" in self.places:
            raise ValueError(f"{self.id}: a limit of the simulation shows on no Mac: take `mac` out of `where`")
        return self

    @property
    def places(self) -> tuple[Where, ...]:
        """Where it shows."""
        return self.where or _PLACES[self.kind]

    def gone_after(self, release: str) -> str | None:
        """Return the next release that its range leaves out: it has the fix, or was not seen to be wrong.

        None where the range has no upper bound, or is a list of releases.
        """
        left_out = (each for each in SpecifierSet(self.torch or "") if each.operator in ("<", "!="))
        ends = {Version(each.version.removesuffix(".*")) for each in left_out}
        return str(min(later)) if (later := {end for end in ends if end > Version(release)}) else None

    @property
    def drawn(self) -> tuple[str, ...]:
        """Patterns of the ids of the drawn cases that it speaks of."""
        return tuple(f"{name}:{way}:*" for name in self.operators or () for way in self.transformation or ("*",))


def _is_one_of(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_PLACES: Mapping[Kind, tuple[Where, ...]] = {
    "bug": ("mac", "simulated", "official"),
    "apple": ("mac",),
    "limit": ("simulated", "official"),
}


class KnownIssues(_Declared):
    """The whole of known_issues.yaml."""

    schema_version: Literal[1]
    issues: tuple[Issue, ...]

    @field_validator("issues")
    @classmethod
    def _check_ids(cls, issues: tuple[Issue, ...]) -> tuple[Issue, ...]:
        if repeated := sorted(name for name, number in Counter(row.id for row in issues).items() if number > 1):
            raise ValueError(f"more than one row has the id {', '.join(repeated)}")
        return issues


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What decides which rows hold; None is "not known". `where`: what stands behind an `mps` device."""

    device: str
    where: Where = "mac"
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


def issues_of_release(issues: Iterable[Issue], torch: str, *, macos: str | None = None) -> tuple[Issue, ...]:
    """Return what is known to be wrong with MPS in a release on Macs: on some macOS, or on the one that is given.

    Chips and virtual GPUs are left to the reader: each row says which it is about.
    """
    return tuple(
        issue
        for issue in issues
        if "mps" in issue.devices
        and "mac" in issue.places
        and within(torch, issue.torch)
        and (macos is None or within(macos, issue.macos))
    )


def as_suite_reads_them(issues: Iterable[Issue]) -> list[dict[str, Any]]:
    """Return rows in the form that the device suite takes (`--known FILE`): it needs no YAML and no ranges."""
    return [_as_suite_reads(row) for row in issues]


def _as_suite_reads(row: Issue) -> dict[str, Any]:
    narrowed = {"drawn": row.drawn, "dtype": row.dtype, "levels": row.levels, "says": row.says}
    return {
        "id": row.id,
        "link": row.link,
        "outcome": row.outcome,
        "reason": row.reason,
        "cases": list(row.cases or ()),
        **{name: value for name, value in narrowed.items() if value},
    }


def _holds(issue: Issue, here: Circumstances) -> bool:
    return (
        here.device in issue.devices
        and (here.device != "mps" or here.where in issue.places)
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
