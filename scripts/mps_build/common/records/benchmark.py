"""The record of one benchmark: what ran on what, each row's ratio with its interval, and every doubt about it.

`schemas/benchmark.schema.json` is made from these models (`nox -s dev -- regenerate`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..json_text import read_json
from .device_record import FAILED, Failure, RecordHeader, RecordPart, read_model

SCHEMA: Literal["mps-build/benchmark/1"] = "mps-build/benchmark/1"

RowOutcome = Literal["measured", "wrong", "untrusted", Failure]
BAD: tuple[RowOutcome, ...] = ("wrong", "untrusted", *FAILED)
BenchmarkVerdict = Literal["measured", "rehearsed", "doubtful", "not_verified"]


class Ratio(RecordPart):
    """How many times as fast as the CPU: a median of pairs, and its 99 % interval."""

    median: float
    low: float
    high: float


class Flag(RecordPart):
    """A doubt: `wrong_result`, `unsynchronised`, `beyond_ceiling`, `gpu_fault` withhold a ratio; `drift` does not."""

    id: str
    text: str


class Row(RecordPart):
    """One model or kernel in one mode. `ratio` is None where it is withheld; `seconds` are of one step."""

    name: str
    mode: str
    outcome: RowOutcome
    ratio: Ratio | None = None
    flags: tuple[Flag, ...] = ()
    reason: str | None = None
    size: dict[str, int] = Field(default_factory=dict)
    batch: int | None = None
    reduced: str | None = None
    lowered: tuple[str, ...] = ()
    dtype: str | None = None
    cpu_dtype: str | None = None
    facts: dict[str, Any] = Field(default_factory=dict)
    first_step_seconds: dict[str, float] = Field(default_factory=dict)
    agreement: dict[str, Any] = Field(default_factory=dict)
    pairs: int | None = None
    steps: dict[str, int] = Field(default_factory=dict)
    seconds: dict[str, float] = Field(default_factory=dict)
    samples: dict[str, tuple[float, ...]] = Field(default_factory=dict)
    drift: dict[str, float] = Field(default_factory=dict)
    flops_per_second: float | None = None
    bytes_per_second: float | None = None
    flops_of_ceiling: float | None = None
    bytes_of_ceiling: float | None = None
    row_seconds: float | None = None
    thermal: dict[str, Any] | str = "not recorded"

    @property
    def id(self) -> str:
        """Name and mode, as `--only` takes it: "bert:training"."""
        return f"{self.name}:{self.mode}"


class SkippedRow(RecordPart):
    """A row that was not measured, and why."""

    name: str
    mode: str
    reason: str


class BenchmarkRecord(RecordHeader):
    """One run of `benchmark_mps`: every row's ratio with its interval, and every reason to doubt it."""

    schema_: Literal["mps-build/benchmark/1"] = Field(default=SCHEMA, alias="schema")
    verdict: BenchmarkVerdict
    cpu: dict[str, Any] = Field(default_factory=dict)
    ceilings: dict[str, float] = Field(default_factory=dict)
    ceilings_of: dict[str, str] = Field(default_factory=dict)
    thermal: dict[str, Any] = Field(default_factory=dict)
    sentinel: tuple[dict[str, Any], ...] = ()
    sessions: tuple[dict[str, Any], ...] = ()
    flags: tuple[Flag, ...] = ()
    rows: tuple[Row, ...] = ()
    skipped: tuple[SkippedRow, ...] = ()
    missing: tuple[str, ...] = ()

    def row(self, row_id: str) -> Row | None:
        """Return the row of an id such as `resnet50:training`."""
        return next((row for row in self.rows if row.id == row_id), None)


def is_benchmark(path: Path) -> bool:
    """True for a file that calls itself a benchmark's record, of this schema or another."""
    try:
        document = read_json(path)
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and str(document.get("schema", "")).startswith("mps-build/benchmark/")


def load_benchmark(path: Path) -> BenchmarkRecord:
    """Return the record in `path`.

    Raises:
        UsageError: no such file, no JSON, no record of a benchmark, one of another schema, or a damaged one.
    """
    hint = "a benchmark is compared with a benchmark: `nox -s benchmark_mps` writes them"
    return read_model(path, BenchmarkRecord, schema=SCHEMA, hint=hint)
