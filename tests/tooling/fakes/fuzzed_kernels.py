"""Mutated bitcode, and mutated messages of a closed process: each is refused or answered, and nothing else suffers."""

from __future__ import annotations

import atexit
import json
import os
import socket
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from unittest.mock import patch

from mps_build.inspection.limits import Malformed
from mps_build.kernels.code.compiled import Code
from mps_build.kernels.execution import closed, pool
from mps_build.kernels.execution.closed import Ended, Machine, OurFault, Reader
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.execution.sandbox import SandboxUnavailable
from mps_build.kernels.execution.servers import Started, servers
from mps_build.kernels.execution.store import Store
from mps_build.kernels.execution.worker import Turns
from mps_build.kernels.machine.checks import Aligned, TimeLimit
from mps_build.kernels.machine.left import BadReport
from mps_build.kernels.machine.runtime import load_runtime
from mps_build.kernels.program.launch import Program, Step, WrongBinding, input_buffer, output_buffer
from pydantic import ValidationError
from small_kernels import bitcode, compiled, doubled, floats, pack_floats, summed

_GOOD_AGAIN = 10  # after so many inputs a right kernel must still be right


class _Running:
    """The servers, started at the first input and ended with this process."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._started: Started | None = None
        self.count = 0

    def get(self) -> Started:
        if self._started is None:
            folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="mps-fuzz-")))
            fake = folder / "python"
            fake.write_text("#!/bin/sh\nexec sleep 100000\n")
            fake.chmod(0o755)
            self._started = self._stack.enter_context(servers(folder, fake, dict(os.environ)))
            self.turns = Turns(self._started.machine, load_runtime(self._started.runtime))
            self._stack.callback(self.turns.end)
            atexit.register(self._stack.close)
        return self._started


_RUNNING = _Running()


@cache
def modules() -> dict[str, bytes]:
    """Return the bitcode that is mutated."""
    return {"doubled": bitcode(doubled()), "summed": bitcode(summed())}


def _program(name: str) -> Program:
    arguments: dict[str | int, object] = {"out": output_buffer(256), "in": input_buffer(pack_floats(*range(64)))}
    step = Step(kernel=name, arguments=arguments, grid=(64, 1, 1), threadgroup=(64, 1, 1), free=False)  # type: ignore[arg-type]
    return Program(label="", steps=[step], checks=[])


def read_bitcode(name: str, data: bytes, folder: Path) -> None:
    """Have a module compiled, and run what is compiled, in closed processes that others share."""
    started = _RUNNING.get()
    with suppress(Malformed, Ended, WrongBinding, BadReport):
        _verdict(started, data)
    _RUNNING.count += 1
    if _RUNNING.count % _GOOD_AGAIN == 0:
        verdict = _verdict(started, modules()["doubled"], [2.0 * each for each in range(64)])
        assert verdict.outcome == "passed", f"a right kernel is no longer right: {verdict}"


def _verdict(started: Started, data: bytes, want: list[float] | None = None) -> Verdict:
    """Return what is said of a kernel; without `want` it passes if it ran to its end."""
    with Reader(started.reader) as reader:
        code = reader.compile(data)
    if not isinstance(code, Code):
        return Verdict(outcome="not_compiled", reason=code.reason)
    requested = _program(code.metadata.function)

    def examine(machine: Machine) -> Verdict:
        ran = machine.run(requested, (TimeLimit(200),))
        if ran.troubles:
            return Verdict(outcome="crashed", reason=ran.troubles[0].text)
        is_right = want is None or list(floats(ran, requested.steps[0].arguments["out"])) == want  # type: ignore[arg-type]
        return Verdict(outcome="passed" if is_right else "wrong")

    return _RUNNING.turns.examined({code.metadata.function: code}, examine)


@cache
def _compiled() -> Code:
    code = compiled(doubled())
    assert isinstance(code, Code)
    return code


_LAUNCH = {
    "step": 0, "status": 1, "signal": 11, "address": 4096, "thread": [1, 0, 0], "divergent": 0, "threads": 4,
    "inactive": 0, "races": 1, "race_kind": 1, "race_address": 4096, "race_threads": [1, 2], "unwritten": 0,
    "places": [{"slot": 0, "address": 4096, "size": 8, "name": "in"}], "spoilt": [[0, 9]],
}  # fmt: skip
_METADATA = {
    "function": "doubled", "max_threads": None, "arrays": [3], "types": [],
    "arguments": [{"index": 0, "name": "a", "kind": "buffer", "type": "float", "slot": 0, "access": "read", "space": 1,
                   "size": None, "element": 4, "align": 4,
                   "fields": [{"name": "f", "type": "int", "offset": 0, "size": 4, "length": 0, "fields": []}]}],
}  # fmt: skip
MESSAGES: Mapping[str, object] = {
    "ran": {"left": {"launches": [_LAUNCH], "changed": [[0, 1]], "names": ["in", "out"]}, "sizes": [256]},
    "compiled": {"metadata": _METADATA, "body": "x", "variables": [], "is_cooperative": False},
    "refused": {"metadata": _METADATA, "body": "x", "fault": "refused", "reason": "so"},
    "addressing": {"metadata": _METADATA, "body": "x", "narrow": ["%a = mul i32"], "digest": "x"},
    "pair": {"metadata": _METADATA, "is_same": True, "instructions": [3, 4]},
    "failed": {"failed": "fault", "text": "so"},
    "line": {"event": "done", "function": 1, "verdict": {"outcome": "passed"}},
}


def read_message(name: str, data: bytes, folder: Path) -> None:
    """Have a message taken for what a closed process, a worker, or a file of the cache says."""
    if name == "line":
        try:
            pool._Said.model_validate_json(data)
        except (ValidationError, ValueError):
            return
        return
    if name == "entry":
        store = Store(folder / "store", "v")
        store.path(b"bits").parent.mkdir(parents=True, exist_ok=True)
        store.path(b"bits").write_bytes(data)
        assert store.load(b"bits") in (None, _compiled())
        return
    ours, theirs = socket.socketpair()
    with ours, theirs, patch.object(closed, "connected", lambda path, seconds: ours), \
            patch.object(closed, "status_of", lambda path, pid, end: 0):  # fmt: skip
        text = data
        theirs.sendall(closed_frame(b'{"pid": 5}'))
        theirs.sendall(closed_frame(b"{}") if name == "ran" else b"")
        theirs.sendall(closed_frame(text, b"\1" * 256 if name == "ran" else b""))
        theirs.shutdown(socket.SHUT_WR)
        try:
            _ask(name)
        except (Ended, BadReport, OurFault, Malformed, WrongBinding, SandboxUnavailable):
            return


def closed_frame(text: bytes, data: bytes = b"") -> bytes:
    return len(text).to_bytes(4, "little") + len(data).to_bytes(8, "little") + text + data


def _ask(name: str) -> None:
    if name == "ran":
        requested = _program("doubled")
        ran = Machine(Path("x"), None, {"doubled": _compiled()}).run(requested, (Aligned(),))
        assert [len(each) for each in ran.contents.values()] == [256, 256]
        return
    reader = Reader(Path("x"))
    if name in ("compiled", "refused", "failed"):
        reader.compile(b"")
    elif name == "addressing":
        assert all(isinstance(each, str) for each in reader.addressing(b"").narrow)
    else:
        reader.pair(b"", b"")


def messages() -> dict[str, bytes]:
    """Return the messages that are mutated, and an entry of the cache."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), "v")
        store.save(b"bits", _compiled())
        entry = store.path(b"bits").read_bytes()
    return {"entry": entry, **{name: json.dumps(each).encode() for name, each in MESSAGES.items()}}
