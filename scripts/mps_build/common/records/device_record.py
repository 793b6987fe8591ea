"""The record of one verification: what was run on what, and how each case ended. One JSON, written as it grows.

`schemas/record.schema.json` is made from these models (`nox -s dev -- regenerate`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, field_validator

from ..errors import UsageError
from ..files import write_whole
from ..json_text import checked, load_json
from ..json_text import to_json as text_of
from ..scrubbing.scrubber import without_secrets

SCHEMA: Literal["mps-build/record/1"] = "mps-build/record/1"

Result = Literal["passed", "failed", "known", "unexpected_pass", "crashed", "timeout", "skipped", "own_fault"]
Failure = Literal["failed", "crashed", "timeout"]
FAILED: tuple[Failure, ...] = get_args(Failure)
Verdict = Literal["verified", "rehearsed", "regressed", "known_issues_only", "not_verified"]
FaultResult = Literal["caught", "missed", "not_exercised", "error"]


_Model = TypeVar("_Model", bound=BaseModel)


class RecordPart(BaseModel):
    """A part of a record: it stays as it was written, and what a later version adds is kept."""

    model_config = ConfigDict(frozen=True, extra="allow")


class Case(RecordPart):
    """One case; `largest` and `bound` are the largest error of any comparison, and what it may be.

    `file` is the suite's file that asks it, `finding` the name of what its failure comes down to. `levels`: of a drawn
    call that is answered wrongly, by factor.
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
    levels: dict[str, str] | None = None
    file: str | None = None
    finding: str | None = None

    @property
    def is_new(self) -> bool:
        """Whether it failed and no known issue says why."""
        return self.outcome in FAILED

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
    """What the run would take, as it was given before the first case: cases, graph keys, wall seconds."""

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
    """One row of known_issues.yaml that held for this torch on this host.

    `kind`: a bug of PyTorch or of Apple, or a limit of the simulation.
    """

    id: str
    kind: str = "bug"
    link: str | None = None
    title: str
    outcome: str
    reason: str
    since: str | None = None
    fixed_by: str | None = None
    cases: tuple[str, ...] = ()


class Simulated(RecordPart):
    """What a simulated device answered as: PyTorch's own MPS host code of this release, on a macOS that it was given.

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
    """How many cases of a simulated device are wrong by bugs, by limits of the simulation, and by nothing known."""

    bug: int = 0
    limit: int = 0
    unexplained: int = 0


class Concurrency(RecordPart):
    """How a run shared the machine: the cores that it might use, its computing processes, and the threads of each."""

    cores: int
    processes: int
    threads: int


class RecordHeader(RecordPart):
    """What every record says first: what ran on what, and how it ended.

    `statement` is the first line of every report: what this run can and cannot say. `seconds` is wall time.
    `fault`: what became of an injected one.
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
    fault: FaultResult | None = None
    fault_hits: int | None = None
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
    """One verification.

    `unmet`: known issues whose cases were queried, and none failed as they say; of a whole run alone.
    """

    schema_: Literal["mps-build/record/1"] = Field(default=SCHEMA, alias="schema")
    verdict: Verdict
    known_issues: tuple[KnownIssue, ...] = ()
    simulated: Simulated | None = None
    explanations: Explanations | None = None
    counts: dict[str, int] = Field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    estimate: Estimate | None = None
    findings: tuple[Finding, ...] = ()
    cases: tuple[Case, ...] = ()


# What `plant` was called became `fault` (how it ended), `fault_hits`, and `inject` of the selection.
_RENAMED = {"fault": "plant", "fault_hits": "plant_hits"}
_RENAMED_CHOICES = {"inject": "plant"}


def _by_new_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record's document by the names of now.

    >>> _by_new_names({"plant": "caught", "selection": {"plant": "f.py:n"}})
    {'selection': {'inject': 'f.py:n'}, 'fault': 'caught'}
    """

    def renamed(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        found = {new: fields[old] for new, old in names.items() if old in fields and fields.get(new) is None}
        return {name: value for name, value in fields.items() if name not in names.values()} | found

    chosen = document.get("selection")
    selection = {"selection": renamed(chosen, _RENAMED_CHOICES)} if isinstance(chosen, dict) else {}
    return renamed(document, _RENAMED) | selection


def _with_old_names(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record's document with the old names beside those of now: they are written until 0.3."""

    def beside(fields: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
        return fields | {old: fields[new] for new, old in names.items() if new in fields}

    chosen = document.get("selection")
    selection = {"selection": beside(chosen, _RENAMED_CHOICES)} if isinstance(chosen, dict) else {}
    return beside(document, _RENAMED) | selection


def _with_known_issues(document: dict[str, Any]) -> dict[str, Any]:
    """Return a record whose failures have `explained` with known issues in its place: so 0.2 wrote them."""
    cases, counts, known = (document.get(name) for name in ("cases", "counts", "known_issues"))
    if not isinstance(cases, list) or not isinstance(known, list) or not isinstance(counts, dict):
        return document
    rows: dict[str, dict[str, Any]] = {}
    counted = Counter({word: number for word, number in counts.items() if isinstance(number, int)})
    made = []
    for case in cases:
        why = case.get("explained") if isinstance(case, dict) else None
        if not isinstance(why, dict) or case.get("outcome") not in FAILED:
            made.append(case)
            continue
        name, reason = str(why.get("id")), str(why.get("reason"))
        row = {
            "id": name,
            "kind": str(why.get("letter")),
            "link": why.get("link"),
            "title": reason,
            "reason": reason,
        }
        rows[name] = {**row, "outcome": "fails"}
        counted[case["outcome"]] -= 1
        counted["known"] += 1
        made.append({**case, "outcome": "known", "known_issue": name, "explained": None})
    return (
        {**document, "cases": made, "counts": dict(counted), "known_issues": [*known, *rows.values()]}
        if rows
        else document
    )


def to_json(record: BaseModel) -> dict[str, Any]:
    """Return the record as the document that is written."""
    return _with_old_names(record.model_dump(mode="json", by_alias=True))


def write_record(record: BaseModel, path: Path) -> None:
    """Write the record beside its place and rename it: a reader never sees half of one, nor a number JSON has not."""
    write_whole(path, text_of(without_secrets(to_json(record))))


def load_record(path: Path) -> Record:
    """Return the record in `path`.

    Raises:
        UsageError: no such file, no JSON, no record, a record of another schema, or a damaged one.
    """
    hint = "`nox -s verify_mps` writes records"
    return read_model(path, Record, schema=SCHEMA, hint=hint, as_now=_with_known_issues)


def read_model(
    path: Path,
    model: type[_Model],
    *,
    schema: str,
    hint: str,
    as_now: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document,
) -> _Model:
    """Return the model that the JSON in `path` holds, once it names that schema.

    Args:
        as_now: makes a document of now of one that an older version wrote.

    Raises:
        UsageError: as for `load_record`; each names the file, and `hint` says who writes the right one.
    """
    document = load_json(path, hint=hint)
    named = document.get("schema") if isinstance(document, dict) else None
    if named != schema:
        found = f"its schema is {named!r}" if named else "it names no schema"
        raise UsageError(f"{path}: is not a record of schema {schema}: {found}", hint=hint)
    return checked(as_now(_by_new_names(document)), model, name=str(path), what="record")
