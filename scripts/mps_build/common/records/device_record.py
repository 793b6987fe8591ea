"""The record of one verification: what was run on what, and how each case ended. One JSON, written as it grows.

`schemas/record.schema.json` is made from these models (`nox -s schemas`).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..errors import UsageError
from ..files import write_whole
from ..json_model import checked
from ..json_text import load_json
from ..json_text import to_json as text_of
from ..scrubbing.scrubber import without_secrets

SCHEMA: Literal["mps-build/record/1"] = "mps-build/record/1"

Result = Literal["passed", "failed", "known", "unexpected_pass", "crashed", "timeout", "skipped", "own_fault"]
Failure = Literal["failed", "crashed", "timeout"]
FAILED: tuple[Failure, ...] = get_args(Failure)
Verdict = Literal["verified", "rehearsed", "regressed", "known_issues_only", "not_verified"]
PlantResult = Literal["caught", "missed", "not_exercised", "error"]
Letter = Literal["bug", "limit", "suite"]


_Model = TypeVar("_Model", bound=BaseModel)


class RecordPart(BaseModel):
    """A part of a record: it stays as it was written, and what a later version adds is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Explained(RecordPart):
    """Why a case fails on the simulated device: a bug of PyTorch's host code, or a limit of the simulation.

    `id` is the row of simulated_explanations.yaml.
    """

    id: str
    letter: Letter
    link: str | None = None
    reason: str


class Case(RecordPart):
    """One case; `largest` and `bound` are the largest error of any comparison, and what it may be.

    `file` is the suite's file that asks it, `finding` the name of what its failure comes down to.
    """

    id: str
    layer: str
    issue: tuple[str, ...] = ()
    outcome: Result
    reason: str | None = None
    error: dict[str, Any] | None = None
    largest: float | None = None
    bound: float | None = None
    seconds: float | None = None
    known_issue: str | None = None
    file: str | None = None
    explained: Explained | None = None
    finding: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether it failed and nothing explains it."""
        return self.outcome in FAILED and self.explained is None

    @property
    def is_drawn(self) -> bool:
        """Whether its id is an operator, a transformation and a seed, of which the suite makes it."""
        return re.fullmatch(r"\w+:\w+:\d{1,12}", self.id) is not None

    @property
    def is_event(self) -> bool:
        """Whether it is an event of the run, such as a file that cannot be imported: no case that can be repeated."""
        return "::" in self.id


class Finding(RecordPart):
    """What failed cases come down to: one smallest call. Cases that shrink to the same call have the same finding.

    `levels`: what of the call is not the operator's plainest form; with `size`, `shape` and `number` they are the whole
    call. `script`: a program that shows it and needs torch alone; where there is none, `no_script` says why.
    """

    id: str
    operator: str
    transformation: str
    dtype: str | None = None
    levels: dict[str, str] = Field(default_factory=dict)
    size: str | None = None
    shape: tuple[int, ...] | None = None
    number: int | None = None
    script: str | None = None
    no_script: str | None = None


class Estimate(RecordPart):
    """What the run would take, as it was told before the first case: cases, graph keys, wall seconds."""

    cases: int
    keys: int
    low_seconds: float
    high_seconds: float


class WheelFile(RecordPart):
    """The wheel that was installed; `kind` is the audit's word (precompiled metallib, or compiled at first use)."""

    file: str
    sha256: str
    kind: str | None = None


class Torch(RecordPart):
    """The torch under test."""

    version: str | None = None
    commit: str | None = None
    wheel: WheelFile | None = None


class Python(RecordPart):
    """The interpreter that ran the cases; `unchanged` is the listing of a foreign one, before against after."""

    executable: str
    version: str | None = None
    machine: str | None = None
    unchanged: bool | None = None


class KnownIssue(RecordPart):
    """One row of known_issues.yaml that held for this torch on this host."""

    id: str
    link: str
    title: str
    outcome: str
    reason: str
    since: str
    fixed_by: str | None = None
    cases: tuple[str, ...] = ()


