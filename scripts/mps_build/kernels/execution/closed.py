"""Processes that may only compute, from outside: given requests and limits, and never believed.

What one says is a message of a known form and length, or the process is ended; what a
verdict rests on are the bytes that its kernels left.
"""

from __future__ import annotations

import mmap
import os
import pickle
import signal
import socket
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from ...inspection.limits import Malformed
from ..code.compiled import Code, Refused, Variable
from ..code.compiler import Processor
from ..machine.checks import RunCheck
from ..machine.left import BadReport, Left, buffers_of
from ..machine.runner import Runner
from ..machine.shift import Shift, outputs_of
from ..program.launch import Program, Step, WrongBinding, memory_of
from ..read.metadata import Metadata, is_bounded
from .fork_server import ServerFailed, connect, status_of
from .frames import BrokenTalk, TooLate, read_frame, write_frame
from .sandbox import SandboxUnavailable

# What a closed process may say: each answer's form, read strictly, with every number, list and text bounded.

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
Text = Annotated[str, Field(max_length=2000)]


class Pid(BaseModel):
    """Which process it is: in its namespace, and as those outside of it have it."""

    model_config = STRICT
    pid: Annotated[int, Field(gt=0, lt=1 << 31)]
    outer: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


class Failed(BaseModel):
    """What went wrong with a request."""

    model_config = STRICT
    failed: Literal["malformed", "binding", "memory", "fault"]
    text: Text


class Unavailable(BaseModel):
    """The process could not be closed."""

    model_config = STRICT
    unavailable: Text


class Nothing(BaseModel):
    """It was done."""

    model_config = STRICT


class Compiled(BaseModel):
    """A kernel's code, whose bytes follow."""

    model_config = STRICT
    metadata: Metadata
    body: Annotated[str, Field(max_length=64)]
    variables: Annotated[tuple[Variable, ...], Field(max_length=64)]
    is_cooperative: bool


class NotCompiled(BaseModel):
    """Why a kernel has no code."""

    model_config = STRICT
    metadata: Metadata | None
    body: Annotated[str, Field(max_length=64)]
    fault: Literal["refused", "not_compiled", "beyond"]
    reason: Text


class CompiledOrNot(RootModel[Compiled | NotCompiled]):
    """The answer to a compilation."""


class Addressing(BaseModel):
    """How a kernel makes its addresses; no metadata where it holds what no kernel has."""

    model_config = STRICT
    metadata: Metadata | None
    body: Annotated[str, Field(max_length=64)]
    narrow: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000)]
    digest: Annotated[str, Field(max_length=64)]


class Pair(BaseModel):
    """Two kernels side by side, or one alone; of what is not the same the second's metadata and the instructions."""

    model_config = STRICT
    metadata: Metadata | None
    is_same: bool
    instructions: Annotated[list[Annotated[int, Field(ge=0, lt=1 << 31)]], Field(max_length=2)]


class Ran(BaseModel):
    """What a run left; its buffers' bytes follow, so many of each, but for those `same` as after the first run."""

    model_config = STRICT
    left: Left
    sizes: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=256)]
    same: Annotated[list[bool], Field(max_length=256)] = Field(default_factory=list)


# Of the wall clock, for what the runtime's own clock (seconds of the processor, each launch) cannot end.
RUN_SECONDS = 180.0
COMPILE_SECONDS = 120.0
MOST_TEXT = 4 << 20
MOST_RESIDENT = 4 << 30
MOST_OBJECT = 64 << 20
MOST_PRINTED = 256 << 20


class Ended(Exception):
    """The closed process is gone, or was ended: `outcome` crashed or timeout, and why in words."""

    def __init__(self, outcome: Literal["crashed", "timeout"], reason: str) -> None:
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


class OurFault(Exception):
    """What we run inside a closed process failed by itself."""


class _TooMuch(Exception):
    """It holds more memory than it may."""


_Record = TypeVar("_Record", bound=BaseModel)
_Self = TypeVar("_Self", bound="_Closed")


