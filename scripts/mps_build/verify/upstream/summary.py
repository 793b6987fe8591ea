"""What a run of PyTorch's own tests came to: counts by class, and the row of each test that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from .explanations import LETTERS, UpstreamExplanation, explained
from .outcomes import GOOD, Asked


class Group(BaseModel):
    """A class of tests; `failed` is by letter, `new` those that no row explains. Skipped tests were not asked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    name: str
    passed: int
    skipped: int
    failed: dict[str, int]
    new: int

    @property
    def asked(self) -> int:
        """How many were run."""
        return self.passed + self.new + sum(self.failed.values())


class Summary(BaseModel):
    """The outcomes of a run; `failing` has the id of the row of each test, or an empty text.

    `tests`: how many there are in these files, of which a part may have been run. `ran_on`: the machine, in words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    release: str
    macos: str
    date: str
    tests: int
    ran_on: str = ""
    groups: tuple[Group, ...]
    failing: dict[str, str]

    @property
    def asked(self) -> int:
        """How many tests were run."""
        return sum(group.asked for group in self.groups)

    @property
    def passed(self) -> int:
        """How many ended as upstream expects, expected failures included."""
        return sum(group.passed for group in self.groups)

    @property
    def skipped(self) -> int:
        """How many were not asked by their own choice."""
        return sum(group.skipped for group in self.groups)

    @property
    def unknown(self) -> int:
        """How many of the files' tests have no outcome yet."""
        return self.tests - self.asked - self.skipped

    @property
    def new(self) -> int:
        """How many fail without an explanation."""
        return sum(group.new for group in self.groups)


def summed_up(
    tests: Iterable[Asked],
    rows: Sequence[UpstreamExplanation],
    sizes: Mapping[str, int],
    *,
    release: str,
    macos: str,
    date: str,
    ran_on: str = "",
) -> Summary:
    """Return the summary of outcomes; `sizes` says how many tests each file has."""
    listed = sorted(tests, key=lambda test: test.id)
    found = explained(listed, rows, macos=macos)
    groups = []
    for file, name in dict.fromkeys((test.file, test.group) for test in listed):
        mine = [test for test in listed if (test.file, test.group) == (file, name)]
        letters = [row.letter if (row := found[test.id]) else "" for test in mine if test.id in found]
        groups.append(
            Group(
                file=file,
                name=name,
                passed=sum(test.outcome in GOOD for test in mine),
                skipped=sum(test.outcome == "skipped" for test in mine),
                failed={letter: letters.count(letter) for letter in LETTERS if letter in letters},
                new=letters.count(""),
            )
        )
    failing = {test_id: row.id if row else "" for test_id, row in found.items()}
    total = sum(max(sizes.get(file, 0), count) for file, count in Counter(test.file for test in listed).items())
    return Summary(
        release=release,
        macos=macos,
        date=date,
        tests=total,
        ran_on=ran_on,
        groups=tuple(groups),
        failing=failing,
    )
