"""The program of the closed processes that run kernels, whose code is loaded here and nowhere else.

python -m mps_build.kernels.machine.server SOCKET MEMORY RUNTIME
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..code.compiled import Code
from ..execution import fork_server, sandbox
from ..execution.child import Answer, talk
from ..program.launch import Program, Step
from .checks import RunCheck
from .device import Device
from .left import Left
from .runtime import load_runtime
from .shift import Shift


class Machine:
    """What can be requested of one closed process: to hold code, and to launch programs of it."""

    def __init__(self, runtime: Any) -> None:
        self._codes: dict[str, Code] = {}
        self._device = Device(runtime, self._codes)
        self._program: Program | None = None
        self._first: list[bytes] | None = None

    def load(self, codes: dict[str, Code]) -> Answer:
        """Take kernels by their names, in the place of those before; all memory is as in a new process."""
        self._device.clear()
        self._codes.clear()
        self._codes |= codes
        self._program = self._first = None
        return {}, ()

    def run(self, program: Program | None, checks: Sequence[RunCheck]) -> Answer:
        """Run a program (None: the last one) and return what it left, but for bytes that are as after its first run."""
        if program is not None:
            self._program, self._first = program, None
        assert self._program is not None
        left, contents = self._device.left_by(self._program, checks)
        if self._first is None:
            self._first = contents
            return _answer(left, contents)
        same = [one == other for one, other in zip(contents, self._first, strict=True)]
        sent = [data for data, is_same in zip(contents, same, strict=True) if not is_same]
        return {"left": left.record(), "sizes": [len(each) for each in sent], "same": same}, tuple(sent)

    def shifted(self, step: Step, shift: Shift, groups: Sequence[int] | None) -> Answer:
        """Run a step where a shift moves it to; return what it left."""
        return _answer(*self._device.shifted_by(step, shift, groups))


def _answer(left: Left, contents: list[bytes]) -> Answer:
    return {"left": left.record(), "sizes": [len(each) for each in contents]}, tuple(contents)


def main() -> None:
    """Load the runtime, and serve."""
    path, memory, file = sys.argv[1:]
    fork_server.isolate()
    machine = Machine(load_runtime(Path(file)))
    sandbox.prove()
    gc.collect()
    gc.freeze()
    fork_server.serve(path, lambda connection: talk(connection, machine, int(memory)))


if __name__ == "__main__":
    fork_server.run(sys.argv[1], main)