class _Closed:
    """One closed process; `with` ends it."""

    def __init__(self, path: Path) -> None:
        self._path, self._pid, self._outer = path, 0, 0
        self._socket = connected(path, 60)
        text, _ = self._heard(0, time.monotonic() + 60)
        said = Pid.model_validate_json(text)  # said before anything of a stranger's was there
        self._pid, self._outer = said.pid, said.outer

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process: nobody asks it any more."""
        self._socket.close()

    def _answer(
        self, kind: type[_Record], most: int, seconds: float, name: str, *arguments: object
    ) -> tuple[_Record, bytes]:
        with suppress(BrokenPipeError):  # what it said last, or its status, tells why
            write_frame(self._socket.fileno(), b"", pickle.dumps((name, arguments), protocol=5))
        text, data = self._heard(most, time.monotonic() + seconds)
        try:
            return kind.model_validate_json(text), data
        except ValidationError as error:
            self._failed(text, error)
            raise AssertionError from error

    def _heard(self, most: int, until: float) -> tuple[bytes, bytes]:
        try:
            return read_frame(self._socket.fileno(), MOST_TEXT, most, until, self._watch)
        except (EOFError, OSError):
            status = self._end(now=False)
            raise Ended("crashed", f"its process ended by {_in_words(status)}") from None
        except TooLate:
            self._end(now=True)
            raise Ended("timeout", "it did not end in time") from None
        except BrokenTalk as error:
            self._end(now=True)
            raise Ended("crashed", f"its process sent {error}") from None
        except _TooMuch as error:
            self._end(now=True)
            raise Ended("crashed", str(error)) from None

    def _watch(self) -> None:
        """Look at the memory that the process has touched: on sparse tensors its address space says nothing."""
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{self._outer}/statm").read_text(encoding="ascii").split()[1])
            if (size := pages * mmap.PAGESIZE) > MOST_RESIDENT:
                raise _TooMuch(f"its process holds {size >> 20} MB of memory, of {MOST_RESIDENT >> 20} that it may")

    def _failed(self, text: bytes, error: ValidationError) -> None:
        """Raise what the process says went wrong; what is no message at all ends it."""
        try:
            said = Failed.model_validate_json(text)
        except ValidationError:
            pass
        else:
            if said.failed == "malformed":
                raise Malformed(said.text)
            if said.failed == "binding":
                raise WrongBinding(said.text)
            if said.failed == "memory":
                self._end(now=True)
                raise Ended("crashed", said.text)
            raise OurFault(said.text)
        try:
            raise SandboxUnavailable(Unavailable.model_validate_json(text).unavailable)
        except ValidationError:
            self._end(now=True)
            first = error.errors()[0]
            raise Ended("crashed", f"its process sent what is no answer: {first['msg']}"[:300]) from None

    def _end(self, *, now: bool) -> int:
        self._socket.close()
        try:
            return status_of(str(self._path), self._pid, end=now)
        except OSError:
            return 0


def _left(record: Ran, data: bytes, first: Sequence[bytes] | None = None) -> tuple[Left, list[bytes]]:
    """Return what a run left. A process that lies by `same` could have sent the same bytes as well."""
    if record.same and (first is None or len(record.same) != len(first)):
        raise BadReport("it tells of a first run that there was not")
    sent, at = [], 0
    for size in record.sizes:
        sent.append(data[at : at + size])
        at += size
    if not record.same or first is None:
        return record.left, sent
    if len(sent) != record.same.count(False):
        raise BadReport("it tells of other buffers than it sends")
    rest = iter(sent)
    contents = [before if is_same else next(rest) for before, is_same in zip(first, record.same, strict=True)]
    return record.left, contents


def connected(path: Path, seconds: float) -> socket.socket:
    """Return a connection to a server of closed processes.

    Raises:
        SandboxUnavailable: it cannot close a process here.
        OurFault: it could not begin.
    """
    try:
        return connect(str(path), seconds)
    except ServerFailed as error:
        name, _, text = str(error).partition(": ")
        raise SandboxUnavailable(text) if name == "SandboxUnavailable" else OurFault(str(error)) from error


def _in_words(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "a system call that it may not make" if number == signal.SIGSYS else f"signal {number}"
    return f"exit {os.WEXITSTATUS(status)}"


class Reader(_Closed):
    """Reads and compiles bitcode (code/server.py)."""

    def text(self, bitcode: bytes) -> str:
        """Return a module as LLVM prints it.

        Raises:
            Malformed: LLVM cannot read it.
        """
        _, data = self._answer(Nothing, MOST_PRINTED, COMPILE_SECONDS, "text", bitcode)
        return data.decode("utf-8", "replace")

    def compile(
        self,
        bitcode: bytes,
        injected: str | None = None,
        *,
        simulated: bool = False,
        machine: Processor | None = None,
    ) -> Code | Refused:
        """Return a kernel's code, or why there is none.

        Args:
            simulated: code for the simulated device and millions of threads: it takes four times as long to compile.
            machine: the processor that it is for; None: this machine.
        """
        given = (bitcode, injected, simulated, machine)
        record, data = self._answer(CompiledOrNot, MOST_OBJECT, COMPILE_SECONDS, "compile", *given)
        found = record.root
        if found.metadata is not None and not is_bounded(found.metadata):
            return Refused(reason="its metadata has sizes that no kernel has", fault="refused")
        if isinstance(found, NotCompiled):
            return Refused(reason=found.reason, fault=found.fault, metadata=found.metadata, body=found.body)
        if not all(each.is_possible for each in found.variables):
            return Refused(reason="its threadgroup memory lies where none can", fault="refused")
        return Code(
            metadata=found.metadata,
            body=found.body,
            variables=found.variables,
            is_cooperative=found.is_cooperative,
            objectcode=data,
        )

    def addressing(self, bitcode: bytes, injected: str | None = None) -> Addressing:
        """Return how a kernel makes its addresses.

        Raises:
            Malformed: it cannot be read.
        """
        return self._answer(Addressing, 0, COMPILE_SECONDS, "addressing", bitcode, injected)[0]

    def pair(self, one: bytes | None, other: bytes) -> Pair:
        """Return two kernels side by side.

        Raises:
            Malformed: one of them cannot be read.
        """
        return self._answer(Pair, 0, COMPILE_SECONDS, "pair", one, other)[0]


class Machine(_Closed, Runner):
    """Runs programs of kernels (machine/server.py): whatever they do to their process ends with it."""

    def __init__(self, path: Path, library: Any, codes: dict[str, Code]) -> None:
        _Closed.__init__(self, path)
        Runner.__init__(self, library, codes)
        self._program: Program | None = None
        self._first: list[bytes] | None = None
        self.load(codes)

    def load(self, codes: dict[str, Code]) -> None:
        """Go on with other kernels; nothing of the memory of those before stays open."""
        self.codes, self._program, self._first = codes, None, None
        self._answer(Nothing, 0, RUN_SECONDS, "load", codes)

    def left_by(self, program: Program, checks: Sequence[RunCheck]) -> tuple[Left, list[bytes]]:
        """Run a program; return what it left, and the bytes of the buffers that it may write."""
        sent = None
        if program is not self._program:
            sent = replace(program, checks=())  # what its results must be is no matter of who runs it
            self._program, self._first = program, None
        most = sum(each.size for each in buffers_of(program) if each.role != "input")
        left, contents = _left(*self._answer(Ran, most, RUN_SECONDS, "run", sent, checks), self._first)
        self._first = self._first or contents
        return left, contents

    def shifted_by(self, step: Step, shift: Shift, groups: Sequence[int] | None) -> tuple[Left, list[bytes]]:
        """Run a step where a shift moves it to; return what it left, and the moved bytes of its outputs."""
        memory = memory_of(step)
        most = sum(memory[key].size for key in outputs_of(step))
        return _left(*self._answer(Ran, most, RUN_SECONDS, "shifted", step, shift, groups))
