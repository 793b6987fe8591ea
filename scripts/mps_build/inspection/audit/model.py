"""The values of an audit: what is expected, what was found, what came of it; and the wheel's own text files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.parser import HeaderParser
from email.policy import compat32
from typing import Any, Literal, NamedTuple

from mps_build.common.wheels.naming import WheelName

from ..limits import MOST_MEMBERS
from .archive import Archive
from .contents import Contents
from .macho import MachO

Headers = Mapping[str, tuple[str, ...]]
TRUSTED_HASHES = frozenset({"sha256", "sha384", "sha512"})


class RecordRow(NamedTuple):
    """One row of RECORD, its three fields as they are."""

    path: str
    digest: str
    size: str


def parse_headers(text: str) -> dict[str, tuple[str, ...]]:
    """Return the headers of METADATA or WHEEL, every value of each, keys in lower case; read as installers read them.

    >>> parse_headers("Tag: a\\nTag: b\\n\\nTag: body")
    {'tag': ('a', 'b')}
    """
    found: dict[str, list[str]] = {}
    for key, value in HeaderParser(policy=compat32).parsestr(text).items():
        found.setdefault(key.lower(), []).append("\n".join(line.strip() for line in str(value).split("\n")))
    return {key: tuple(values) for key, values in found.items()}


def parse_record(text: str, *, most_rows: int = MOST_MEMBERS) -> tuple[RecordRow, ...]:
    """Return the rows of RECORD; one without three fields gets empty ones, which no rule lets pass.

    Raises:
        ValueError: no CSV, or more rows than `most_rows`.
    """
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), strict=True):
            if row:
                rows.append(row)
                if len(rows) > most_rows:
                    raise ValueError(f"has more than {most_rows} rows")
    except csv.Error as error:
        raise ValueError(f"no CSV: {error}") from error
    return tuple(map(RecordRow._make, (row if len(row) == 3 else (row[0], "", "") for row in rows)))


def parse_literals(text: str) -> dict[str, str]:
    """Return the names a Python file assigns text to, such as `git_version` in torch/version.py; runs nothing.

    >>> parse_literals("from typing import Optional\\n__version__ = '2.15.0'\\ncuda: Optional[str] = None")
    {'__version__': '2.15.0'}
    """
    assigned = (_text_assigned(line) for line in text.split("\n"))
    return dict(each for each in assigned if each is not None)


def _text_assigned(line: str) -> tuple[str, str] | None:
    """Return name and text of `name = 'text'`, with or without an annotation or a comment behind it.

    A text with a quote or an escape in it is not a version.
    """
    left, equals, right = line.partition("=")
    name = left.partition(":")[0].rstrip(" \t")
    value = right.lstrip(" \t")
    quote = value[:1]
    if not equals or not name.isidentifier() or quote not in ("'", '"'):
        return None
    text, closed, rest = value[1:].partition(quote)
    rest = rest.strip(" \t\r")
    is_plain = closed and not {"'", '"', "\\"} & set(text) and (not rest or rest.startswith("#"))
    return (name, text) if is_plain else None


Level = Literal["error", "warning"]
Profile = Literal["strict", "official"]
PROFILES: tuple[Profile, ...] = ("strict", "official")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What a recipe declares of its wheel, beside what the wheel's name already asks for.

    Args:
        deployment_target: the macOS that the platform tag must name, as `14.0`.
        metal_sections: embedded metallibs and the OS each is compiled for; None leaves it to
            torch's table of releases, an empty mapping asks for none.
        openmp: whether libtorch_cpu uses OpenMP; None leaves it to the table.
        commit: the commit that was to be built.
        members: paths that must be in the wheel.
        external_libraries: base names of libraries that another distribution brings (torch's, for companions).
        requires: demands that METADATA must make, word for word, as the only ones for that distribution.
    """

    distribution: str = "torch"
    deployment_target: str | None = None
    metal_sections: Mapping[str, str] | None = None
    openmp: bool | None = None
    commit: str | None = None
    members: tuple[str, ...] = ()
    external_libraries: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    allow_jit_shaders: bool = False
    without_metal4: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFacts:
    """One compiled member: its header, and what lies behind it (None where only headers were read)."""

    member: str
    size: int
    mode: int
    kind: str
    macho: MachO | None = None
    malformed: str | None = None
    contents: Contents | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelFacts:
    """All that the rules look at.

    `file` is the wheel's file name, or the folder that a wheel was installed to, whose `archive` and `name` are
    then made up from RECORD, METADATA and WHEEL. `is_full` is False when only
    headers were read, and then `damage`, `record_mismatches`, `leaks` and all `contents` are empty.
    """

    file: str
    size: int
    name: WheelName | None
    archive: Archive
    modes: Mapping[str, int]
    is_installed: bool = False
    info_folders: tuple[str, ...] = ()
    metadata: Headers = field(default_factory=dict)
    wheel: Headers = field(default_factory=dict)
    record: tuple[RecordRow, ...] = ()
    record_fault: str | None = None
    version_literals: Mapping[str, str] = field(default_factory=dict)
    binaries: Mapping[str, BinaryFacts] = field(default_factory=dict)
    is_full: bool = False
    damage: Mapping[str, str] = field(default_factory=dict)
    record_mismatches: Mapping[str, str] = field(default_factory=dict)
    leaks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def distribution(self) -> str:
        """The distribution by the file name, or by METADATA where there is no valid file name."""
        return self.name.distribution if self.name else next(iter(self.metadata.get("name", ())), "")

    @property
    def machos(self) -> dict[str, tuple[BinaryFacts, MachO]]:
        """The members that are readable Mach-O."""
        return {name: (facts, facts.macho) for name, facts in self.binaries.items() if facts.macho is not None}

    def macho(self, member: str) -> MachO | None:
        """Return the headers of a member; None if it is not a Mach-O or could not be read."""
        facts = self.binaries.get(member)
        return facts.macho if facts else None

    def contents(self, member: str) -> Contents | None:
        """Return what a pass over a member's data found; None without one."""
        facts = self.binaries.get(member)
        return facts.contents if facts else None

    @property
    def git_version(self) -> str | None:
        """The commit that torch/version.py states."""
        return self.version_literals.get("git_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it should be: where, how it shows, and why it matters."""

    rule: str
    level: Level
    member: str | None
    evidence: str
    reason: str

    def document(self) -> dict[str, Any]:
        """Return the row of `findings` in the audit's JSON."""
        return {
            "rule": self.rule,
            "level": self.level,
            "member": self.member,
            "evidence": self.evidence,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The verdict on one wheel, and all it stands on."""

    profile: Profile
    quick: bool
    kind: str
    findings: tuple[Finding, ...]
    facts: WheelFacts
    facts_document: Mapping[str, Any]

    @property
    def verdict(self) -> Literal["accepted", "rejected"]:
        """ "rejected" if a finding is an error; warnings alone do not reject."""
        return "rejected" if any(finding.level == "error" for finding in self.findings) else "accepted"

    def document(self) -> dict[str, Any]:
        """Return the JSON document."""
        return {
            "profile": self.profile,
            "quick": self.quick,
            "kind": self.kind,
            "verdict": self.verdict,
            "findings": [finding.document() for finding in self.findings],
            "facts": dict(self.facts_document),
        }
