"""A recorded host: what each probe answered, as a JSON file that replays anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mps_build import __version__
from mps_build.common.errors import UsageError
from mps_build.common.files import named, open_regular
from mps_build.common.json_text import parse_json
from mps_build.common.process import Captured

SCHEMA_VERSION = 1
# A whole Mac is well under 1 MB; more than this is another kind of file.
LARGEST_BYTES = 20_000_000

_HOW = "a recording is made on a Mac by: nox -s doctor -- --record FILE"


class RecordedProbe(BaseModel):
    """One command and what it answered; `env` are variables that were set for it, `exit` null is not known.

    `timed_out`: it did not answer, which says nothing of what it was queried about.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    argv: tuple[str, ...] = Field(min_length=1)
    stdout: str = ""
    stderr: str = ""
    exit: int | None = None
    env: dict[str, str] = Field(default_factory=dict)
    timed_out: bool = False

    def words(self) -> tuple[str, ...]:
        """Return the argv, with the variables written out before it."""
        return (*(f"{name}={value}" for name, value in self.env.items()), *self.argv)


class Recording(BaseModel):
    """A recorded host. Only `probes` is needed: a recording may be written by hand."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    schema_version: int = Field(default=SCHEMA_VERSION, alias="schema")
    recorded_on: str | None = None
    tool: str | None = None
    tool_version: str | None = None
    probes: tuple[RecordedProbe, ...]


def load_recording(path: Path) -> Recording:
    """Return the recording in `path`.

    Raises:
        UsageError: there is no such file, it is too long, no UTF-8, no JSON, of a newer
            schema, not of a recording's form, or holds a probe two times.
    """
    return recording_of(load_document(path), name=str(path))


def load_document(path: Path) -> Any:
    """Return the JSON document in `path`, or raise a UsageError that says what is wrong with the file."""
    try:
        with named(path), open_regular(path) as file:
            size = max(os.fstat(file.fileno()).st_size, len(data := file.read(LARGEST_BYTES + 1)))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", hint=_HOW) from error
    if size > LARGEST_BYTES:
        raise UsageError(
            f"{path}: is {size / 1e6:.0f} MB long; a recording has less than {LARGEST_BYTES / 1e6:.0f} MB", hint=_HOW
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(
            f"{path}:{line}: is not UTF-8: byte {data[error.start]:#04x} at {error.start}", hint=_HOW
        ) from error
    try:
        return parse_json(text)
    except ValueError as error:
        line, why = (error.lineno, error.msg) if isinstance(error, json.JSONDecodeError) else (1, str(error))
        raise UsageError(f"{path}:{line}: is not JSON: {why}", hint=_HOW) from error


def recording_of(document: Any, *, name: str) -> Recording:
    """Return a JSON document as a recording; `name` stands for the file in messages."""
    if not isinstance(document, dict) or "probes" not in document:
        raise UsageError(f"{name}: is not a recording: it has no `probes`", hint=_HOW)
    schema = document.get("schema", SCHEMA_VERSION)
    if isinstance(schema, int) and schema > SCHEMA_VERSION:
        raise UsageError(
            f"{name}: has schema {schema}, and this mps-build reads up to {SCHEMA_VERSION}",
            hint="update mps-build, then run the same command again",
        )
    try:
        recording = Recording.model_validate(document)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:10]]
        raise UsageError(f"{name}: is not a recording:\n  " + "\n  ".join(faults)) from error
    if repeated := _repeated(probe.words() for probe in recording.probes):
        raise UsageError(
            f"{name}: holds a probe two times: {' '.join(repeated)}", hint="delete the wrong one of the two"
        )
    return recording


def recording_document(answers: Iterable[Captured], *, recorded_on: str, tool: str) -> dict[str, Any]:
    """Return answers as the JSON document of a recording (not scrubbed yet)."""
    probes = [
        {"argv": list(a.argv), "stdout": a.stdout, "stderr": a.stderr, "exit": a.exit}
        | ({"timed_out": True} if a.timed_out else {})
        for a in answers
    ]
    return {
        "schema": SCHEMA_VERSION,
        "recorded_on": recorded_on,
        "tool": tool,
        "tool_version": __version__,
        "probes": probes,
    }


def _repeated(rows: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
    seen: set[tuple[str, ...]] = set()
    for row in rows:
        if row in seen:
            return row
        seen.add(row)
    return None
