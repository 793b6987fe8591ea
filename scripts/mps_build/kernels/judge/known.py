"""KnownIssue issues of kernels as data: which wrong answers are nobody's news, in which releases of torch.

A wrong value is known only where the row's `where` says so: an expression over the inputs, the result and what it must
be, evaluated beside the reference. So a new fault in a kernel that has a known one is still seen.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from ...common import strict_yaml

FILE = Path(__file__).resolve().parent / "known_issues.yaml"
_KEYS = {"id", "link", "title", "torch", "kernels", "outcomes", "where", "why", "call", "not_seen"}
_OPTIONAL = {"outcomes", "where", "call", "not_seen"}
PREFIX = "known:"
# The release whose host code the rows' calls went through.
NEWEST = "2.15.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIssue:
    """One known issue.

    Args:
        link: where it is written up: an upstream issue, or this repository's docs.
        torch: the releases that have it.
        kernels: shell patterns on names.
        outcomes: what its kernels do while it holds.
        where: for wrong values, which of them it explains: `x`, `y` … as in a reference's expression, `got`, `want`,
            and `eps`, `tiny`, `largest` of the result's type.
        call: of rows that the newest release has, an expression over `torch` and `F` (tensors are made on the device)
            that reaches the kernel through the operator.
        not_seen: why its result is right all the same; empty: it is wrong.
    """

    id: str
    link: str
    title: str
    torch: SpecifierSet
    kernels: tuple[str, ...]
    outcomes: tuple[str, ...]
    where: str = ""
    why: str = ""
    call: str = ""
    not_seen: str = ""

    @property
    def is_precise(self) -> bool:
        """Whether an examination goes on past what this issue explains: wrong values by `where`, and races."""
        return bool(self.where) or self.is_race

    @property
    def is_race(self) -> bool:
        """True if the known issue is a race."""
        return "race" in self.outcomes

    def means(self, name: str) -> bool:
        """Return whether the row is about a kernel, by its shell patterns."""
        return any(fnmatch.fnmatchcase(name, each) for each in self.kernels)

    def covers(self, name: str, outcome: str, version: str | None, explained: Sequence[str] = ()) -> bool:
        """Return whether a kernel's outcome is this issue's; of an unknown version nothing is known.

        Args:
            explained: the issues whose `where` holds all of the kernel's wrong values.
        """
        if outcome not in self.outcomes or (self.is_precise and self.id not in explained):
            return False
        return self.is_of(version) and self.means(name)

    def is_of(self, version: str | None) -> bool:
        """Return whether a release of torch has it; of an unknown version nothing is known."""
        if version is None:
            return False
        try:
            release = Version(Version(version).base_version)
        except ValueError:
            return False
        return release in self.torch


@cache
def load_known(path: Path = FILE) -> tuple[KnownIssue, ...]:
    """Return all rows.

    Raises:
        ValueError: a row has an unknown key or lacks one.
    """
    rows = strict_yaml.unchecked(path.read_text(encoding="utf-8")) or []
    return tuple(_row(row) for row in rows)


def _row(row: Mapping[str, Any]) -> KnownIssue:
    if set(row) - _OPTIONAL != _KEYS - _OPTIONAL:
        raise ValueError(f"{row.get('id')}: its keys are {sorted(row)}, expected {sorted(_KEYS)}")
    return KnownIssue(
        id=row["id"],
        link=row["link"],
        title=row["title"],
        torch=SpecifierSet(row["torch"]),
        kernels=tuple(row["kernels"]),
        outcomes=tuple(row.get("outcomes", ("wrong",))),
        where=row.get("where", ""),
        why=row["why"],
        call=row.get("call", ""),
        not_seen=row.get("not_seen", ""),
    )


def explanations_of(name: str, version: str | None) -> tuple[str, ...]:
    """Return the issues of a release that may explain wrong values of a kernel."""
    return tuple(each.id for each in load_known() if each.where and each.means(name) and each.is_of(version))


def races_of(name: str, version: str | None) -> tuple[str, ...]:
    """Return the issues of a release that say that a kernel's threads meet without a barrier."""
    return tuple(each.id for each in load_known() if each.is_race and each.means(name) and each.is_of(version))


def has_any_value(ids: Sequence[str]) -> bool:
    """Say whether a race leaves values that cannot be judged: its issue says `wrong` beside `race`, not where."""
    return any(each.id in ids and "wrong" in each.outcomes and not each.where for each in load_known())


def explanation_rows() -> dict[str, Mapping[str, Any]]:
    """Return the conditions as rows of references, by `known:ID`: the judge looks them up as it does references."""
    return {PREFIX + each.id: {"where": each.where} for each in load_known() if each.where}
