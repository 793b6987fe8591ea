"""The program of the closed processes: compiles a stranger's kernels and runs them, for the process that judges them.

    python -m mps_build.inspection.kernels.machine.server SOCKET RUNTIME MEMORY

It imports what takes long, then forks a child for each connection. A child says its number, closes itself, and does
what it is asked: requests come pickled from the process that started this one, answers go back as JSON and bytes, and
are read there by a strict decoder (execution/closed.py).
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import socket
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...audit.macho import Malformed
from ..binding.pack import WrongBinding
from ..code import compiler
from ..code.body import body_of, kernel_name
from ..code.text import ModuleText, split_module
from ..execution import fork_server, sandbox
from ..execution.frames import read_frame, write_frame
from ..metadata import parse_metadata
from ..program import Program
from .code import Code, Refused, compile_kernel, narrow_parts, publish_runtime
from .device import Device
from .left import Left
from .modes import Mode
from .runtime import load_runtime

_MOST = 1 << 34  # of what the judging process asks: its own inputs
_WARM = "define void @rt_entry(ptr %a, ptr %i) {\n  ret void\n}\n"

Answer = tuple[dict[str, Any], tuple[bytes, ...]]


class Closed:
    """What a closed child does: one kernel's code, and programs that launch it."""

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._codes: dict[str, Code] = {}
        self._program: Program | None = None

    def text(self, bitcode: bytes) -> Answer:
        """Return a module as LLVM prints it."""
        return {}, (compiler.read_bitcode(bitcode).encode(),)

    def compile(self, name: str, bitcode: bytes, planted: str | None) -> Answer:
        """Compile a kernel, and keep it under its name; or say why there is none."""
        code = compile_kernel(bitcode, planted=planted)
        head = {"metadata": asdict(code.metadata) if code.metadata else None, "body": code.body}
        if isinstance(code, Refused):
            return {**head, "fault": code.fault, "reason": code.reason[:2000]}, ()
        self._codes[name] = code
        variables = [asdict(each) for each in code.variables]
        return {**head, "variables": variables, "is_cooperative": code.is_cooperative}, (code.objectcode,)

    def load(self, name: str, code: Code) -> Answer:
        """Keep a kernel that was compiled before."""
        self._codes[name] = code
        return {}, ()

    def narrow(self, bitcode: bytes, planted: str | None) -> Answer:
        """Return the 32-bit arithmetic that reaches an address."""
        return {"parts": [each[:200] for each in narrow_parts(bitcode, planted)[:1000]]}, ()

    def pair(self, one: bytes | None, other: bytes) -> Answer:
        """Return whether two kernels have the same instructions, and if not how many each has."""
        text = compiler.read_bitcode(other)
        metadata = parse_metadata(text)
        found: dict[str, Any] = {"metadata": asdict(metadata), "is_same": False, "instructions": []}
        if one is None:
            return {**found, "instructions": [_instructions(text)[0]]}, ()
        before = compiler.read_bitcode(one)
        if _lines(split_module(before)) == _lines(split_module(text)):
            return {**found, "is_same": True}, ()
        bodies = _instructions(before), _instructions(text)
        return {**found, "is_same": bodies[0][1] == bodies[1][1], "instructions": [each[0] for each in bodies]}, ()

    def program(self, program: Program) -> Answer:
        """Keep the program that the next runs are of."""
        self._program = program
        return {}, ()

    def run(self, mode: Mode) -> Answer:
        """Run the program; return what it left."""
        assert self._program is not None
        return _left(*Device(self._runtime, self._codes).left_by(self._program, mode))

    def shifted(self, step: Any, shift: Any, groups: Any) -> Answer:
        """Run a step where a shift moves it to; return what it left."""
        return _left(*Device(self._runtime, self._codes).shifted_by(step, shift, groups))


def _left(left: Left, contents: list[bytes]) -> Answer:
    return {"left": asdict(left), "sizes": [len(each) for each in contents]}, tuple(contents)


def _instructions(text: str) -> tuple[int, str]:
    body = body_of(split_module(text), kernel_name(text))
    return body.instructions, body.digest


def _lines(module: ModuleText) -> object:
    return module.types, module.globals, module.definitions


def talk(connection: socket.socket, runtime: Any, memory: int) -> None:
    """Say which process this is, close it, and do what is asked until nobody asks."""
    descriptor = connection.fileno()
    write_frame(descriptor, json.dumps({"pid": os.getpid()}).encode())
    try:
        sandbox.enter(memory, keep=(descriptor,))
    except sandbox.SandboxUnavailable as error:
        write_frame(descriptor, json.dumps({"unavailable": str(error)}).encode())
        return
    gc.disable()
    closed = Closed(runtime)
    while True:
        try:
            _, request = read_frame(descriptor, 0, _MOST)
        except EOFError:
            return
        name, arguments = pickle.loads(request)
        head, parts = _done(getattr(closed, name), arguments)
        write_frame(descriptor, json.dumps(head).encode(), *parts)


def _done(function: Callable[..., Answer], arguments: tuple[Any, ...]) -> Answer:
    try:
        return function(*arguments)
    except Malformed as error:
        return {"failed": "malformed", "text": str(error)[:2000]}, ()
    except WrongBinding as error:
        return {"failed": "binding", "text": str(error)[:2000]}, ()
    except MemoryError:
        return {"failed": "memory", "text": "it needs more memory than it may have"}, ()
    except Exception as error:
        return {"failed": "fault", "text": f"{type(error).__name__}: {error}"[:2000]}, ()


def main() -> None:
    """Import, compile one kernel so that LLVM is warm, and serve."""
    path, file, memory = sys.argv[1:]
    fork_server.isolate()
    compiler.host_target()
    runtime = None
    if file:
        runtime = load_runtime(Path(file))
        publish_runtime(runtime)
    module = compiler.parse_text(_WARM)
    Code(metadata=None, body="", variables=(), is_cooperative=False, objectcode=compiler.compile_module(module)).entry()  # type: ignore[arg-type]
    sandbox.prove()
    gc.collect()
    gc.freeze()
    fork_server.serve(path, lambda connection: talk(connection, runtime, int(memory)))


if __name__ == "__main__":
    fork_server.run(sys.argv[1], main)
