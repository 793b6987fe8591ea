"""Runs a command of ours many times, killed at its first, its second, … kind of change of the disk.

    killing.py [--no-exchange] TEMPLATE POINTS COMMAND ARGUMENT…

Each run works in a copy of TEMPLATE, `POINTS/1`, `POINTS/2` and so on, until one comes to its end. A kind is a call and
what it is done to: of forty pages that are written, the first one counts. `--no-exchange`: as on a file system that
cannot exchange two folders. Seen are the calls that Python tells its audit hooks of, and fsync: it needs no strace.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mps_build.cli import main
from mps_build.publish.index import site

_CHANGES = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"})
_EXCHANGES = frozenset({"renameat2", "renamex_np"})


def kill_at(number: int) -> None:
    """End this process by SIGKILL right before the change of the disk whose kind is the `number`th."""
    seen = set()

    def changed(*kind: object) -> None:
        seen.add(kind)
        if len(seen) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "ctypes.dlsym" and arguments[1] in _EXCHANGES:
            changed(event)
        elif event in _CHANGES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            if isinstance(arguments[0], int):
                return  # a descriptor, opened before
            path = Path(os.fsdecode(arguments[0]))
            is_own = path.name.startswith((".site", ".index-state", "index-state"))
            changed(event, path.parent.name == "wheelhouse", path.name if is_own else path.suffix)

    sys.addaudithook(hook)
    os.fsync = _before(changed, os.fsync)  # type: ignore[assignment]


def _before(first: Callable[[str], None], then: Callable[[int], None]) -> Callable[[int], None]:
    def both(descriptor: int) -> None:
        first("fsync")
        then(descriptor)

    return both


def _run(template: Path, points: Path, command: str, arguments: list[str]) -> None:
    for number in itertools.count(1):
        point = points / str(number)
        shutil.copytree(template, point)
        if (child := os.fork()) == 0:
            os.chdir(point)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            kill_at(number)
            os._exit(main(command, arguments))
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert os.waitstatus_to_exitcode(status) == 0, status
            return


if __name__ == "__main__":
    if sys.argv[1] == "--no-exchange":
        site._exchanged = lambda *folders: False
        del sys.argv[1]
    _run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
