"""Asks the judge: a view, the name of a reference and its inputs; the answer is an error in ulp."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ..execution.closed import connected
from ..execution.frames import BrokenTalk, TooLate, read_frame, write_frame
from ..execution.sandbox import SandboxUnavailable
from ..program.launch import Buffer, Reference, View, dense_strides
from .references import load_references

_MOST_TEXT = 1 << 16
_SECONDS = 150.0
_BINS = 64


class NoAnswer(Exception):
    """The judge could not answer: the reference is at fault, not the kernel."""


class NoReference(Exception):
    """torch has no such operator in that type on the CPU: there is nothing to hold the kernel against."""


class Answer(BaseModel):
    """What the judge says of a result, in units of the last place; `index` and what follows: of the worst element."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    max_ulp: float
    bound_ulp: float
    wrong: int = Field(ge=0)
    count: int = Field(ge=0)
    cpu_ulp: float = 0.0
    explained: list[str] = Field(default=[], max_length=64)
    profile: list[float] | None = Field(default=None, max_length=_BINS)
    index: int | None = None
    got: str = Field(default="", max_length=400)
    want: str = Field(default="", max_length=400)
    cpu: str | None = Field(default=None, max_length=400)
    ulp: float | None = None
    inputs: dict[str, str] = Field(default={}, max_length=64)


class _Said(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    error: str = ""
    is_missing: bool = False
    unavailable: str = ""


class Judge:
    """A connection to a judge's socket; `connect` waits for a judge that is still importing torch."""

    def __init__(self, path: Path, *, seconds: float = 180.0) -> None:
        self._path, self._seconds = path, seconds
        self._socket = connected(path, seconds)

    def close(self) -> None:
        """Close the connection; its process ends."""
        self._socket.close()

    def ask(self, check: Reference, contents: Mapping[int, bytes], known: Sequence[str] = ()) -> Answer:
        """Return the judge's answer: max_ulp, bound_ulp, wrong (how many), and the worst element.

        Args:
            known: the known issues that may explain wrong elements: these are counted apart, as `explained`.

        Raises:
            NoAnswer: torch could not compute the reference.
            NoReference: torch has no such operator in the kernel's type.
            SandboxUnavailable: the judge cannot close itself.
        """
        question, buffers = question_of(check, contents, known)
        try:
            write_frame(self._socket.fileno(), json.dumps(question).encode(), *buffers)
            text, _ = read_frame(self._socket.fileno(), _MOST_TEXT, 0, time.monotonic() + _SECONDS)
        except (OSError, EOFError, BrokenTalk, TooLate) as error:
            self.close()
            self._socket = connected(self._path, self._seconds)
            raise NoAnswer(f"reference {check.name}: the process that computes it has ended") from error
        return _decoded(text, check.name)


def _decoded(text: bytes, name: str) -> Answer:
    try:
        return Answer.model_validate_json(text)
    except ValidationError as error:
        try:
            said = _Said.model_validate_json(text)
        except ValidationError:
            raise NoAnswer(f"reference {name}: what came is no answer: {error.errors()[0]['msg']}") from error
        if said.unavailable:
            raise SandboxUnavailable(said.unavailable) from None
        if said.is_missing:
            raise NoReference(f"torch's CPU has no {name} in this type: {said.error}") from None
        raise NoAnswer(f"reference {name}: {said.error}") from None


def question_of(
    check: Reference, contents: Mapping[int, bytes], known: Sequence[str] = ()
) -> tuple[dict[str, Any], list[bytes]]:
    """Return a question, its inputs in the order of the row's parameters, and the bytes of its buffers.

    Raises:
        NoAnswer: there is no such row, or it takes other inputs.
    """
    buffers: list[bytes] = []
    numbers: dict[int, int] = {}

    def view(one: View) -> dict[str, Any]:
        key = id(one.buffer)
        if key not in numbers:
            numbers[key] = len(buffers)
            buffers.append(_bytes_of(one.buffer, contents))
        strides = one.strides if one.strides is not None else dense_strides(one.shape)
        return {
            "buffer": numbers[key],
            "dtype": one.dtype.torch,
            "shape": list(one.shape),
            "strides": list(strides),
            "offset": one.offset,
        }

    parameters = load_references().get(check.name, {}).get("parameters")
    if parameters is None:
        raise NoAnswer(f"there is no reference {check.name}")
    # A launch's number may not matter to its reference (an order to the norms that have none); a tensor must.
    if unknown := {name for name, each in check.inputs.items() if isinstance(each, View)} - set(parameters):
        raise NoAnswer(f"reference {check.name} takes no {', '.join(sorted(unknown))}")
    question: dict[str, Any] = {
        "name": check.name,
        "got": view(check.got),
        "inputs": [_input(check.inputs[name], view) if name in check.inputs else None for name in parameters],
        "ulp": check.ulp,
        "scale": check.scale,
        "known": list(known),
    }
    return {**question, "sizes": [len(each) for each in buffers]}, buffers


def _input(value: object, view: Any) -> dict[str, Any]:
    return {"view": view(value)} if isinstance(value, View) else {"value": value}


def _bytes_of(buffer: Buffer, contents: Mapping[int, bytes]) -> bytes:
    """What an input held before the run, and an output after it."""
    if buffer.role in ("input", "inout") and buffer.data:
        return buffer.data if buffer.role == "input" else contents.get(id(buffer), buffer.data)
    return contents.get(id(buffer), buffer.data)
