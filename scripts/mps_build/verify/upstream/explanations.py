"""Why tests of PyTorch's fail over the simulated device, as data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from mps_build.common import strict_yaml
from mps_build.common.known_issues import HostLine, Range, Text, within

from .outcomes import BAD, Asked

FILE = Path(__file__).parent / "explanations.yaml"
LETTERS = ("bug", "limit", "mac", "test")


class UpstreamExplanation(BaseModel):
    """One reason, and the tests that fail by it.

    `letter`: `bug` of the release's host code or kernels (a public link, or lines of its tree), `limit` of the
    simulation, `mac`: it needs what only a Mac has, `test`: the test's own fault, or its surroundings'. `tests` are
    patterns of ids; `message`: a part of what the test must say, for it to be this reason.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Text
    letter: Literal["bug", "limit", "mac", "test"]
    reason: Text
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    macos: Range | None = None
    lines: tuple[HostLine, ...] = ()
    message: Text | None = None
    tests: tuple[Text, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_evidence(self) -> UpstreamExplanation:
        if self.letter == "bug" and not (self.link or self.lines):
            raise ValueError("a bug needs a public link, or lines of the host code")
        return self

    def explains(self, test: Asked) -> bool:
        """Whether this test fails by it."""
        is_said = self.message is None or self.message in test.reason
        return test.outcome in BAD and is_said and any(fnmatchcase(test.id, pattern) for pattern in self.tests)


class UpstreamExplanations(BaseModel):
    """The whole of explanations.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    explanations: tuple[UpstreamExplanation, ...]

    @model_validator(mode="after")
    def _check_ids(self) -> UpstreamExplanations:
        ids = [row.id for row in self.explanations]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"more than one row has the id {', '.join(twice)}")
        return self


def load_upstream_explanations(path: Path = FILE) -> tuple[UpstreamExplanation, ...]:
    """Return every row.

    Raises:
        UsageError: it lists every fault with its line.
    """
    return strict_yaml.load(path, UpstreamExplanations).explanations


def explained(
    tests: Iterable[Asked], rows: Sequence[UpstreamExplanation], *, macos: str
) -> dict[str, UpstreamExplanation | None]:
    """Return the row of each failing test by its id; None where no row explains it."""
    active = [row for row in rows if within(macos, row.macos)]
    return {test.id: next((row for row in active if row.explains(test)), None) for test in tests if test.outcome in BAD}
