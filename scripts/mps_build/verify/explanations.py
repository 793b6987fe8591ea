"""Why cases fail on the simulated device, as data: PyTorch's bugs, and limits of the simulation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from mps_build.common import strict_yaml
from mps_build.common.known_issues import Range, Text, within
from mps_build.common.records.device_record import Case, Explained, Explanations, Simulated

_WILD = re.compile(r"[*?\[]")
_MORE = re.compile(r"and \d+ more")  # of what a case says of several calls
HostLine = Annotated[str, StringConstraints(pattern=r"^[\w./+-]+\.(?:mm|cpp|h|metal|py):\d+(?:-\d+)?$")]


def _is_expression(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Explanation(_Declared):
    """One reason, and the cases that fail by it.

    `letter`: `bug` of the release's host code or kernels, `limit` of the simulation, or `suite`: the suite's own fault,
    which was fixed; it explains no failure. `lines` are places in the release's tree, `script` a program that shows it
    with public calls; it stands behind `import torch` and `d`, the device, and raises where the device is wrong.
    `outcome`: what it explains; a case that is known to be wrong, and crashes or hangs, is news. `flaky`: the case may
    pass as well. `says`: a regular expression that is found in each line of the case's reason that it explains.
    """

    id: Text
    letter: Literal["bug", "limit", "suite"]
    title: Text
    link: Annotated[str, StringConstraints(pattern=r"^https://\S+$")] | None = None
    torch: Range | None = None
    macos: Range | None = None
    outcome: Literal["fails", "crashes"] = "fails"
    flaky: bool = False
    says: Annotated[str, AfterValidator(_is_expression)] | None = None
    reason: Text
    lines: tuple[HostLine, ...] = ()
    script: str | None = None
    cases: tuple[Text, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_evidence(self) -> Explanation:
        if self.letter == "bug" and not (self.link or (self.lines and self.script)):
            raise ValueError("a bug needs a public link, or lines of the host code and a script")
        return self

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(case for case in self.cases if not _WILD.search(case))

    @cached_property
    def _patterns(self) -> tuple[str, ...]:
        return tuple(case for case in self.cases if _WILD.search(case))

    def covers(self, case_id: str) -> bool:
        """Whether it speaks of this case."""
        return case_id in self._ids or any(fnmatchcase(case_id, pattern) for pattern in self._patterns)

    def may_explain(self, case: Case) -> bool:
        """Whether it speaks of this case and of how it ends."""
        outcomes: tuple[str, ...] = ("failed",) if self.outcome == "fails" else ("crashed", "timeout")
        return case.outcome in outcomes and self.covers(case.id)

    def tells(self, line: str) -> bool:
        """Whether a line of a case's reason is what it is about."""
        return self.says is None or re.search(self.says, line) is not None


class ExplanationFile(_Declared):
    """The whole of simulated_explanations.yaml."""

    schema_version: Literal[1]
    explanations: tuple[Explanation, ...]

    @model_validator(mode="after")
    def _check_ids(self) -> ExplanationFile:
        ids = [row.id for row in self.explanations]
        if twice := sorted({each for each in ids if ids.count(each) > 1}):
            raise ValueError(f"more than one row has the id {', '.join(twice)}")
        return self


def load_explanations(path: Path) -> tuple[Explanation, ...]:
    """Return every row of the file; a suite without one explains nothing.

    Raises:
        UsageError: it lists every fault with its line.
    """
    return strict_yaml.load(path, ExplanationFile).explanations if path.is_file() else ()


def active_explanations(rows: Iterable[Explanation], simulated: Simulated) -> tuple[Explanation, ...]:
    """Return the rows that hold for what the device answers as; a fixed fault of the suite explains nothing."""
    return tuple(
        row
        for row in rows
        if row.letter != "suite" and within(simulated.release, row.torch) and within(simulated.macos, row.macos)
    )


def with_explanation(case: Case, rows: Sequence[Explanation]) -> Case:
    """Return a case with why it fails, where it does and rows say so.

    Each line of its reason needs a row, so that a second fault does not hide behind a known one; the first line's row
    is named.
    """
    mine = [row for row in rows if row.may_explain(case)]
    lines = [line for line in (case.reason or "").splitlines() if not _MORE.fullmatch(line)] or [""]
    found = [next((row for row in mine if row.tells(line)), None) for line in lines]
    row = found[0]
    if row is None or None in found:
        return case
    explained = Explained(id=row.id, letter=row.letter, link=row.link, reason=row.reason)
    return case.model_copy(update={"explained": explained})


def as_known(rows: Iterable[Explanation]) -> list[dict[str, Any]]:
    """Return rows in the form that the device suite takes as known issues: what fails by them catches no plant."""
    return [
        {"id": row.id, "link": row.link, "outcome": row.outcome, "reason": row.reason, "cases": list(row.cases)}
        for row in rows
    ]


def summed_up(cases: Sequence[Case], rows: Sequence[Explanation]) -> Explanations:
    """Return how many failing cases have which letter; a case that a row explains and that passed is stale."""
    letters = [case.explained.letter for case in cases if case.explained]
    passed = (case.id for case in cases if case.outcome == "passed")
    return Explanations(
        bug=letters.count("bug"),
        limit=letters.count("limit"),
        unexplained=sum(case.is_new for case in cases),
        stale=tuple(case_id for case_id in passed if any(row.covers(case_id) for row in rows if not row.flaky)),
    )
