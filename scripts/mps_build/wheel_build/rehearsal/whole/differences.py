"""Two sets side by side, each difference with its reason or without one. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Side = Literal["ours", "official"]
UNEXPLAINED = "not explained"
_MOST_NAMES = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why names of one side are missing from the other: the part and the names as regular expressions."""

    part: str
    side: Side
    names: str
    text: str

    def fits(self, part: str, side: Side, name: str) -> bool:
        """Return whether this reason explains a name that only one side ("ours", "official") has in a part."""
        return side == self.side and bool(re.search(self.part, part)) and bool(re.search(self.names, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One part: how many entries each side has, how many both have, and the rest by reason.

    Attributes:
        differing: (side, reason) -> names.
    """

    part: str
    ours: int
    official: int
    both: int
    differing: Mapping[tuple[Side, str], tuple[str, ...]]

    @property
    def is_equal(self) -> bool:
        """True if neither side has a name that the other lacks."""
        return not self.differing

    @property
    def is_explained(self) -> bool:
        """True if each difference has a known reason."""
        return all(reason != UNEXPLAINED for _, reason in self.differing)

    @property
    def share(self) -> float:
        """The share of the official wheel's names that ours has, 0 to 1."""
        return self.both / self.official if self.official else 1.0

    def document(self) -> dict[str, Any]:
        """Return the part as JSON: the counts, and the first names of each difference."""
        return {
            "part": self.part,
            "ours": self.ours,
            "official": self.official,
            "both": self.both,
            "equal": self.is_equal,
            "explained": self.is_explained,
            "differences": [
                {"only": side, "reason": reason, "count": len(names), "names": list(names[:_MOST_NAMES])}
                for (side, reason), names in sorted(self.differing.items())
            ],
        }


def compared(part: str, ours: Iterable[str], official: Iterable[str], reasons: Sequence[Reason]) -> Compared:
    """Return one part, every difference with the first reason that fits it.

    >>> done = compared("files", ["a", "b"], ["a", "protoc"], [])
    >>> done.both, dict(done.differing)
    (1, {('ours', 'not explained'): ('b',), ('official', 'not explained'): ('protoc',)})
    """
    left, right = set(ours), set(official)
    found: dict[tuple[Side, str], list[str]] = defaultdict(list)
    sides: tuple[tuple[Side, set[str]], ...] = (("ours", left - right), ("official", right - left))
    for side, names in sides:
        usable = [reason for reason in reasons if reason.side == side and re.search(reason.part, part)]
        for name in sorted(names):
            text = next((reason.text for reason in usable if reason.fits(part, side, name)), UNEXPLAINED)
            found[side, text].append(name)
    return Compared(
        part=part,
        ours=len(left),
        official=len(right),
        both=len(left & right),
        differing={key: tuple(names) for key, names in found.items()},
    )
