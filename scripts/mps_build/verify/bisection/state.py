"""The memory of a bisection: one JSON file, written after every answer, so that an interruption costs one run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ... import __version__
from ...common.errors import UsageError, reason_of
from ...common.files import read_text, write_whole
from ...common.receipts import digest_of
from .search import Span, Verdict, Word

SCHEMA: Literal["mps-build/bisection/1"] = "mps-build/bisection/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Probe(_Part):
    """One subject: each run's word, and the verdict once a majority stands.

    `wheel`: the sha256 of an official wheel that was tested as it is. With `as_of` the subject was not tested: its
    verdict is another subject's, which has the same kernels.
    """

    words: list[Word] = Field(default_factory=list)
    verdict: Verdict | None = None
    reason: str = ""
    commit: str | None = None
    wheel: str | None = None
    timeouts: int = 0
    seconds: float = 0.0
    as_of: str = ""


class Stage(_Part):
    """The candidates between two ends as they were when the stage began: an index changes from day to day."""

    kind: Literal["versions", "commits"]
    old: str
    new: str
    candidates: list[str]
    favoured: list[str] = Field(default_factory=list)
    seek: Literal["good", "bad"]
    note: str = ""

    def span(self) -> Span:
        """Return the stage's ends and candidates as the search takes them."""
        return Span(
            old=self.old,
            new=self.new,
            candidates=tuple(self.candidates),
            favoured=frozenset(self.favoured),
            seek=self.seek,
        )


class State(_Part):
    """One question and all that was answered."""

    schema_: Literal["mps-build/bisection/1"] = Field(default=SCHEMA, alias="schema")
    tool_version: str | None = __version__
    question: dict[str, str]
    good: str
    bad: str
    stages: list[Stage] = Field(default_factory=list)
    probes: dict[str, Probe] = Field(default_factory=dict)

    def verdicts(self) -> dict[str, Verdict]:
        """Return the verdicts that stand."""
        return {subject: probe.verdict for subject, probe in self.probes.items() if probe.verdict is not None}

    def stage(self, kind: str) -> Stage | None:
        """Return the stage of versions or of commits; None if it was not begun."""
        return next((stage for stage in self.stages if stage.kind == kind), None)


def folder_name(question: dict[str, str]) -> str:
    """Return a folder's name that stands for the question."""
    return digest_of(question)[:12]


def write_state(state: State, path: Path) -> None:
    """Write the state whole, or leave the one before."""
    write_whole(path, state.model_dump_json(by_alias=True, indent=1) + "\n")


def load_state(path: Path) -> State | None:
    """Return the state in `path`, or None if there is none.

    Raises:
        UsageError: it is there and cannot be understood.
    """
    try:
        text = read_text(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}", hint="`--fresh` starts again") from error
    try:
        return State.model_validate_json(text)
    except ValidationError as error:
        fault = error.errors()[0]
        where = ".".join(map(str, fault["loc"])) or "file"
        raise UsageError(
            f"{path}: is not the state of a bisection ({where}: {fault['msg']})", hint="`--fresh` starts again"
        ) from error