class Simulated(RecordPart):
    """What a simulated device answered as: PyTorch's own MPS host code of this release, on a macOS that it was told.

    `source`: the user's tree that it is of, not Debian's. `torch`: what stands below, Debian's or one built from there.
    `official`: it was a macOS wheel itself, its own machine code.
    """

    release: str
    macos: str
    source: str | None = None
    torch: Literal["debian", "built"] = "debian"
    official: bool = False

    @property
    def below(self) -> str:
        """What reports add where it is not Debian's torch that stands below."""
        if self.official:
            return ", by the macOS wheel's own code"
        return ", over a torch built from its tree" if self.torch == "built" else ""


class Explanations(RecordPart):
    """How many failing cases have which letter, and how many have none; `stale` are explained cases that passed."""

    bug: int = 0
    limit: int = 0
    suite: int = 0
    unexplained: int = 0
    stale: tuple[str, ...] = ()


class Concurrency(RecordPart):
    """How a run shared the machine: the cores that it might use, its computing processes, and the threads of each."""

    cores: int
    processes: int
    threads: int


class RecordHeader(RecordPart):
    """What every record says first: what ran on what, and how it ended.

    `statement` is the first line of every report: what this run can and cannot say. `seconds` is wall time.
    """

    tool: str
    tool_version: str | None = None
    statement: str
    exit_code: int
    cause: str | None = None
    hint: str | None = None
    message: str | None = None
    partial: bool
    device: str
    target: dict[str, Any]
    selection: dict[str, Any] = Field(default_factory=dict)
    torch: Torch = Field(default_factory=Torch)
    python: Python | None = None
    host: dict[str, Any] = Field(default_factory=dict)
    gpu: dict[str, Any] = Field(default_factory=dict)
    environment: dict[str, Any] = Field(default_factory=dict)
    concurrency: Concurrency | None = None
    plant: PlantResult | None = None
    plant_hits: int | None = None
    notes: tuple[str, ...] = ()
    started: str
    seconds: float

    @field_validator("environment")
    @classmethod
    def _check_environment(cls, value: dict[str, Any]) -> dict[str, Any]:
        if not all(isinstance(value.get(key) or {}, dict) for key in ("kept", "removed")):
            raise ValueError("`kept` and `removed` must map variables to values")
        return value


class Record(RecordHeader):
    """One verification."""

    schema_: Literal["mps-build/record/1"] = Field(default=SCHEMA, alias="schema")
    verdict: Verdict
    known_issues: tuple[KnownIssue, ...] = ()
    simulated: Simulated | None = None
    explanations: Explanations | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    estimate: Estimate | None = None
    findings: tuple[Finding, ...] = ()
    cases: tuple[Case, ...] = ()


def to_json(record: BaseModel) -> dict[str, Any]:
    """Return the record as the document that is written."""
    return record.model_dump(mode="json", by_alias=True)


def write_record(record: BaseModel, path: Path) -> None:
    """Write the record beside its place and rename it: a reader never sees half of one, nor a number JSON has not."""
    write_whole(path, text_of(without_secrets(to_json(record))))


def is_record(document: object) -> bool:
    """True for a document that calls itself a record, of this schema or another."""
    return isinstance(document, dict) and (
        str(document.get("schema", "")).startswith("mps-build/record/") or {"verdict", "cases"} <= document.keys()
    )


def load_record(path: Path) -> Record:
    """Return the record in `path`.

    Raises:
        UsageError: no such file, no JSON, no record, a record of another schema, or a damaged one.
    """
    return read_model(path, Record, schema=SCHEMA, hint="`nox -s verify_mps` writes records")


def read_model(path: Path, model: type[_Model], *, schema: str, hint: str) -> _Model:
    """Return the model that the JSON in `path` holds, once it names that schema.

    Raises:
        UsageError: as for `load_record`; each names the file, and `hint` says who writes the right one.
    """
    document = load_json(path, hint=hint)
    named = document.get("schema") if isinstance(document, dict) else None
    if named != schema:
        found = f"its schema is {named!r}" if named else "it names no schema"
        raise UsageError(f"{path}: is not a record of schema {schema}: {found}", hint=hint)
    return checked(document, model, name=str(path), what="record")
