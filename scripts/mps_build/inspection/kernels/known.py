"""Known issues of kernels as data: which wrong answers are nobody's news, in which releases of torch."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

FILE = Path(__file__).resolve().parent / "known_issues.yaml"
_KEYS = {"id", "link", "title", "torch", "kernels", "outcomes", "why"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One known issue.

    Args:
        link: where it is written up: an upstream issue, or this repository's docs.
        torch: the releases that have it.
        kernels: shell patterns on names.
        outcomes: what its kernels do while it holds.
    """

    id: str
    link: str
    title: str
    torch: SpecifierSet
    kernels: tuple[str, ...]
    outcomes: tuple[str, ...]
    why: str

    def covers(self, name: str, outcome: str, version: str | None) -> bool:
        """Return whether a kernel's outcome is this issue's; of an unknown version nothing is known."""
        if outcome not in self.outcomes or version is None:
            return False
        try:
            release = Version(Version(version).base_version)
        except InvalidVersion:
            return False
        return release in self.torch and any(fnmatch.fnmatchcase(name, each) for each in self.kernels)


@cache
def load_known(path: Path = FILE) -> tuple[Known, ...]:
    """Return all rows.

    Raises:
        ValueError: a row has an unknown key or lacks one.
    """
    rows = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return tuple(_row(row) for row in rows)


def _row(row: Mapping[str, Any]) -> Known:
    if set(row) - {"outcomes"} != _KEYS - {"outcomes"}:
        raise ValueError(f"{row.get('id')}: its keys are {sorted(row)}, expected {sorted(_KEYS)}")
    return Known(
        id=row["id"],
        link=row["link"],
        title=row["title"],
        torch=SpecifierSet(row["torch"]),
        kernels=tuple(row["kernels"]),
        outcomes=tuple(row.get("outcomes", ("wrong",))),
        why=row["why"],
    )
